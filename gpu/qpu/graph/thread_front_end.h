/// The graph of a part of a program as a thread of a QPU of V3D 4.2 or 7.1 executes it: instructions one
/// after the other in one block of the flow, from the thread's registers to its registers. Whatever such
/// programs do has a graph: what has no expression is a function of the interpreter that is called, as ports
/// are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/graph/graph.h"

namespace v3d::qpu::graph {

/// Nodes of a flow, in one block of it.
struct ThreadPart {
  /// Nobody looks at the job meanwhile, and nodes of a graph tell their instruction in a byte.
  static constexpr uint32_t kMost = 200;
  /// Of a graph, which says how long its code takes to make, and how much of the stack it needs.
  static constexpr size_t kMostGraphNodes = 4096;

  uint32_t first = 0, count = 0;
  bool ends = false;  ///< the thread does, behind it
};

struct ThreadGraph {
  Graph graph;
  uint32_t uniforms = 0;  ///< words of the main stream that it takes
  uint32_t varyings = 0;  ///< components
  /// Of a branch at its end that moves the stream: the word that tells where to.
  std::optional<uint32_t> moves_by{};
};

/// Which way it leads (`lead`).
inline constexpr uint32_t kLeadsOn = 0, kBranches = 1;

/// What `read_port` N reads: N & 255. Before it N >> 8 words of the stream are taken.
enum class ThreadRead : uint8_t {
  kTmu,            ///< ldtmu
  kTlb,            ///< ldtlb
  kTlbConfigured,  ///< ldtlbu
  kUnifa,          ///< ldunifa
  kTextureConfig,  ///< nothing, wrtmuc is done
  kActiveLanes,    ///< a mask: active_lanes()
};

/// What `write_port` N writes to: the port of an effect, an address, and whether that takes a uniform, behind
/// the words that were taken before.
struct ThreadWrite {
  uint8_t effect, waddr;
  bool takes_uniform;
  uint32_t uniforms;
};
constexpr uint32_t encode(const ThreadWrite& w) {
  return w.effect | uint32_t{w.waddr} << 8 | uint32_t{w.takes_uniform} << 15 | w.uniforms << 16;
}
constexpr ThreadWrite decode_thread_write(uint32_t n) {
  return {static_cast<uint8_t>(n), static_cast<uint8_t>(n >> 8 & 0x7f), (n >> 15 & 1) != 0, n >> 16};
}

/// `call` N is the operation N of its operands a and b, unpacked, for the lanes of a mask.

/// @param fits  if the result is empty: so many of the instructions have a graph. The one behind them has an
///              operand that there is not, or is one too many.
std::optional<ThreadGraph> thread_graph(const flow::Flow& flow, const ThreadPart& part, uint32_t* fits);

}  // namespace v3d::qpu::graph
