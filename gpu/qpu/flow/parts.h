/// The steps of analyse(); each fills its part of a Flow from those before it.
#pragma once

#include "gpu/qpu/flow/flow.h"

namespace v3d::qpu::flow {

/// Instructions, nodes, blocks without `loops` and `live`, and what stands beside them.
void walk(const CodeReader& reader, Flow& flow);
/// Block::loops.
void count_loops(Flow& flow);
/// Block::live and Flow::registers.
void find_live(Flow& flow);
/// Flow::uniforms and Flow::uniform_jumps.
void place_uniforms(Flow& flow);

/// Blocks that may follow a block.
template <typename Fn>
void for_each_successor(const Block& block, const Fn& fn) {
  if (block.exit.next != kNowhere) fn(block.exit.next);
  if (block.exit.taken != kNowhere) fn(block.exit.taken);
}

}  // namespace v3d::qpu::flow
