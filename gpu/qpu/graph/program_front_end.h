/// This makes the graph of a block of fragments: interpolation, the depth test, the whole program and what it
/// colours. And that of a batch of vertices: a coordinate or vertex program, from input rows to output rows.
/// And that of a batch of a dispatch: a compute program, from its payload to what it stores.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/graph/graph.h"
#include "gpu/qpu/run/batch_code.h"
#include "gpu/qpu/run/block_code.h"
#include "gpu/qpu/run/vertex_code.h"

namespace v3d::qpu::graph {

/// Numbers of planes: `plane` N. Components follow.
inline constexpr uint32_t kPlaneZ = 0, kPlaneR = 1, kFirstComponent = 2;
/// What `load_tile` and `store_tile` reach: the depth, and words of colours from this one on.
inline constexpr uint32_t kTileDepth = 0, kTileColor = 1;

/// What `expect` N expects of its lanes.
inline constexpr uint32_t kExpectSome = 0, kExpectNone = 1;

struct BlockGraph {
  Graph graph;
  uint32_t uniforms = 0;                          ///< words that the program reads
  std::vector<IndirectWord> indirect{};           ///< and those by an address
  std::optional<uint32_t> depth_configuration{};  ///< @see BlockCode
  uint32_t instructions = 0;                      ///< that the program executes
  bool takes_long = false;                        ///< @see BlockCode
};

/// What the graph may make use of.
struct Host {
  bool picks_lanes = false;  ///< Op::kPickLanes and Op::kLeastOfLanes have code
};

/// Empty if the program is not one line of operations that have an expression, loops unrolled, which gives
/// each pixel one colour of four halves, or none: then `why` says what else it does.
std::optional<BlockGraph> block_graph(const flow::Flow& flow, const BlockKey& key, const char** why,
                                      const Host& host = {});

/// What such a program takes of its draws. Empty as above, or if that is too much.
std::optional<BlockLookups> find_lookups(const flow::Flow& flow, const char** why);

struct VertexGraph {
  Graph graph;
  uint32_t uniforms = 0;      ///< words that the program reads
  uint32_t instructions = 0;  ///< of the program
  VertexRows rows;
  std::vector<IndirectWord> indirect{};  ///< words that it reads by an address
  std::vector<uint32_t> numbers{};       ///< uniforms that the graph takes for no NaNs
};

/// Empty if the program is not one straight line of operations that have an expression, with rows that are
/// constants or uniforms: then `why` says what else it does.
std::optional<VertexGraph> vertex_graph(const flow::Flow& flow, const char** why);

struct BatchGraph {
  Graph graph;
  uint32_t uniforms = 0;                 ///< words that the program reads
  std::vector<IndirectWord> indirect{};  ///< and those by an address
  uint32_t instructions = 0;             ///< that the program executes
};

/// Empty if the program is not one line of operations that have an expression, loops unrolled, where branches
/// that lanes decide on are not taken and come before all stores: then `why` says what else it does.
std::optional<BatchGraph> batch_graph(const flow::Flow& flow, const BatchKey& key, const char** why);

/// What such a program takes of its dispatches. Empty as above, or if that is too much.
std::optional<BlockLookups> find_batch_lookups(const flow::Flow& flow, const char** why);

}  // namespace v3d::qpu::graph
