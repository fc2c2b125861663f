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
  return as_int(by_parts<Lanes>(
      [op](const Words& x, const Words& y, const Words& z) { return overflow_of(op, x, y, z); }, a, b,
      result));
}

Lanes unpacked(uint8_t unpack, bool to_float, const Lanes& v) {
  return by_parts<Lanes>([=](const Words& part) { return unpacked_operand(unpack, to_float, part); }, v);
}

Lanes packed_to_a(uint8_t pack, const Packable& result, const Lanes& old) {
  return by_parts<Lanes>(
      [&](const Words& value, const Words& carry, const Words& overflow, const Words& part) {
        return with_pack_to_a<Words>(pack, {value, carry, overflow, result.is_float}, part);
      },
      result.value, as_uint(result.carry), as_uint(result.overflow), old);
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
