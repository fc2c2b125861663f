/// Where instructions write, and what back ends ask about the halves of one.
#pragma once

#include <cstdint>

#include "gpu/qpu/isa/instruction.h"

namespace v3d::qpu::jit {

struct Place {
  enum class Target : uint8_t { kNone, kRegister, kQuad, kRep, kMsf, kPort } target = Target::kNone;
  Register reg = kNoRegister;
  Effect effect = Effect::kNothing;
  bool takes_uniform = false;
  uint8_t waddr = kWaddrNop;
};
/// @param version  of the chip
Place place_of(int version, bool magic, uint8_t waddr);
Place place_of(int version, const AluHalf& half);
/// Whether the interpreter's function does it.
bool writes_by_call(const Place& to);

bool is_plain_move(const AluHalf& half);
bool reads(const AluHalf& half, Register r);
/// Whether the flag that it sets needs the operands.
bool looks_at_operands(const AluHalf& half);

}  // namespace v3d::qpu::jit
