/// Instructions that store to memory, as compilers make them for 32-bit registers of devices.
#pragma once

#include <cstdint>

namespace v3d::shim {

#if defined(__x86_64__)
/// Of a thread that a fault stopped: the registers by their numbers in instructions, and the flags.
struct StoppedThread {
  uint64_t registers[16];  ///< rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 ...
  uint64_t flags;
};

struct Store {
  uint32_t length;  ///< of the instruction, bytes
  uint32_t width;   ///< bytes stored: 1, 2, 4 or 8
  uint64_t value;
};

/// Decodes the instruction at `code`, computes what it stores, and what it does to the registers and flags of
/// the thread. False: it is none that is known here, and nothing has changed.
/// @param code  15 bytes, or zeros behind those that there are  @param old  what is in memory now, 8 bytes
bool execute_store(const uint8_t* code, uint64_t old, StoppedThread* thread, Store* store);
#endif

}  // namespace v3d::shim
