#include <algorithm>
#include <vector>

#include "gpu/qpu/flow/parts.h"

namespace v3d::qpu::flow {
namespace {

// What lands before the operands of a node are read.
Resources landings(const Flow& flow, const Node& node) {
  Resources landed;
  if (node.in_flight.vary & 1) landed.registers.add(isa(flow.setting.generation).implicit);
  if (node.in_flight.sfu & 1) landed.registers.add(kSfuResult);
  return landed;
}

Resources live_before(const Flow& flow, const Node& node, Resources live) {
  const Access& access = flow.access(node);
  return ((live - access.destroys) | access.reads) - landings(flow, node);
}

// What is live after a block. After a gap anything may be read.
Resources live_behind(const Flow& flow, const Block& block) {
  Resources live;
  for_each_successor(block, [&](uint32_t next) { live |= flow.blocks[next].live; });
  if (block.exit.kind == Exit::Kind::kGap)
    live = {RegisterSet::of_rf(~uint64_t{0}) | RegisterSet::accumulators(), 0xffff};
  return live;
}

class Liveness {
 public:
  explicit Liveness(Flow& flow) : flow_(flow), from_(flow.blocks.size()), open_(flow.blocks.size()) {
    for (uint32_t b = 0; b < flow.blocks.size(); ++b) {
      for_each_successor(flow.blocks[b], [&](uint32_t next) { from_[next].push_back(b); });
      open_.add(b);
    }
  }

  void run() {
    while (!open_.empty()) {
      const uint32_t b = open_.take();
      Block& block = flow_.blocks[b];
      Resources live = live_behind(flow_, block);
      for (uint32_t n = block.first + block.count; n-- > block.first;)
        live = live_before(flow_, flow_.nodes[n], live);
      if (live == block.live) continue;
      block.live = live;
      for (const uint32_t before : from_[b]) open_.add(before);
    }
  }

 private:
  Flow& flow_;
  std::vector<std::vector<uint32_t>> from_;
  OpenBlocks open_;
};

void touch(RegisterUse& use, uint32_t node) {
  use.first = std::min(use.first, node);
  use.last = std::max(use.last, node);
}

void count_uses(Flow& flow, const Block& block) {
  const uint64_t weight = uint64_t{1} << (4 * block.loops);
  for (uint32_t n = block.first; n < block.first + block.count; ++n) {
    const Access& access = flow.access(flow.nodes[n]);
    const RegisterSet written = access.writes.registers | landings(flow, flow.nodes[n]).registers;
    access.reads.registers.for_each([&](Register r) {
      ++flow.registers[r].reads;
      flow.registers[r].weight += weight;
    });
    written.for_each([&](Register r) {
      ++flow.registers[r].writes;
      flow.registers[r].weight += weight;
      touch(flow.registers[r], n);
    });
  }
  // A register is needed in the nodes before which it is live.
  Resources live = live_behind(flow, block);
  for (uint32_t n = block.first + block.count; n-- > block.first;) {
    live = live_before(flow, flow.nodes[n], live);
    (live | landings(flow, flow.nodes[n])).registers.for_each([&](Register r) {
      touch(flow.registers[r], n);
    });
  }
}

}  // namespace

void find_live(Flow& flow) {
  Liveness(flow).run();
  flow.registers.resize(kNumRegisters);
  for (const Block& block : flow.blocks) count_uses(flow, block);
}

}  // namespace v3d::qpu::flow
