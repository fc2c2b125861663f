#include "gpu/qpu/graph/evaluate.h"

#include <algorithm>
#include <bit>

#include "gpu/base/float16.h"
#include "gpu/base/lanes.h"
#include "gpu/base/vector.h"
#include "gpu/qpu/run/alu_lanes.h"
#include "gpu/qpu/run/host_lanes.h"
#include "gpu/qpu/run/sfu.h"
#include "gpu/qpu/run/vc4_alu.h"
#include "gpu/tmu/lookup/lookup_kind.h"

namespace v3d::qpu::graph {
namespace {

constexpr uint32_t mask_of(bool holds) { return holds ? ~0u : 0; }

/// fn of each part of so many bits.
template <int kBits, typename Fn>
uint32_t by_parts_of(uint32_t a, uint32_t b, Fn fn) {
  constexpr uint32_t kMask = (1u << kBits) - 1;
  uint32_t result = 0;
  for (int at = 0; at < 32; at += kBits) result |= (fn(a >> at & kMask, b >> at & kMask) & kMask) << at;
  return result;
}

/// The low bits of a at those of the mask.
uint32_t deposited(uint32_t a, uint32_t mask) {
  uint32_t result = 0;
  for (; mask != 0; mask &= mask - 1, a >>= 1) result |= a & 1 ? mask & (0 - mask) : 0;
  return result;
}

int32_t signed_half(uint32_t a, int n) { return static_cast<int16_t>(a >> 16 * n); }

/// Of pairs of bytes, those of b with a sign, side by side.
uint32_t byte_products(uint32_t a, uint32_t b) {
  uint32_t result = 0;
  for (int half = 0; half < 2; ++half) {
    int32_t sum = 0;
    for (int byte = 2 * half; byte < 2 * half + 2; ++byte)
      sum += static_cast<uint8_t>(a >> 8 * byte) * static_cast<int8_t>(b >> 8 * byte);
    result |= (static_cast<uint32_t>(std::clamp(sum, -32768, 32767)) & 0xffff) << 16 * half;
  }
  return result;
}

uint32_t of_interpreter(vc4::Op op, uint32_t a, uint32_t b) {
  return vc4::find_alu(op)(splat(a), splat(b))[0];
}

uint32_t float_bits(float v) { return std::bit_cast<uint32_t>(v); }
uint32_t first_of(const Lanes& v) { return v[0]; }

uint32_t rounded_float(uint32_t v, Rounding rounding) {
  switch (rounding) {
    case Rounding::kNearestEven:
      return first_of(rounded<Rounding::kNearestEven>(splat(v)));
    case Rounding::kDown:
      return first_of(rounded<Rounding::kDown>(splat(v)));
    case Rounding::kUp:
      return first_of(rounded<Rounding::kUp>(splat(v)));
    default:
      return first_of(rounded<Rounding::kZero>(splat(v)));
  }
}

}  // namespace

uint32_t evaluate(const Node& node, uint32_t a, uint32_t b, uint32_t c) {
  const auto x = static_cast<int32_t>(a), y = static_cast<int32_t>(b);
  const auto f = std::bit_cast<float>(a), g = std::bit_cast<float>(b);
  switch (node.op) {
    case Op::kAdd:
      return a + b;
    case Op::kSub:
      return a - b;
    case Op::kMul:
      return a * b;
    case Op::kAnd:
      return a & b;
    case Op::kAndNot:
      return ~a & b;
    case Op::kOr:
      return a | b;
    case Op::kXor:
      return a ^ b;
    case Op::kShl:
      return b < 32 ? a << b : 0;
    case Op::kShr:
      return b < 32 ? a >> b : 0;
    case Op::kSar:
      return static_cast<uint32_t>(x >> std::min(b, 31u));
    case Op::kMin:
      return static_cast<uint32_t>(std::min(x, y));
    case Op::kMax:
      return static_cast<uint32_t>(std::max(x, y));
    case Op::kMinUnsigned:
      return std::min(a, b);
    case Op::kDeposit:
      return deposited(a, node.immediate);
    case Op::kLeadingZeros:
      return static_cast<uint32_t>(std::countl_zero(a));
    case Op::kEqual:
      return mask_of(a == b);
    case Op::kAbove:
      return mask_of(x > y);
    case Op::kAboveUnsigned:
      return mask_of(a > b);
    case Op::kChoose:
      return a != 0 ? b : c;
    case Op::kMulHalves:
      return by_parts_of<16>(a, b, [](uint32_t m, uint32_t n) { return m * n; });
    case Op::kAddHalves:
      return by_parts_of<16>(a, b, [](uint32_t m, uint32_t n) { return m + n; });
    case Op::kSrgbValue:
      return float_bits(tmu::values_of_srgb_bytes()[a >> 8 * node.immediate & 0xff]);
    case Op::kByte:
      return a >> 8 * node.immediate & 0xff;
    case Op::kByteProducts:
      return byte_products(a, b);
    case Op::kHalfProducts:
      return static_cast<uint32_t>(signed_half(a, 0) * signed_half(b, 0)) +
             static_cast<uint32_t>(signed_half(a, 1) * signed_half(b, 1));
    case Op::kUpperBytes:
      return by_parts_of<16>(a, b, [](uint32_t m, uint32_t) { return m >> 8; });
    case Op::kMinBytes:
      return by_parts_of<8>(a, b, [](uint32_t m, uint32_t n) { return std::min(m, n); });
    case Op::kMaxBytes:
      return by_parts_of<8>(a, b, [](uint32_t m, uint32_t n) { return std::max(m, n); });
    case Op::kAddBytes:
      return by_parts_of<8>(a, b, [](uint32_t m, uint32_t n) { return std::min(m + n, 255u); });
    case Op::kSubBytes:
      return by_parts_of<8>(a, b, [](uint32_t m, uint32_t n) { return m - std::min(m, n); });
    case Op::kSum:
      return of_interpreter(vc4::Op::kFadd, a, b);
    case Op::kProduct:
      return of_interpreter(vc4::Op::kFmul, a, b);
    case Op::kIntegerOf:
      return of_interpreter(vc4::Op::kFtoi, a, 0);
    case Op::kFloatOf:
      return of_interpreter(vc4::Op::kItof, a, 0);
    case Op::kAddNearest:
      return float_bits(std::bit_cast<float>(a) + std::bit_cast<float>(b));
    case Op::kMulNearest:
    case Op::kMulExact:
      return float_bits(std::bit_cast<float>(a) * std::bit_cast<float>(b));
    case Op::kFloor:
      return float_bits(floor(splat(std::bit_cast<float>(a)))[0]);
    case Op::kReciprocal:
      return float_bits(sfu::recip(splat(std::bit_cast<float>(a)))[0]);
    case Op::kReciprocalRoot:
      return float_bits(sfu::rsqrt(splat(std::bit_cast<float>(a)))[0]);
    case Op::kExp2:
      return float_bits(sfu::exp2(splat(std::bit_cast<float>(a)))[0]);
    case Op::kLog2:
      return float_bits(sfu::log2(splat(std::bit_cast<float>(a)))[0]);
    case Op::kTruncate:
      return first_of(truncated(splat(a)));
    case Op::kShuffleQuads:  // of equal lanes
    case Op::kLeastOfLanes:
    case Op::kPickLanes:
      return a;
    case Op::kFloatSum:
      return first_of(float_sum(splat(a), splat(b)));
    case Op::kFloatDifference:
      return first_of(float_difference(splat(a), splat(b)));
    case Op::kFloatProduct:
      return first_of(float_product(splat(a), splat(b)));
    case Op::kFloatQuotient:
      return first_of(float_quotient(splat(a), splat(b)));
    case Op::kMaxFloats:
      return f > g ? a : b;
    case Op::kMinFloats:
      return f < g ? a : b;
    case Op::kEqualFloats:
      return mask_of(f == g);
    case Op::kBelowFloats:
      return mask_of(f < g);
    case Op::kAtMostFloats:
      return mask_of(f <= g);
    case Op::kRound:
      return rounded_float(a, static_cast<Rounding>(node.immediate));
    case Op::kNearestInteger:
      return first_of(nearest_integer(splat(a)));
    case Op::kFittingInteger:
      return f >= -0x1p31f && f < 0x1p31f ? first_of(nearest_integer(splat(a))) : 1u << 31;
    case Op::kNearestFloat:
      return float_bits(static_cast<float>(x));
    case Op::kHalfOf:
      return float_to_half(f);
    case Op::kFloatOfHalf:
      return float_bits(half_to_float(static_cast<uint16_t>(a)));
    case Op::kRoundToHalf:
      return float_bits(half_to_float(float_to_half(f)));
    default:
      return 0;
  }
}

}  // namespace v3d::qpu::graph
