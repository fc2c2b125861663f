/// What code of graphs has in the host's registers, and its frame: offsets from rsp.
#pragma once

#include <xbyak/xbyak.h>

#include <cstddef>
#include <cstdint>

namespace v3d::qpu::jit {

inline constexpr int kLaneBytes = 64;          // of a value
inline constexpr int kOperands = 0,            // of calls
    kModeBefore = kOperands + 2 * kLaneBytes,  // MXCSR, of who needs the host's meanwhile
    kSaved = kOperands + 3 * kLaneBytes, kSavedBytes = 32 * kLaneBytes, kSlots = kSaved + kSavedBytes;

inline constexpr Xbyak::Reg64 kThread(Xbyak::Operand::RBX),
    kUniforms(Xbyak::Operand::R12),  // where the first uniform stands
    kVaryings(Xbyak::Operand::R13),
    kMemory(Xbyak::Operand::R14);  // the host's address of 0
/// Of blocks with lookups: the host's address of half the address space, as indices have a sign.
inline constexpr Xbyak::Reg64 kMiddleOfMemory(Xbyak::Operand::R9);
inline constexpr Xbyak::Reg64 kTextures(Xbyak::Operand::R8);  // a tmu::TextureData each

/// Of AVX-512: the lanes that a gather has left.
inline const Xbyak::Opmask kLanesLeft(3);

/// Of AVX-512: where the largest results are noted of which code is not sure.
inline constexpr int kUnsureUnit = 29;

/// Of a member of the thread.
constexpr int offset_of(size_t offset) { return static_cast<int>(offset); }

}  // namespace v3d::qpu::jit
