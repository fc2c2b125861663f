#include "gpu/qpu/jit/back_ends.h"

namespace v3d::qpu::jit {

bool can_compile(Target) { return false; }

const char* why_no_target() { return "no compiler makes code for 64-bit Arm"; }

std::shared_ptr<const ProgramCode> make_code(Target, const flow::Flow&, CodeContent,
                                             const JitCompiler::Lister&, LeaveCounts&) {
  return nullptr;
}

std::vector<uint8_t> make_run_code(Target, const graph::Graph&, GpuAddr, bool) { return {}; }

}  // namespace v3d::qpu::jit
