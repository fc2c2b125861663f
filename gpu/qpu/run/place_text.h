/// These functions say in words where programs stopped or failed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gpu/chip/generation.h"
#include "gpu/qpu/run/program.h"
#include "gpu/qpu/run/thread.h"

namespace v3d::qpu {

/// "pc 0x00001008 (nop ; nop ; ldtmu.rf3)". @param word  at the address, if it is known
std::string pc_text(chip::Generation generation, GpuAddr pc, std::optional<uint64_t> word);
/// The same of a thread that stopped.
std::string pc_text(const Program& program, const Thread& thread);

/// Of a thread that stopped with Stop::kHang: "invalid instruction at pc 0x00001008, word
/// 0x0000000000000000".
std::string hang_text(const Program& program, const Thread& thread);

}  // namespace v3d::qpu
