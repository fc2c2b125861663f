/// With a ProgramScope the code that runs a program says so, for the handler of MMU faults.
#pragma once

#include "gpu/base/qpu_place.h"
#include "gpu/qpu/run/thread.h"
#include "gpu/qpu/run/vc4_thread.h"

namespace v3d::qpu {

/// As long as this lives the host thread runs that program.
class ProgramScope {
 public:
  /// @param stage  a literal
  /// @param thread  outlives the scope
  ProgramScope(const char* stage, GpuAddr program, const Thread& thread) {
    t_qpu_place = {stage, program, &thread, instruction_of<Thread>};
  }
  ProgramScope(const char* stage, GpuAddr program, const vc4::Thread& thread) {
    t_qpu_place = {stage, program, &thread, instruction_of<vc4::Thread>};
  }
  ~ProgramScope() { t_qpu_place.stage = nullptr; }
  ProgramScope(const ProgramScope&) = delete;
  ProgramScope& operator=(const ProgramScope&) = delete;

 private:
  /// Who executes the thread, compiled or not, keeps its pc before all that may find no memory.
  template <typename OfThread>
  static uint32_t instruction_of(const void* thread) {
    return static_cast<const OfThread*>(thread)->pc;
  }
};

}  // namespace v3d::qpu
