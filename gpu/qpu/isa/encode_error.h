/// An EncodeError says why an instruction has no word.
#pragma once

#include <string>

#include "gpu/chip/generation.h"
#include "gpu/qpu/isa/instruction.h"

namespace v3d::qpu {

struct EncodeError {
  enum class Where : uint8_t { kWord, kAdd, kMul, kSignals } where;
  std::string message;
};

/// @param instruction  one that encode() refuses; not a branch
EncodeError explain(chip::Generation generation, const Instruction& instruction);

/// Whether the ALU has the operation with these conversions, wherever its operands come from.
bool has_form(chip::Generation generation, Alu alu, const AluHalf& half);

}  // namespace v3d::qpu
