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

/// First bit and width of R, G, B, A.
struct Row {
  uint8_t type;
  struct {
    uint8_t first, bits;
  } channel[4];
};

constexpr Row kRows[] = {
    {1, {{0, 8}, {}, {}, {}}},                    // R8_SNORM
    {3, {{0, 8}, {8, 8}, {}, {}}},                // RG8_SNORM
    {4, {{0, 8}, {8, 8}, {16, 8}, {24, 8}}},      // RGBA8, with a transfer function
    {5, {{0, 8}, {8, 8}, {16, 8}, {24, 8}}},      // RGBA8_SNORM
    {6, {{11, 5}, {5, 6}, {0, 5}, {}}},           // RGB565
    {7, {{12, 4}, {8, 4}, {4, 4}, {0, 4}}},       // RGBA4
    {8, {{11, 5}, {6, 5}, {1, 5}, {0, 1}}},       // RGB5_A1
    {9, {{0, 10}, {10, 10}, {20, 10}, {30, 2}}},  // RGB10_A2
    {115, {{0, 5}, {5, 5}, {10, 5}, {15, 1}}},    // A1_RGB5
};

const Row* find_row(uint8_t type) {
  const auto* const found =
      std::find_if(std::begin(kRows), std::end(kRows), [=](const Row& row) { return row.type == type; });
  return found == std::end(kRows) ? nullptr : found;
}

struct Tables {
  std::vector<float> values[4];
  Fields fields = {};
  alignas(64) std::array<uint8_t, sizeof(float) * Fields::kBytes> planes;
};

bool has_bytes(const Row& row) {
  return std::ranges::all_of(row.channel, [](const auto& channel) { return channel.bits == 8; });
}

void make_planes(Tables& tables) {
  for (uint32_t n = 0; n < Fields::kBytes; ++n) {
    const auto bytes = std::bit_cast<std::array<uint8_t, sizeof(float)>>(tables.values[0][n]);
    for (uint32_t k = 0; k < bytes.size(); ++k) tables.planes[Fields::kBytes * k + n] = bytes[k];
  }
  tables.fields.planes = tables.planes.data();
}

void make_tables(const Row& row, DecodeTexels decode, Tables& tables) {
  constexpr Lanes kNumbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  for (uint32_t c = 0; c < 4; ++c) {
    const auto [first, bits] = row.channel[c];
    for (uint32_t n = 0; n < 1u << bits; n += kLanes) {
      const Lanes word = (kNumbers + n) << first;
      Lanes rgba[4];
      decode(&word, rgba);
      for (int lane = 0; lane < kLanes; ++lane)
        tables.values[c].push_back(std::bit_cast<float>(static_cast<uint32_t>(rgba[c][lane])));
    }
    tables.fields.channel[c] = {32u - first - bits, 32u - bits, tables.values[c].data()};
  }
  if (has_bytes(row)) make_planes(tables);
}

}  // namespace

bool has_fields(uint8_t type) { return find_row(type) != nullptr; }

const Fields& field_tables(uint8_t type, DecodeTexels decode) {
  static std::mutex mutex;
  static std::map<DecodeTexels, Tables> made;
  const std::lock_guard lock(mutex);
  const auto [at, is_new] = made.try_emplace(decode);
  if (is_new) make_tables(*find_row(type), decode, at->second);
  return at->second.fields;
}

}  // namespace v3d::tmu
