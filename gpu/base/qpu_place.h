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
  /// @param host_pc  what the host executes
  uint32_t (*instruction)(const void* thread, const void* host_pc) = nullptr;
  /// The access cost as much as so many instructions: those are taken from what the thread may execute before
  /// it looks at its job, if it can be done. As safe. @param left  the host's register r15
  /// @return  whether it was done
  bool (*pay)(const void* thread, const void* host_pc, uint64_t instructions, uint64_t* left) = nullptr;
};
inline thread_local QpuPlace t_qpu_place;

/// What accesses of this host thread that went wrong cost since somebody asked, as a WorkMeter counts, but
/// for those that were paid: each is a signal, and a mapping that is made.
inline constinit thread_local uint32_t t_fault_cost = 0;
inline constexpr uint32_t kFaultCost = 1500;

}  // namespace v3d
