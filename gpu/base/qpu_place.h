/// A QpuPlace says which QPU program this host thread runs, for the handler of accesses that go wrong.
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
};
inline thread_local QpuPlace t_qpu_place;

}  // namespace v3d
