/// These functions compute the operations of V3D 2.1, on all 16 lanes. Facts: vc4-qpu.md 2 and 6.1.
///
/// Sums and products are rounded toward zero and overflow to infinity; denormals and zeros are +0; there are
/// no NaNs. Nothing here depends on how the host rounds: what it rounds to nearest is exact, or its error is.
#pragma once

#include <cstdint>

#include "gpu/base/lanes.h"
#include "gpu/qpu/isa/vc4.h"
#include "gpu/qpu/run/vc4_action.h"

namespace v3d::qpu::vc4 {

/// @param a, b  after unpacking
using AluFn = Lanes (*)(const Lanes& a, const Lanes& b);
/// The carry flag of a result: all ones in the lanes where it is set.
using CarryFn = LanesI (*)(const Lanes& a, const Lanes& b, const Lanes& result);

/// @param op  neither kNop nor kReserved
AluFn find_alu(Op op);
/// Null where C is 0. Of the mul ALU it is taken to be 0: it was not recorded.
CarryFn find_carry(Op op);

/// The operation on registers of a thread: `to` = op(`a`, `b`), one of which may be the immediate.
/// @param op  neither kNop nor kReserved
ActionFn find_action(Op op, bool immediate_a, bool immediate_b);
/// Z, N and C of a result that is in `to`, of the operands `a` and `b`.
/// @param carries  C is as find_carry() says, or 0
ActionFn flags_action(Op op, bool carries);

// ---- Conversions

/// What a word does to operands that come through the A port or from r4.
/// @param unpack  code 0..7  @param to_float  a float operation consumes it, or it is r4
Lanes unpacked(uint8_t unpack, bool to_float, const Lanes& v);

/// A result as the packs see it.
struct Packable {
  Lanes value;
  LanesI carry = {};
  LanesI overflow = {};   ///< signed, of add and sub
  bool is_float = false;  ///< FloatUse kGivesFloats
};
/// Signed overflow of a result. Only add and sub have it.
LanesI overflow(Op op, const Lanes& a, const Lanes& b, const Lanes& result);
/// What a register of file A holds afterwards. @param pack  code 0..15  @param old  what it held
Lanes packed_to_a(uint8_t pack, const Packable& result, const Lanes& old);
/// With pm, of the mul ALU. @param pack  0, 3..7
Lanes packed_to_unorm8(uint8_t pack, const Lanes& value, const Lanes& old);

/// The special functions. Their bits are not published: these are the correctly rounded values.
/// @param port  kSfuRecip..kSfuLog
Lanes special_function(WritePort port, const Lanes& v);

/// The result of the mul ALU as the vector rotation needs it: what its lanes are computed of.
/// @param from_accumulator  r0..r3, which rotate through all lanes; others stay in their quads
Lanes rotated_operand(const Lanes& v, bool from_accumulator, uint32_t count);

/// Bits of lane i: 16 + i and i.
Lanes immediate_lanes(uint32_t immediate, ImmediateMode mode);

}  // namespace v3d::qpu::vc4
