/// Whether batches of a program in stretches go alone: what one of them does, and for how long, is the same
/// whatever others of its dispatch did before, but for what these store where it loads.
#pragma once

#include <vector>

#include "gpu/qpu/graph/graph.h"

namespace v3d::qpu::graph {

/// Nothing that was loaded decides where a batch goes, so that it waits for none; and none loads after it
/// stored, so that no two exchange words. Barriers are for who calls to regard.
/// @param parts  with their ends, the first one begins the program
bool go_alone(const std::vector<const Graph*>& parts);

}  // namespace v3d::qpu::graph
