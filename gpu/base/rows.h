/// From 16 elements of a few words each to rows of 16 words side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gpu/base/lanes.h"

#ifdef __AVX512VL__
#include <immintrin.h>  // only its masked forms, as in gpu/base/vector.h
#endif

namespace v3d {

/// One element in a register of four words.
typedef uint32_t Quartet __attribute__((vector_size(16)));

/// The first words of an element, and none behind them.
template <uint32_t kWords>
Quartet load_element(const void* from) {
#ifdef __AVX512VL__
  if constexpr (kWords == 3) return reinterpret_cast<Quartet>(_mm_maskz_loadu_epi32((1 << kWords) - 1, from));
#endif
  Quartet element = {};
  std::memcpy(&element, from, kWords * sizeof(uint32_t));
  return element;
}

/// The elements of 2 to 4 words at host(lane), turned round in registers: row c holds their words c.
template <uint32_t kWords, typename Host>
void load_rows(Host host, Lanes* rows) {
  const auto load = [&](size_t lane) { return load_element<kWords>(host(lane)); };
  const auto side_by_side = [&](size_t lane) {
    const auto two = [&](size_t at) {
      return __builtin_shufflevector(load(at), load(at + 1), 0, 1, 2, 3, 4, 5, 6, 7);
    };
    return __builtin_shufflevector(two(lane), two(lane + 2), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
                                   15);
  };
  const Lanes four[4] = {side_by_side(0), side_by_side(4), side_by_side(8), side_by_side(12)};
  constexpr Lanes kFirst = {0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29};
  constexpr Lanes kLow = {0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23};
  for (uint32_t c = 0; c < kWords; c += 2) {  // words c and c + 1 of elements 0..7 and 8..15
    const Lanes a = permute(four[0], four[1], kFirst + c);
    const Lanes b = permute(four[2], four[3], kFirst + c);
    rows[c] = permute(a, b, kLow);
    if (c + 1 < kWords) rows[c + 1] = permute(a, b, kLow + 8u);
  }
}

}  // namespace v3d
