/// is_instruction() tells of words of every generation, as disassemble() and is_canonical() of instruction.h
/// do, whether they are one; those of 2.1 have no Instruction.
#pragma once

#include <cstdint>

#include "gpu/chip/generation.h"

namespace v3d::qpu {

/// False if it names a reserved code.
bool is_instruction(chip::Generation generation, uint64_t word);

}  // namespace v3d::qpu
