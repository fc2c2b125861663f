#include "gpu/tlb/texel_rows.h"

namespace v3d::tlb {
namespace {

/// Calls fn(lane, byte offset in the row, is upper row) with texels `step` texels apart.
template <typename Fn>
void for_lanes(uint32_t cpp, uint32_t step, Fn&& fn) {
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t x = (lane >> 2) * 2 + (lane & 1);
    fn(lane, x * step * cpp, (lane & 2) == 0);
  }
}

/// Texels one by one: any size and distance.
void store_each(uint32_t cpp, uint32_t step, const Lanes* texel, uint8_t* upper, uint8_t* lower) {
  for_lanes(cpp, step, [&](uint32_t lane, uint32_t offset, bool is_upper) {
    uint8_t* const to = (is_upper ? upper : lower) + offset;
    for (uint32_t byte = 0; byte < cpp; byte += 4) {
      const uint32_t word = texel[byte / 4][lane];
      std::memcpy(to + byte, &word, cpp - byte < 4 ? cpp - byte : 4);
    }
  });
}

void load_each(uint32_t cpp, uint32_t step, const uint8_t* upper, const uint8_t* lower, Lanes* texel) {
  for_lanes(cpp, step, [&](uint32_t lane, uint32_t offset, bool is_upper) {
    const uint8_t* const from = (is_upper ? upper : lower) + offset;
    for (uint32_t byte = 0; byte < cpp; byte += 4) {
      uint32_t word = 0;
      std::memcpy(&word, from + byte, cpp - byte < 4 ? cpp - byte : 4);
      texel[byte / 4][lane] = word;
    }
  });
}

void store_8_bytes(const Lanes* texel, uint8_t* upper, uint8_t* lower) {
  const Lanes a = quads_to_rows(texel[0]), b = quads_to_rows(texel[1]);
  const Lanes first = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const Lanes second =
      __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  std::memcpy(upper, &first, sizeof first);
  std::memcpy(lower, &second, sizeof second);
}

void load_8_bytes(const uint8_t* upper, const uint8_t* lower, Lanes* texel) {
  Lanes first, second;
  std::memcpy(&first, upper, sizeof first);
  std::memcpy(&second, lower, sizeof second);
  texel[0] = rows_to_quads(
      __builtin_shufflevector(first, second, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30));
  texel[1] = rows_to_quads(
      __builtin_shufflevector(first, second, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31));
}

}  // namespace

void store_rows(uint32_t cpp, const Lanes* texel, uint8_t* upper, uint8_t* lower) {
  switch (cpp) {
    case 1: {
      const Bytes bytes = __builtin_convertvector(quads_to_rows(texel[0]), Bytes);
      std::memcpy(upper, &bytes, 8);
      std::memcpy(lower, reinterpret_cast<const uint8_t*>(&bytes) + 8, 8);
      return;
    }
    case 2: {
      const Shorts shorts = __builtin_convertvector(quads_to_rows(texel[0]), Shorts);
      std::memcpy(upper, &shorts, 16);
      std::memcpy(lower, reinterpret_cast<const uint8_t*>(&shorts) + 16, 16);
      return;
    }
    case 4:
      return store_halves(quads_to_rows(texel[0]), upper, lower);
    case 8:
      return store_8_bytes(texel, upper, lower);
    default:
      return store_each(cpp, 1, texel, upper, lower);
  }
}

void load_rows(uint32_t cpp, const uint8_t* upper, const uint8_t* lower, Lanes* texel) {
  switch (cpp) {
    case 1: {
      Bytes bytes;
      std::memcpy(&bytes, upper, 8);
      std::memcpy(reinterpret_cast<uint8_t*>(&bytes) + 8, lower, 8);
      texel[0] = rows_to_quads(__builtin_convertvector(bytes, Lanes));
      return;
    }
    case 2: {
      Shorts shorts;
      std::memcpy(&shorts, upper, 16);
      std::memcpy(reinterpret_cast<uint8_t*>(&shorts) + 16, lower, 16);
      texel[0] = rows_to_quads(__builtin_convertvector(shorts, Lanes));
      return;
    }
    case 4:
      texel[0] = rows_to_quads(load_halves(upper, lower));
      return;
    case 8:
      return load_8_bytes(upper, lower, texel);
    default:
      return load_each(cpp, 1, upper, lower, texel);
  }
}

void store_sample_rows(uint32_t cpp, uint32_t column, const Lanes* texel, uint8_t* upper, uint8_t* lower) {
  store_each(cpp, 2, texel, upper + column * cpp, lower + column * cpp);
}

void load_sample_rows(uint32_t cpp, uint32_t column, const uint8_t* upper, const uint8_t* lower,
                      Lanes* texel) {
  load_each(cpp, 2, upper + column * cpp, lower + column * cpp, texel);
}

}  // namespace v3d::tlb
