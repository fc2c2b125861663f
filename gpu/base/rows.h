/// These functions turn 16 elements of a few words each into rows of 16 words side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gpu/base/halves.h"
#include "gpu/base/lanes.h"

#ifdef __AVX2__
#include <immintrin.h>  // only its masked forms, as in gpu/base/vector.h
#endif

namespace v3d {

/// One element in a register of four words.
typedef uint32_t Quartet __attribute__((vector_size(16)));

/// The first words of an element, and none after them.
template <uint32_t kWords>
Quartet load_element(const void* from) {
  // GCC 12 puts smaller loads together in memory, where the host waits for all of them.
  if constexpr (kWords == 2) {
    typedef uint64_t Pair __attribute__((vector_size(16)));
    uint64_t words;
    std::memcpy(&words, from, sizeof(words));
    return reinterpret_cast<Quartet>(Pair{words, 0});
  }
#if defined(__AVX512VL__)
  if constexpr (kWords == 3) return reinterpret_cast<Quartet>(_mm_maskz_loadu_epi32((1 << kWords) - 1, from));
#elif defined(__AVX2__)
  if constexpr (kWords == 3)
    return reinterpret_cast<Quartet>(
        _mm_maskload_epi32(static_cast<const int*>(from), _mm_setr_epi32(-1, -1, -1, 0)));
#endif
  Quartet element = {};
  std::memcpy(&element, from, kWords * sizeof(uint32_t));
  return element;
}

/// Columns of words to rows, within each quad: row i of quad q holds the words of lane 4q + i. Its own
/// inverse.
inline void transpose_quads(const Lanes* in, Lanes* out) {
  const auto low_words = [](const Lanes& a, const Lanes& b) {
    return shuffle<0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29>(a, b);
  };
  const auto high_words = [](const Lanes& a, const Lanes& b) {
    return shuffle<2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31>(a, b);
  };
  const auto low_halves = [](const Lanes& a, const Lanes& b) {
    return shuffle<0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29>(a, b);
  };
  const auto high_halves = [](const Lanes& a, const Lanes& b) {
    return shuffle<2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31>(a, b);
  };
  const Lanes low[2] = {low_words(in[0], in[1]), low_words(in[2], in[3])},
              high[2] = {high_words(in[0], in[1]), high_words(in[2], in[3])};
  out[0] = low_halves(low[0], low[1]);
  out[1] = high_halves(low[0], low[1]);
  out[2] = low_halves(high[0], high[1]);
  out[3] = high_halves(high[0], high[1]);
}

/// The elements of 2 to 4 words at host(lane), turned round in registers: row c holds their words c.
template <uint32_t kWords, typename Host>
void load_rows(Host host, Lanes* rows) {
  const auto load = [&](size_t lane) { return load_element<kWords>(host(lane)); };
  const auto every_fourth = [&](size_t lane) {
    const auto two = [&](size_t at) {
      return __builtin_shufflevector(load(at), load(at + 4), 0, 1, 2, 3, 4, 5, 6, 7);
    };
    return join(two(lane), two(lane + 8));
  };
  const Lanes elements[4] = {every_fourth(0), every_fourth(1), every_fourth(2), every_fourth(3)};
  Lanes words[4];
  transpose_quads(elements, words);
  for (uint32_t c = 0; c < kWords; ++c) rows[c] = words[c];
}

}  // namespace v3d
