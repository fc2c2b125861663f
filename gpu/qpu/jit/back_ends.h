/// The back ends of this build, which make code of the host: `x86/` has those of x86-64, `none/` is built for
/// other processors.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/base/memory.h"
#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/graph/graph.h"
#include "gpu/qpu/jit/code/program_code.h"
#include "gpu/qpu/jit/jit.h"

namespace v3d::qpu::jit {

/// For a target that can_compile().
/// @param list  who gets the code as text; may be empty
/// @return nothing if the host refuses memory
std::shared_ptr<const ProgramCode> make_code(Target target, const flow::Flow& flow, CodeContent content,
                                             const JitCompiler::Lister& list, LeaveCounts& leaves);

/// A vc4::RunFn that can stand at any address. @param code  address of the first of the graph's instructions
/// @param is_sure  see vc4::RunCode  @return  empty if it cannot be made
std::vector<uint8_t> make_run_code(Target target, const graph::Graph& graph, GpuAddr code, bool is_sure);

}  // namespace v3d::qpu::jit
