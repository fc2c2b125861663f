#include "gpu/qpu/graph/lookup_graph.h"

#include <cstddef>
#include <cstdint>

#include "gpu/qpu/graph/lookup_nodes.h"
#include "gpu/qpu/run/thread.h"

namespace v3d::qpu::graph {
namespace {

using tmu::TextureLookup;

Value of_lookup(Graph& graph, Op op, size_t member) {
  const size_t offset = offsetof(Thread, pending) + offsetof(Thread::Pending, texture) + member;
  return {&graph, graph.make({.op = op, .immediate = static_cast<uint32_t>(offset)})};
}

}  // namespace

Graph lookup_graph(const tmu::LookupKind& kind, bool picks_lanes) {
  Graph graph;
  const auto load = [&](size_t member) { return of_lookup(graph, Op::kLoad, member); };
  const Value lanes = of_lookup(graph, Op::kLoadMask, offsetof(TextureLookup, exec));
  uint32_t num_kept = 0;
  LookupNodes nodes(graph, kind, lanes, num_kept, {.picks_lanes = picks_lanes, .leaves_out_levels = true});
  const LookupNodes::Point point = {
      {load(offsetof(TextureLookup, s)), load(offsetof(TextureLookup, t)), load(offsetof(TextureLookup, r))},
      load(offsetof(TextureLookup, b)),
      load(offsetof(TextureLookup, dref)),
      load(offsetof(TextureLookup, i))};
  if (kind.stored_words != 0) {
    const LookupNodes::Texel texel = nodes.fetched_texel(point);
    for (uint32_t n = 0; n < kind.stored_words; ++n) {
      const Value data = load(offsetof(TextureLookup, data) + n * sizeof(Lanes));
      graph.make({.op = Op::kStoreMemory,
                  .operands = {texel.address.id, data.id, (lanes & texel.exists).id},
                  .immediate = static_cast<uint32_t>(n * sizeof(uint32_t))});
    }
    return without_dead(graph);
  }
  const LookupNodes::Channels words = nodes.words(point);
  for (uint32_t n = 0; n < kind.num_words; ++n) {
    const Value word = choose(lanes, words[n], constant(graph, 0));
    graph.make({.op = Op::kStoreOutput, .operands = {word.id, kNoNode, kNoNode}, .immediate = n});
  }
  return without_dead(graph);
}

}  // namespace v3d::qpu::graph
