/// This header says where the Thread has what lookups of the TMU and their results are, and what generated
/// code for loads and stores by address knows of them, whatever the host's vectors.
#pragma once

#include <xbyak/xbyak.h>

#include <cstddef>
#include <cstdint>

#include "gpu/qpu/run/thread.h"

namespace v3d::qpu::jit {

using Pending = Thread::Pending;
constexpr size_t in_pending(size_t offset) { return offsetof(Thread, pending) + offset; }

inline constexpr size_t kHead = in_pending(offsetof(Pending, fifo_head)),
                        kTail = in_pending(offsetof(Pending, fifo_tail)),
                        kFifo = in_pending(offsetof(Pending, fifo));
inline constexpr size_t kTexture = in_pending(offsetof(Pending, texture));
inline constexpr size_t kWritten = kTexture + offsetof(tmu::TextureLookup, written),
                        kNumData = kTexture + offsetof(tmu::TextureLookup, num_data),
                        kData = kTexture + offsetof(tmu::TextureLookup, data);
static_assert(kNumData == kWritten + 1);
static_assert(sizeof(Varying) == 128 && sizeof(Lanes) == 64);
static_assert(alignof(Thread) == sizeof(Lanes) && alignof(Varying) == sizeof(Lanes));

/// Of the configuration byte (texture.md 2.4): its operations, shifted to their place.
inline constexpr uint32_t kConfigAtStart = 0xffffffff, kOperation = 0x78, kPerPixel = 0x80;
inline constexpr uint32_t kAdd = 0 << 3, kCount = 8 << 3, kRegularAccess = 15 << 3;
/// Of an access.
inline constexpr uint32_t kMostWords = 4;
/// Above it a vector may run over the end of the addresses.
inline constexpr uint32_t kHighAddress = 0xfffffff0;
/// Words of the types of 32 bits (bits 2:0 of the configuration), four bits each.
inline constexpr uint32_t kWordsOfTypes = 1u << 28 | 4u << 16 | 3u << 12 | 2u << 8;

/// Four registers, in each 128 bits the words 0 to 3 of one lane, to words 0 to 3 of all lanes. And back,
/// since it is its own inverse.
template <typename Vector>
void transpose(Xbyak::CodeGenerator& code, const Vector (&rows)[4], const Vector& temp) {
  const auto& [a, b, c, d] = rows;
  code.vunpcklps(temp, a, b);  // a0 b0 a1 b1
  code.vunpckhps(a, a, b);     // a2 b2 a3 b3
  code.vunpcklps(b, c, d);     // c0 d0 c1 d1
  code.vunpckhps(c, c, d);     // c2 d2 c3 d3
  code.vunpckhpd(d, a, c);     // word 3
  code.vunpcklpd(c, a, c);     // word 2
  code.vunpcklpd(a, temp, b);  // word 0
  code.vunpckhpd(b, temp, b);  // word 1
}

}  // namespace v3d::qpu::jit
