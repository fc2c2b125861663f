/// A QpuPlace says which QPU program this host thread runs, for the handler of accesses that go wrong; and
/// what the handler says of them.
#pragma once

#include <cstdint>

namespace v3d {

struct QpuPlace {
  const char* stage = nullptr;  ///< a literal; null: none runs
  uint32_t program = 0;         ///< address of its first instruction
  const void* thread = nullptr;
  /// Address of the instruction that the thread executes. Safe in a signal handler of this host thread.
  uint32_t (*instruction)(const void* thread) = nullptr;
};
inline thread_local QpuPlace t_qpu_place;

/// What accesses of this host thread that went wrong cost since somebody asked, as a WorkMeter counts: each
/// is a signal, and a mapping that is made.
inline constinit thread_local uint32_t t_fault_cost = 0;
inline constexpr uint32_t kFaultCost = 1500;

}  // namespace v3d
