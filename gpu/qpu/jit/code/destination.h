/// A Destination is where an instruction writes. Here, too, is what back ends ask about the halves of one.
#pragma once

#include <cstdint>
#include <optional>

#include "gpu/chip/generation.h"
#include "gpu/qpu/isa/instruction.h"

namespace v3d::qpu::jit {

struct Destination {
  enum class Target : uint8_t { kNone, kRegister, kQuad, kRep, kMsf, kPort } target = Target::kNone;
  Register reg = kNoRegister;
  Effect effect = Effect::kNothing;
  bool takes_uniform = false;
  uint8_t waddr = kWaddrNop;
};
/// @param generation  of the chip
Destination destination_of(chip::Generation generation, bool magic, uint8_t waddr);
Destination destination_of(chip::Generation generation, const AluHalf& half);
/// Whether the interpreter's function does it.
bool writes_by_call(const Destination& to);

/// How a signal of 4.2 rotates an operand of the mul half.
struct Rotation {
  std::optional<uint32_t> turn;  ///< lane i takes lane i + turn; empty: i minus lane 0 of r5
  bool in_quads;                 ///< each quad for itself, otherwise all lanes
};
/// @param i  with kRotate
/// @return empty if the operand stays as it is
std::optional<Rotation> rotation_of(const Instruction& i, const Operand& operand);
inline constexpr Register kRotateCount = accumulator(5);  ///< without Rotation::turn
/// The byte by which the host's shuffles turn quads.
uint8_t quad_order(uint32_t turn);

bool is_plain_move(const AluHalf& half);
bool reads(const AluHalf& half, Register r);
/// Whether the flag that it sets needs the operands.
bool looks_at_operands(const AluHalf& half);

}  // namespace v3d::qpu::jit
