/// With a ProgramScope the code that runs a program says so, for the handler of MMU faults.
#pragma once

#include "gpu/base/qpu_place.h"
#include "gpu/qpu/run/compiled.h"
#include "gpu/qpu/run/thread.h"
#include "gpu/qpu/run/vc4_thread.h"

namespace v3d::qpu {

/// As long as this lives the host thread runs that program.
class ProgramScope {
 public:
  /// @param stage  a literal
  /// @param thread  outlives the scope
  ProgramScope(const char* stage, GpuAddr program, const Thread& thread) {
    t_qpu_place = {stage, program, &thread, instruction_of, pay};
  }
  ProgramScope(const char* stage, GpuAddr program, const vc4::Thread& thread) {
    t_qpu_place = {stage, program, &thread, instruction_of_vc4, nullptr};
  }
  ~ProgramScope() { t_qpu_place.stage = nullptr; }
  ProgramScope(const ProgramScope&) = delete;
  ProgramScope& operator=(const ProgramScope&) = delete;

 private:
  static uint32_t instruction_of(const void* thread, const void* host_pc) {
    const auto& t = *static_cast<const Thread*>(thread);
    return t.host_run ? t.host_run->instruction(t, host_pc) : t.pc;
  }
  static bool pay(const void* thread, const void* host_pc, uint64_t instructions, uint64_t* left) {
    const auto& t = *static_cast<const Thread*>(thread);
    return t.host_run && t.host_run->pay(host_pc, instructions, left);
  }
  static uint32_t instruction_of_vc4(const void* thread, const void* /*host_pc*/) {
    return static_cast<const vc4::Thread*>(thread)->pc;
  }
};

}  // namespace v3d::qpu
