/// program_words() reads a program of V3D 2.1 from memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gpu/base/memory.h"
#include "gpu/qpu/isa/vc4.h"

namespace v3d::qpu::vc4 {

/// Where a branch leads whose target the word alone says. @param index  of the word  @return  that of the
/// target
std::optional<uint32_t> branch_target(uint32_t index, const Instruction& instruction);

/// In their order, as the kernel checks them and compilers write them: up to the end that no branch leads
/// beyond, to a word that is no instruction, or to so many that nobody writes.
std::vector<uint64_t> program_words(Memory memory, GpuAddr entry);

}  // namespace v3d::qpu::vc4
