#include "gpu/qpu/jit/back_ends.h"

#include <algorithm>

#include "gpu/qpu/jit/neon/batch_emitter.h"
#include "gpu/qpu/jit/neon/block_emitter.h"
#include "gpu/qpu/jit/neon/lookup_emitter.h"
#include "gpu/qpu/jit/neon/run_emitter.h"
#include "gpu/qpu/jit/neon/thread_emitter.h"
#include "gpu/qpu/jit/neon/vertex_emitter.h"

namespace v3d::qpu::jit {

/// NEON is part of the processors that Linux runs on.
bool can_compile(Target target) { return target == Target::kNeon; }

const char* why_no_target() { return "there is no processor for which this was built"; }

/// They have code (Op::kPickLanes); that it pays in blocks was not measured.
bool picks_lanes(Target) { return false; }

const char* operation_without_code(Target, const graph::Graph& graph) {
  const auto has_code = [](const graph::Node& node) {
    return neon::RunEmitter::has_code(node) || neon::BlockEmitter::has_code(node) ||
           neon::VertexEmitter::has_code(node) || neon::BatchEmitter::has_code(node) ||
           neon::ThreadEmitter::has_code(node) || neon::LookupEmitter::has_code(node);
  };
  const auto& nodes = graph.nodes();
  const auto found = std::find_if_not(nodes.begin(), nodes.end(), has_code);
  return found == nodes.end() ? nullptr : graph::info(found->op).text;
}

/// It is sure of all results.
std::vector<uint8_t> make_run_code(Target, const graph::Graph& graph, GpuAddr code, bool) {
  return neon::RunEmitter(graph::by_rounding(graph), code).make();
}

std::vector<uint8_t> make_block_code_with(Target, const graph::Graph& graph, Pairs, Gathers) {
  return neon::BlockEmitter(graph).make();
}

std::vector<uint8_t> make_batch_code(Target, const graph::Graph& graph) {
  return neon::BatchEmitter(graph).make();
}

std::vector<uint8_t> make_lookup_code(Target, const graph::Graph& graph) {
  return neon::LookupEmitter(graph).make();
}

std::vector<uint8_t> make_thread_code(Target, const graph::Graph& graph, uint32_t first, bool ends) {
  return neon::ThreadEmitter(graph, first, ends).make();
}

std::vector<uint8_t> make_vertex_code(Target, const graph::Graph& graph) {
  return neon::VertexEmitter(graph).make();
}

}  // namespace v3d::qpu::jit
