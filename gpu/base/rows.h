/// These functions turn 16 elements of a few words each into rows of 16 words side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gpu/base/halves.h"
#include "gpu/base/lanes.h"

#ifdef __AVX512VL__
#include <immintrin.h>  // only its masked forms, as in gpu/base/vector.h
#endif

namespace v3d {

/// One element in a register of four words.
typedef uint32_t Quartet __attribute__((vector_size(16)));

/// The first words of an element, and none after them.
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
    return join(two(lane), two(lane + 2));
  };
  const Lanes four[4] = {side_by_side(0), side_by_side(4), side_by_side(8), side_by_side(12)};
  // Two words of elements 0..7, or 8..15.
  const auto low_words = [](const Lanes& a, const Lanes& b) {
    return shuffle<0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29>(a, b);
  };
  const auto high_words = [](const Lanes& a, const Lanes& b) {
    return shuffle<2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31>(a, b);
  };
  const auto put = [&](uint32_t c, const Lanes& a, const Lanes& b) {
    rows[c] = shuffle<0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23>(a, b);
    if (c + 1 < kWords)
      rows[c + 1] = shuffle<8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31>(a, b);
  };
  put(0, low_words(four[0], four[1]), low_words(four[2], four[3]));
  if (kWords > 2) put(2, high_words(four[0], four[1]), high_words(four[2], four[3]));
}

}  // namespace v3d
