/// Bytes of pixels, for hosts with instructions that narrow integers and limit them on the way.
#pragma once

#include "gpu/qpu/graph/graph.h"

namespace v3d::qpu::graph {

/// A pass: of words whose bytes are channels (byte_of_channel() of gpu/qpu/run/target_lanes.h), four are
/// packed at a time by Op::kPackWords and Op::kPackBytes, which also limit them to 0 and 255.
Graph with_packed_bytes(const Graph& graph);

}  // namespace v3d::qpu::graph
