#include "gpu/qpu/jit/back_ends.h"

#include "gpu/qpu/jit/neon/emitter.h"

namespace v3d::qpu::jit {

/// NEON is part of the processors that Linux runs on.
bool can_compile(Target target) { return target == Target::kNeon; }

bool compiles_programs(Target) { return false; }

const char* why_no_target() { return "there is no processor for which this was built"; }

// NOLINTNEXTLINE(performance-unnecessary-value-param): back ends that have code keep it
std::shared_ptr<const ProgramCode> make_code(Target, const flow::Flow&, CodeContent,
                                             const JitCompiler::Lister&, LeaveCounts&) {
  return nullptr;
}

const char* operation_without_code(Target, const graph::Graph& graph) {
  for (const graph::Node& node : graph.nodes())
    if (!neon::Emitter::has_code(node.op)) return graph::info(node.op).text;
  return nullptr;
}

/// It is sure of all results.
std::vector<uint8_t> make_run_code(Target, const graph::Graph& graph, GpuAddr code, bool) {
  return neon::Emitter(graph::by_rounding(graph), code).make();
}

/// As programs of V3D 4.2 and 7.1 are interpreted.
std::vector<uint8_t> make_block_code(Target, const graph::Graph&) { return {}; }

}  // namespace v3d::qpu::jit
