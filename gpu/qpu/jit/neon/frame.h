/// What code of graphs has in the registers of AArch64, and its frame: offsets from sp.
#pragma once

#include <aarch64/macro-assembler-aarch64.h>

#include <cstddef>
#include <cstdint>

namespace v3d::qpu::jit::neon {

inline constexpr int kLaneBytes = 64;                               // of a value
inline constexpr int kParts = 4, kPartBytes = kLaneBytes / kParts;  // registers of a value
inline constexpr int kOperands = 0,                                 // of calls
    kSaved = kOperands + 3 * kLaneBytes, kLink = kSaved + 32 * kPartBytes, kSlots = kLink + kLaneBytes;

// Behind scratch registers that calls change, x9 to x15, and those of the assembler, x16 and x17.
using vixl::aarch64::Register;
inline const Register kThread = vixl::aarch64::x19;
inline const Register kUniforms = vixl::aarch64::x20;  // the host's address of the first one
inline const Register kVaryings = vixl::aarch64::x21;
inline const Register kPool = vixl::aarch64::x22;       // constants
inline const Register kUpper = vixl::aarch64::x23;      // the thread from kUpperAt on
inline const Register kUppermost = vixl::aarch64::x24;  // and from kUppermostAt on
inline const Register kHostMode = vixl::aarch64::x25;   // of FPCR
inline const Register kOwnMode = vixl::aarch64::x26;
inline const Register kCode = vixl::aarch64::x28;  // GPU address of the first instruction
// Of functions that reach textures or memory by address, in place of those.
inline const Register kTextures = vixl::aarch64::x21;        // tmu::TextureData of the draw or dispatch
inline const Register kMiddleOfMemory = vixl::aarch64::x25;  // the host's address of half the address space

/// Lanes of a gather, in bits 0, 4, 8 and so on of a word of 64: what gathers is called with no operands.
inline constexpr int kGathered = kSaved - kLaneBytes;

/// A pair of registers is loaded from up to 1 KiB beside a base.
inline constexpr int64_t kReach = 1024, kUpperAt = 2 * kReach, kUppermostAt = 4 * kReach;

}  // namespace v3d::qpu::jit::neon
