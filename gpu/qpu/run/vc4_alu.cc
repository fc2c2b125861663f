#include "gpu/qpu/run/vc4_alu.h"

#include "gpu/base/lanes.h"
#include "gpu/base/vector.h"
#include "gpu/qpu/run/sfu.h"
#include "gpu/qpu/run/vc4_lanes.h"

namespace v3d::qpu::vc4 {
namespace {

template <Op op>
inline Lanes alu(const Lanes& a, const Lanes& b) {
  return by_parts<Lanes>([](const Words& x, const Words& y) { return result_of<op>(x, y); }, a, b);
}

template <Op op>
LanesI carry_of(const Lanes& a, const Lanes& b, const Lanes& result) {
  return as_int(by_parts<Lanes>(
      [](const Words& x, const Words& y, const Words& z) { return carry<op>(x, y, z); }, a, b, result));
}

template <Op op>
constexpr CarryFn kCarry = has_carry(op) ? carry_of<op> : nullptr;

// ---- Actions

template <Op op, bool immediate_a, bool immediate_b>
const char* operate(Thread& t, const Action& x) {
  const Lanes& a = register_at(t, x.a);
  const Lanes& b = register_at(t, x.b);
  register_at(t, x.to) = alu<op>(immediate_a ? splat(x.immediate) : a, immediate_b ? splat(x.immediate) : b);
  return nullptr;
}

template <CarryFn carry>
const char* set_flags(Thread& t, const Action& x) {
  const Lanes& result = register_at(t, x.to);
  t.flags[Thread::kZ] = static_cast<LaneMask>(~nonzero(result));
  t.flags[Thread::kN] = negative(as_int(result));
  if constexpr (carry == nullptr)
    t.flags[Thread::kC] = 0;
  else
    t.flags[Thread::kC] = negative(carry(register_at(t, x.a), register_at(t, x.b), result));
  return nullptr;
}

// ---- Packs

// float32 to float16: away from zero if any bit is dropped; too small is +0.
Lanes half_of(const Lanes& v) {
  return by_parts<Lanes>(
      [](Words w) {
        const Words sign = w >> 16 & 0x8000u;
        const Words cut_off = reinterpret_cast<Words>((w & 0x1fffu) != 0u);
        const Words bits =
            ((w & kMagnitude) >> 13) - cut_off;  // exponent and mantissa; a true comparison is -1
        const Words half = bits >= 143u << 10 ? Words{} + 0x7c00u : bits - (112u << 10);
        return bits < 113u << 10 ? Words{} : sign | half;
      },
      v);
}

Lanes narrowed(const Packable& in, int32_t low, int32_t high, uint32_t mask, bool saturate) {
  // What overflow gives: the ends of the range, by the carry.
  const uint32_t of_carry = static_cast<uint32_t>(low) & mask,
                 of_no_carry = static_cast<uint32_t>(high) & mask;
  return by_parts<Lanes>(
      [&](Words value, Ints carry, Ints overflow) {
        const Ints number = reinterpret_cast<Ints>(value);
        const Ints ends = number < low ? Ints{} + low : number > high ? Ints{} + high : number;
        const Words clamped = reinterpret_cast<Words>(ends) & mask;
        const Words of_overflow = carry ? Words{} + of_carry : Words{} + of_no_carry;
        if (!saturate) return overflow ? of_overflow : value & mask;
        const Words narrowing = (number >= low) & (number <= high) ? Words{} + mask : clamped;
        return overflow ? of_overflow & narrowing : clamped;
      },
      in.value, in.carry, in.overflow);
}

Lanes inserted_lanes(uint8_t lane, const Lanes& bits, const Lanes& old) {
  return by_parts<Lanes>([lane](const Words& x, const Words& y) { return inserted(lane, x, y); }, bits, old);
}

}  // namespace

AluFn find_alu(Op op) {
  static constexpr AluFn kFunctions[] = {
#define V3D_VC4_OP(op, text, add, mul, operands, floats) alu<Op::k##op>,
#include "gpu/qpu/isa/vc4.def"
  };
  return kFunctions[static_cast<int>(op)];
}

CarryFn find_carry(Op op) {
  static constexpr CarryFn kFunctions[] = {
#define V3D_VC4_OP(op, text, add, mul, operands, floats) kCarry<Op::k##op>,
#include "gpu/qpu/isa/vc4.def"
  };
  return kFunctions[static_cast<int>(op)];
}

ActionFn find_action(Op op, bool immediate_a, bool immediate_b) {
  static constexpr ActionFn kActions[][3] = {
#define V3D_VC4_OP(op, text, add, mul, operands, floats) \
  {operate<Op::k##op, false, false>, operate<Op::k##op, false, true>, operate<Op::k##op, true, false>},
#include "gpu/qpu/isa/vc4.def"
  };
  return kActions[static_cast<int>(op)][immediate_a ? 2 : immediate_b ? 1 : 0];
}

ActionFn flags_action(Op op, bool carries) {
  static constexpr ActionFn kActions[] = {
#define V3D_VC4_OP(op, text, add, mul, operands, floats) set_flags<kCarry<Op::k##op>>,
#include "gpu/qpu/isa/vc4.def"
  };
  return carries ? kActions[static_cast<int>(op)] : set_flags<nullptr>;
}

LanesI overflow(Op op, const Lanes& a, const Lanes& b, const Lanes& result) {
  switch (op) {
    case Op::kAdd:
      return as_int((a ^ result) & (b ^ result)) >> 31;
    case Op::kSub:
      return as_int((a ^ b) & (a ^ result)) >> 31;
    default:
      return LanesI{};
  }
}

Lanes unpacked(uint8_t unpack, bool to_float, const Lanes& v) {
  return by_parts<Lanes>([=](const Words& part) { return unpacked_operand(unpack, to_float, part); }, v);
}

Lanes packed_to_a(uint8_t pack, const Packable& result, const Lanes& old) {
  const bool saturate = pack >= 8;
  const uint8_t lane = pack & 7;
  if (lane == 0) {
    if (!saturate) return result.value;
    return by_parts<Lanes>(
        [](Words value, Ints carry, Ints overflow) {
          const Words of_overflow = carry ? Words{} + kSign : Words{} + kMagnitude;
          return overflow ? of_overflow : value;
        },
        result.value, result.carry, result.overflow);
  }
  if (lane >= 3) return inserted_lanes(lane, narrowed(result, 0, 255, 0xff, saturate), old);
  return inserted_lanes(
      lane, result.is_float ? half_of(result.value) : narrowed(result, -32768, 32767, 0xffff, saturate), old);
}

Lanes packed_to_unorm8(uint8_t pack, const Lanes& value, const Lanes& old) {
  return by_parts<Lanes>([pack](const Words& x, const Words& y) { return with_unorm8(pack, x, y); }, value,
                         old);
}

Lanes special_function(WritePort port, const Lanes& v) {
  const Lanes x = by_parts<Lanes>([port](const Words& part) { return sfu_argument(port, part); }, v);
  LanesF exact = {};
  switch (port) {
    case WritePort::kSfuRecip:
      exact = sfu::recip(as_float(x));
      break;
    case WritePort::kSfuRecipsqrt:
      exact = sfu::rsqrt(as_float(x));
      break;
    case WritePort::kSfuExp:
      exact = sfu::exp2(as_float(x));
      break;
    case WritePort::kSfuLog:
      exact = sfu::log2(as_float(x));
      break;
    default:
      break;
  }
  return by_parts<Lanes>(
      [port](const Words& argument, const Words& result) { return sfu_result(port, argument, result); }, x,
      as_uint(exact));
}

Lanes rotated_operand(const Lanes& v, bool from_accumulator, uint32_t count) {
  if (from_accumulator) return permute(v, (kLaneIndex - count) & 15u);
  return permute(v, (kLaneIndex & 12u) | ((kLaneIndex - count) & 3u));
}

Lanes immediate_lanes(uint32_t immediate, ImmediateMode mode) {
  if (mode == kImmediate32) return splat(immediate);
  const Lanes low = splat(immediate) >> kLaneIndex & 1u, high = splat(immediate) >> (kLaneIndex + 16u) & 1u;
  return mode == kImmediateSigned ? low - 2u * high : low + 2u * high;
}

}  // namespace v3d::qpu::vc4
