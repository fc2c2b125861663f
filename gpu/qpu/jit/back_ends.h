/// The back ends of this build, which make code of the host: `x86/` has those of x86-64, `arm64/` that of
/// 64-bit Arm.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/base/memory.h"
#include "gpu/qpu/graph/graph.h"
#include "gpu/qpu/jit/target.h"

namespace v3d::qpu::jit {

/// Null, or the name of an operation of the graph of which the target's back end makes no code.
const char* operation_without_code(Target target, const graph::Graph& graph);
/// A vc4::RunFn that can stand at any address, of a graph whose operations all have code.
/// @param code  address of the first of the graph's instructions
/// @param is_sure  see vc4::RunCode
/// @return  empty if it cannot be made
std::vector<uint8_t> make_run_code(Target target, const graph::Graph& graph, GpuAddr code, bool is_sure);

/// Whether code of blocks may pick lanes of others (graph::Host).
bool picks_lanes(Target target);
/// Whether hosts with registers for it draw two blocks side by side.
enum class Pairs : uint8_t { kWherePays, kAlways };
/// Whether code gathers where there is another way: AVX2 loads what all lanes gather one by one, AVX-512
/// permutes small tables.
enum class Gathers : uint8_t { kWherePays, kAvoided, kAlways };
/// The same of a BlockFn.
std::vector<uint8_t> make_block_code_with(Target target, const graph::Graph& graph, Pairs pairs,
                                          Gathers gathers = Gathers::kWherePays);
inline std::vector<uint8_t> make_block_code(Target target, const graph::Graph& graph) {
  return make_block_code_with(target, graph, Pairs::kWherePays);
}
/// The same of a BatchFn.
std::vector<uint8_t> make_batch_code(Target target, const graph::Graph& graph);
/// The same of a LookupFn.
std::vector<uint8_t> make_lookup_code(Target target, const graph::Graph& graph);
/// The same of a ThreadFn. @see ThreadEmitter
std::vector<uint8_t> make_thread_code(Target target, const graph::Graph& graph, uint32_t first, bool ends);
/// The same of a VertexFn.
std::vector<uint8_t> make_vertex_code(Target target, const graph::Graph& graph);

}  // namespace v3d::qpu::jit
