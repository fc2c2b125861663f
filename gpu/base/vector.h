/// These are the operations on 16 lanes that GCC's vector extensions lack: gather, scatter, floor, log2.
#pragma once

#include <bit>
#include <cstdint>

#include "gpu/base/arithmetic.h"
#include "gpu/base/lanes.h"
#include "gpu/base/memory.h"

#ifdef __AVX512F__
#include <immintrin.h>  // only its masked forms: GCC 12 warns of uninitialized variables in the others
#endif

namespace v3d {

inline LanesF to_float(LanesI v) { return __builtin_convertvector(v, LanesF); }

/// NaN in `a` gives b.
template <typename V>
inline V min(const V& a, const V& b) {
  return by_parts<V>([](auto x, auto y) { return x < y ? x : y; }, a, b);
}
template <typename V>
inline V max(const V& a, const V& b) {
  return by_parts<V>([](auto x, auto y) { return x > y ? x : y; }, a, b);
}
inline LanesI clamp(LanesI v, LanesI low, LanesI high) { return min(max(v, low), high); }

inline LanesF abs(LanesF v) { return as_float(as_uint(v) & 0x7fffffffu); }

inline LanesF floor(LanesF v) { return round_lanes<Rounding::kDown>(v); }

/// floor as integer; |v| below 2^31.
inline LanesI floor_to_int(LanesF v) {
#ifdef __AVX512F__
  return reinterpret_cast<LanesI>(_mm512_maskz_cvt_roundps_epi32(kAllLanes, reinterpret_cast<__m512>(v),
                                                                 _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC));
#else
  return __builtin_convertvector(floor(v), LanesI);
#endif
}

/// log2 of positive normal numbers, exact for powers of two, else within 1e-5.
inline LanesF log2(LanesF v) {
  // v = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); a minimax polynomial for log2(1 + f) / f.
  const Lanes bits = as_uint(v) - 0x3f3504f3u;
  const LanesI e = as_int(bits) >> 23;
  const LanesF f = as_float((bits & 0x7fffffu) + 0x3f3504f3u) - 1.0f, f2 = f * f;
  const LanesF low = 1.44280951f - f * 0.721367359f, middle = 0.474986073f - f * 0.357639749f,
               high = 0.361390689f - f * 0.298072372f;
  return to_float(e) + f * (low + f2 * (middle + f2 * high));
}

/// mask of the lanes (bit i: lane i) in which every bit, or no bit, is set.
inline LaneMask mask_bits(LanesI mask) { return nonzero(as_uint(mask)); }

/// All lanes of every quad that has a lane in the mask.
inline LaneMask whole_quads(LaneMask mask) {
  uint32_t m = mask;
  m |= m >> 1;
  m |= m >> 2;
  return static_cast<LaneMask>((m & 0x1111) * 15);
}

/// The 32-bit words at 16 addresses; lanes outside the mask read nothing and give 0.
inline Lanes gather(Memory memory, Lanes address, LaneMask mask) {
#ifdef __AVX512F__
  // Indices are signed: count from the middle of the window.
  const __m512i index = reinterpret_cast<__m512i>(address ^ 0x80000000u);
  return reinterpret_cast<Lanes>(
      _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), mask, index, memory.host(0x80000000u), 1));
#else
  Lanes result{};
  for (int i = 0; i < kLanes; ++i)
    if ((mask >> i) & 1) result[i] = memory.load<uint32_t>(address[i]);
  return result;
#endif
}

/// Stores words in lane order: where addresses are equal, the highest lane wins.
inline void scatter(Memory memory, Lanes address, Lanes value, LaneMask mask) {
#ifdef __AVX512F__
  const __m512i index = reinterpret_cast<__m512i>(address ^ 0x80000000u);
  _mm512_mask_i32scatter_epi32(memory.host(0x80000000u), mask, index, reinterpret_cast<__m512i>(value), 1);
#else
  for (int i = 0; i < kLanes; ++i)
    if ((mask >> i) & 1) memory.store<uint32_t>(address[i], value[i]);
#endif
}

/// Entries of a host table of words; every index is valid.
template <typename T>
inline Lanes look_up(const T* table, Lanes index) {
  static_assert(sizeof(T) == sizeof(uint32_t));
#ifdef __AVX512F__
  return reinterpret_cast<Lanes>(_mm512_mask_i32gather_epi32(_mm512_setzero_si512(), kAllLanes,
                                                             reinterpret_cast<__m512i>(index), table, 4));
#else
  Lanes result;
  for (int i = 0; i < kLanes; ++i) result[i] = std::bit_cast<uint32_t>(table[index[i]]);
  return result;
#endif
}

/// 8- or 16-bit values, zero extended. Addresses are multiples of the size, so that the aligned word around a
/// value lies in the page of the value.
inline Lanes gather_small(Memory memory, Lanes address, LaneMask mask, uint32_t bytes) {
  const Lanes words = gather(memory, address & ~3u, mask);
  return (words >> ((address & 3u) * 8u)) & (bytes == 1 ? 0xffu : 0xffffu);
}

}  // namespace v3d
