#include "gpu/tmu/lookup/field_tables.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <mutex>
#include <vector>

#include "gpu/base/vector.h"

namespace v3d::tmu {
namespace {

struct Tables {
  std::vector<float> values[4];
  Fields fields = {};
  alignas(64) std::array<uint8_t, sizeof(float) * Fields::kBytes> planes;
};

/// Tables of this many values are small enough.
constexpr int kMostBits = 10;

bool has_bytes(const Packing& packing) {
  return std::ranges::all_of(packing.channels, [](const Channel& channel) { return channel.bits == 8; });
}

void make_planes(Tables& tables) {
  for (uint32_t n = 0; n < Fields::kBytes; ++n) {
    const auto bytes = std::bit_cast<std::array<uint8_t, sizeof(float)>>(tables.values[0][n]);
    for (uint32_t k = 0; k < bytes.size(); ++k) tables.planes[Fields::kBytes * k + n] = bytes[k];
  }
  tables.fields.planes = tables.planes.data();
}

void make_tables(const Packing& packing, DecodeTexels decode, Tables& tables) {
  constexpr Lanes kNumbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  for (uint32_t c = 0; c < 4; ++c) {
    const auto [first, bits] = packing.channels[c];
    for (uint32_t n = 0; n < 1u << bits; n += kLanes) {
      const Lanes word = (kNumbers + n) << first;
      Lanes rgba[4];
      decode(&word, rgba);
      for (int lane = 0; lane < kLanes; ++lane)
        tables.values[c].push_back(std::bit_cast<float>(static_cast<uint32_t>(rgba[c][lane])));
    }
    tables.fields.channel[c] = {32u - first - bits, 32u - bits, tables.values[c].data()};
  }
  if (has_bytes(packing)) make_planes(tables);
}

}  // namespace

bool has_fields(const Format& format) {
  const auto is_small = [](const Channel& channel) { return channel.bits <= kMostBits; };
  const bool is_norm = format.packing.number == Number::kUnorm || format.packing.number == Number::kSnorm;
  return !format.compressed() && format.cpp <= 4 && is_norm &&
         std::ranges::all_of(format.packing.channels, is_small);
}

const Fields& field_tables(const Format& format, DecodeTexels decode) {
  static std::mutex mutex;
  static std::map<DecodeTexels, Tables> made;
  const std::lock_guard lock(mutex);
  const auto [at, is_new] = made.try_emplace(decode);
  if (is_new) make_tables(format.packing, decode, at->second);
  return at->second.fields;
}

}  // namespace v3d::tmu
