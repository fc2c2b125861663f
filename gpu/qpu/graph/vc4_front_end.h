/// The front end makes a graph of what a run of steps of V3D 2.1 does.
#pragma once

#include "gpu/qpu/graph/graph.h"
#include "gpu/qpu/run/vc4_program.h"

namespace v3d::qpu::graph {

/// What the actions of chunk.steps[first].run do, that has steps. Of registers and flags nothing is stored
/// where the program ends.
Graph graph_of(const vc4::Chunk& chunk, uint32_t first);

}  // namespace v3d::qpu::graph
