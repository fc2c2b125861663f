/// The graph of a function for one texture lookup of 16 lanes, which compiled programs call
/// (gpu/qpu/jit/lookup_functions.h). Its operations besides values: `load` N and `load_mask` N of the thread,
/// where the parameters stand of the lookup under way, and in TextureLookup::exec the lanes that take part;
/// texture_word and level_word of texture 0; `store_output` a N of the Nth return word; and `store_memory` of
/// texels.
#pragma once

#include "gpu/qpu/graph/graph.h"
#include "gpu/tmu/lookup/lookup_kind.h"

namespace v3d::qpu::graph {

/// @param kind  with code. @param picks_lanes  see Host of program_front_end.h
Graph lookup_graph(const tmu::LookupKind& kind, bool picks_lanes);

}  // namespace v3d::qpu::graph
