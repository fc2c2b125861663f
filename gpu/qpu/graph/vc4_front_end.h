/// The front end makes a graph of what a stretch of instructions of V3D 2.1 does.
#pragma once

#include "gpu/qpu/graph/graph.h"
#include "gpu/qpu/run/vc4_stretch.h"

namespace v3d::qpu::graph {

/// Of registers and flags nothing is stored where the program ends. Instructions count from the first one of
/// the stretch.
Graph graph_of(const vc4::Stretch& stretch);

}  // namespace v3d::qpu::graph
