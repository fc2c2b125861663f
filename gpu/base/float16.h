/// These functions convert to and from half precision: they keep denormals, round to nearest even, overflow
/// to infinity and make NaNs quiet (qpu.md 2.1).
#pragma once

#include <bit>
#include <cstdint>

#include "gpu/base/lanes.h"

namespace v3d {

constexpr float half_to_float(uint16_t h) {
  const uint32_t sign = uint32_t{h & 0x8000u} << 16;
  const uint32_t exponent = (h >> 10) & 31;
  uint32_t mantissa = h & 0x3ffu;
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13) | (mantissa ? 0x400000u : 0));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  if (mantissa == 0) return std::bit_cast<float>(sign);
  const int shift = std::countl_zero(mantissa) - 21;  // moves the leading one to bit 10
  mantissa = (mantissa << shift) & 0x3ffu;
  return std::bit_cast<float>(sign | (static_cast<uint32_t>(113 - shift) << 23) | (mantissa << 13));
}

constexpr uint16_t float_to_half(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x33000001u) return static_cast<uint16_t>(sign);
  if (magnitude < 0x38800000u) {                     // denormal result
    const uint32_t shift = 126 - (magnitude >> 23);  // 14..24
    const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const uint32_t kept = mantissa >> shift;
    const uint32_t rest = mantissa & ((1u << shift) - 1), half = 1u << (shift - 1);
    return static_cast<uint16_t>(sign | (kept + (rest > half || (rest == half && (kept & 1)))));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

#if defined(__F16C__) && defined(__AVX512F__)
/// The low half of each lane.
inline LanesF half_to_float(Lanes low_halves) {
  typedef short Halves __attribute__((vector_size(32)));
  typedef uint16_t Words __attribute__((vector_size(32)));
  return __builtin_ia32_vcvtph2ps512_mask(
      reinterpret_cast<Halves>(__builtin_convertvector(low_halves, Words)), LanesF{},
      static_cast<LaneMask>(-1), 4);
}
/// Result in the low half of each lane, upper half 0.
inline Lanes float_to_half(LanesF v) {
  typedef uint16_t Words __attribute__((vector_size(32)));
  typedef short Halves __attribute__((vector_size(32)));
  const Halves h = __builtin_ia32_vcvtps2ph512_mask(v, 0, Halves{}, static_cast<LaneMask>(-1));
  return __builtin_convertvector(reinterpret_cast<Words>(h), Lanes);
}
#elif defined(__F16C__)
inline LanesF half_to_float(Lanes low_halves) {
  typedef short Halves __attribute__((vector_size(16)));
  typedef uint16_t Words __attribute__((vector_size(32)));
  typedef float Native __attribute__((vector_size(32)));
  const Words words = __builtin_convertvector(low_halves, Words);
  Halves half[2];
  __builtin_memcpy(half, &words, sizeof(words));
  const Native result[2] = {__builtin_ia32_vcvtph2ps256(half[0]), __builtin_ia32_vcvtph2ps256(half[1])};
  return std::bit_cast<LanesF>(result);
}
inline Lanes float_to_half(LanesF v) {
  typedef uint16_t Words __attribute__((vector_size(32)));
  typedef float Native __attribute__((vector_size(32)));
  typedef short Halves __attribute__((vector_size(16)));
  Native part[2];
  __builtin_memcpy(part, &v, sizeof(v));
  const Halves half[2] = {__builtin_ia32_vcvtps2ph256(part[0], 0), __builtin_ia32_vcvtps2ph256(part[1], 0)};
  Words words;
  __builtin_memcpy(&words, half, sizeof(words));
  return __builtin_convertvector(words, Lanes);
}
#elif defined(__aarch64__)
inline LanesF half_to_float(Lanes low_halves) {
  return by_parts<LanesF>(
      [](auto part) {
        const uint16x4_t words = vmovn_u32(reinterpret_cast<uint32x4_t>(part));
        return vcvt_f32_f16(reinterpret_cast<float16x4_t>(words));
      },
      low_halves);
}
inline Lanes float_to_half(LanesF v) {
  return by_parts<Lanes>(
      [](auto part) {
        auto floats = reinterpret_cast<float32x4_t>(part);
        __asm__("" : "+w"(floats));  // GCC takes a half that became a float for itself, though it were a NaN
        const float16x4_t halves = vcvt_f16_f32(floats);
        return vmovl_u16(reinterpret_cast<uint16x4_t>(halves));
      },
      v);
}
#else
inline LanesF half_to_float(Lanes low_halves) {
  LanesF result;
  for (int i = 0; i < kLanes; ++i) result[i] = half_to_float(static_cast<uint16_t>(low_halves[i]));
  return result;
}
inline Lanes float_to_half(LanesF v) {
  Lanes result;
  for (int i = 0; i < kLanes; ++i) result[i] = float_to_half(v[i]);
  return result;
}
#endif

}  // namespace v3d
