/// This makes a ProgramCode of a flow: a graph and a function of the host for each part of its blocks.
#pragma once

#include <memory>

#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/jit/code/program_code.h"
#include "gpu/qpu/jit/jit.h"
#include "gpu/qpu/jit/target.h"

namespace v3d::qpu::jit {

/// @param list     gets the graphs as text; may be empty
/// @param lookups  outlives the code
/// @return  nothing if the host refuses memory
std::shared_ptr<const ProgramCode> build_program(Target target, const flow::Flow& flow, CodeContent content,
                                                 const JitCompiler::Lister& list, LeaveCounts& leaves,
                                                 LookupCompiler& lookups);

}  // namespace v3d::qpu::jit
