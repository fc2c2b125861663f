/// The 16 lanes of a QPU register as one host vector, and the few conversions every block needs.
#pragma once

#include <cstdint>

namespace v3d {

inline constexpr int kLanes = 16;

/// One 32-bit word per lane. Lane i of a fragment batch: quad i / 4, pixel (i & 1, (i >> 1) & 1) of the quad.
typedef uint32_t Lanes __attribute__((vector_size(64)));
typedef int32_t LanesI __attribute__((vector_size(64)));
typedef float LanesF __attribute__((vector_size(64)));

/// Bit i belongs to lane i.
using LaneMask = uint16_t;
inline constexpr LaneMask kAllLanes = 0xffff;

inline Lanes splat(uint32_t v) { return Lanes{} + v; }
/// -0.0f and the payload of a NaN stay as they are, which an addition would not leave them.
inline LanesF splat(float v) { return LanesF{v, v, v, v, v, v, v, v, v, v, v, v, v, v, v, v}; }

/// Reinterpretations; no bit changes.
inline LanesF as_float(Lanes v) { return reinterpret_cast<LanesF>(v); }
inline LanesI as_int(Lanes v) { return reinterpret_cast<LanesI>(v); }
inline Lanes as_uint(LanesF v) { return reinterpret_cast<Lanes>(v); }
inline Lanes as_uint(LanesI v) { return reinterpret_cast<Lanes>(v); }

inline constexpr Lanes kLaneIndex = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/// All ones in the lanes of the mask, 0 elsewhere.
inline LanesI expand(LaneMask mask) { return ((splat(uint32_t{mask}) >> kLaneIndex) & 1u) != 0u; }

/// The lanes whose value is negative.
inline LaneMask negative(LanesI v) {
#if defined(__AVX512DQ__)
  typedef int Native __attribute__((vector_size(64)));
  return static_cast<LaneMask>(__builtin_ia32_cvtd2mask512(reinterpret_cast<Native>(v)));
#elif defined(__AVX__)
  typedef float Native __attribute__((vector_size(32)));
  Native part[2];
  __builtin_memcpy(part, &v, sizeof(v));
  return static_cast<LaneMask>(__builtin_ia32_movmskps256(part[0]) | __builtin_ia32_movmskps256(part[1])
                                                                         << 8);
#else
  typedef float Native __attribute__((vector_size(16)));
  Native part[4];
  __builtin_memcpy(part, &v, sizeof(v));
  int mask = 0;
  for (int i = 0; i < 4; ++i) mask |= __builtin_ia32_movmskps(part[i]) << (4 * i);
  return static_cast<LaneMask>(mask);
#endif
}

/// The lanes whose word is not zero.
inline LaneMask nonzero(Lanes v) {
#ifdef __AVX512F__
  typedef int Native __attribute__((vector_size(64)));
  const Native native = reinterpret_cast<Native>(v);
  return __builtin_ia32_ptestmd512(native, native, kAllLanes);
#else
  return negative(v != 0u);
#endif
}

/// Lane i of the result is v[index[i] & 15].
template <typename Vector, typename Index>
inline Vector permute(Vector v, Index index) {
#ifdef __clang__  // for clang-tidy; the compiler is GCC
  Vector result;
  for (int i = 0; i < kLanes; ++i) result[i] = v[index[i] & 15];
  return result;
#else
  return __builtin_shuffle(v, index);
#endif
}
/// Lane i of the result is lane index[i] & 31 of a and b one after the other.
template <typename Vector, typename Index>
inline Vector permute(Vector a, Vector b, Index index) {
#ifdef __clang__
  Vector result;
  for (int i = 0; i < kLanes; ++i) result[i] = index[i] & 16 ? b[index[i] & 15] : a[index[i] & 15];
  return result;
#else
  return __builtin_shuffle(a, b, index);
#endif
}

/// mask ? a : b, lane by lane.
inline Lanes select(LaneMask mask, Lanes a, Lanes b) { return expand(mask) ? a : b; }

}  // namespace v3d
