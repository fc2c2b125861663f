#include "gpu/tmu/texel/transfer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <mutex>

namespace v3d::tmu {
namespace {

/// IEC 61966-2-1.
double srgb(double v) { return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4); }

/// The brightest light, as Mesa v3d_packet.xml gives the ranges of "16f_clamp_pq" and "16f_clamp_hlg" for
/// colours of the tile buffer: what is rendered can be looked up again without a factor.
constexpr double kPqPeak = 125, kHlgPeak = 12;

/// SMPTE ST 2084 (ITU-R BT.2100 table 4): 1 is 80 cd/m2, kPqPeak 10000 cd/m2.
double pq(double v) {
  constexpr double kM1 = 2610.0 / 16384, kM2 = 2523.0 / 4096 * 128;
  constexpr double kC1 = 3424.0 / 4096, kC2 = 2413.0 / 4096 * 32, kC3 = 2392.0 / 4096 * 32;
  const double p = std::pow(v, 1 / kM2);
  return kPqPeak * std::pow(std::max(p - kC1, 0.0) / (kC2 - kC3 * p), 1 / kM1);
}

/// The inverse of the OETF of ITU-R BT.2100 table 5: light of the scene, 0..kHlgPeak (ARIB STD-B67).
double hlg(double v) {
  constexpr double kA = 0.17883277, kB = 1 - 4 * kA;
  const double c = 0.5 - kA * std::log(4 * kA);
  return v <= 0.5 ? 4 * v * v : std::exp((v - c) / kA) + kB;
}

/// The code that a display of ITU-R BT.1886, white 1 and black 0, shows as this light.
double bt1886_code(double light) { return std::pow(light, 1 / 2.4); }

/// @note Assumed: public sources give the last two but their names. Here they are the light of PQ or HLG,
/// coded again for a BT.1886 display.
double value_of(Transfer transfer, double v) {
  switch (transfer) {
    case Transfer::kNone:
      return v;
    case Transfer::kSrgb:
      return srgb(v);
    case Transfer::kPq:
      return pq(v);
    case Transfer::kHlg:
      return hlg(v);
    case Transfer::kPqBt1886:
      return bt1886_code(pq(v) / kPqPeak);
    case Transfer::kHlgBt1886:
      return bt1886_code(hlg(v) / kHlgPeak);
  }
  return v;
}

struct Table {
  std::once_flag made;
  std::unique_ptr<float[]> values;
};

}  // namespace

const float* transfer_table(Transfer transfer, int bits) {
  static std::array<std::array<Table, 17>, kTransfers> tables;
  Table& table = tables[static_cast<size_t>(transfer)][static_cast<size_t>(bits)];
  std::call_once(table.made, [&] {
    const uint32_t last = (1u << bits) - 1;
    table.values = std::make_unique<float[]>(last + 1);
    for (uint32_t i = 0; i <= last; ++i)
      table.values[i] = static_cast<float>(value_of(transfer, static_cast<double>(i) / last));
  });
  return table.values.get();
}

}  // namespace v3d::tmu
