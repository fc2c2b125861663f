/// The back ends of this build, which make code of the host: `x86/` has those of x86-64, `none/` is built for
/// other processors.
#pragma once

#include <memory>

#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/jit/code/program_code.h"
#include "gpu/qpu/jit/jit.h"

namespace v3d::qpu::jit {

/// For a target that can_compile().
/// @param list  who gets the code as text; may be empty
/// @return nothing if the host refuses memory
std::shared_ptr<const ProgramCode> make_code(Target target, const flow::Flow& flow, CodeContent content,
                                             const JitCompiler::Lister& list, LeaveCounts& leaves);

}  // namespace v3d::qpu::jit
