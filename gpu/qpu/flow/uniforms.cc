#include <algorithm>
#include <set>
#include <vector>

#include "gpu/qpu/flow/parts.h"

namespace v3d::qpu::flow {
namespace {

constexpr int32_t kUnset = INT32_MAX;
constexpr int32_t kWord = 4;

// The main stream before a node: the next word, and the one after the word of the branch under way.
struct Streams {
  int32_t next = kUnset, branch = kUnset;
};

int32_t moved(int32_t offset, int32_t words) {
  return offset == kDynamic ? kDynamic : offset + words * kWord;
}

// True if `into` changed.
bool join(int32_t& into, int32_t offset) {
  if (into == offset || into == kDynamic) return false;
  into = into == kUnset ? offset : kDynamic;
  return true;
}

// Where the stream is on every way to a block. A branch by a word of the stream itself leads anywhere: its
// target takes the offset of the other ways to it or, if there are none, the one that it has in programs
// whose uniforms stand in the order of their instructions, as drivers write them. Whether the word agrees is
// for those to check who see it (Flow::uniform_jumps).
class Uniforms {
 public:
  explicit Uniforms(Flow& flow)
      : flow_(flow),
        before_(flow.blocks.size()),
        open_(flow.blocks.size()),
        indices_(flow.instructions.size()) {
    for (const Node& node : flow.nodes)
      if (node.instruction != kNowhere) indices_[node.instruction] = node.index;
    words_before_.push_back(0);
    for (const Access& access : flow.accesses) {
      int32_t words = words_before_.back();
      for (const Event& event : access.events()) words += event.stream == Stream::kMain;
      words_before_.push_back(words);
    }
  }

  void run() {
    if (flow_.blocks.empty()) return;
    reach(flow_.entry, {0, kDynamic});
    settle();
    while (assume()) settle();
    for (uint32_t b = 0; b < before_.size(); ++b) {
      if (before_[b].next == kUnset) before_[b] = {kDynamic, kDynamic};  // only after a gap
      pass(b, true);
    }
  }

 private:
  void settle() {
    while (!open_.empty()) pass(open_.take(), false);
  }

  void reach(uint32_t block, Streams s) {
    Streams& before = before_[block];
    const bool next = join(before.next, s.next), branch = join(before.branch, s.branch);
    if (next || branch) open_.add(block);
  }

  const Branch& branch_under_way(const Node& node) const {
    const auto found = std::lower_bound(indices_.begin(), indices_.end(), node.in_flight.branch);
    return flow_.instructions[static_cast<size_t>(found - indices_.begin())].branch;
  }

  // Through a block; in the end, with `report`, what was found.
  void pass(uint32_t number, bool report) {
    const Block& block = flow_.blocks[number];
    Streams s = before_[number];
    for (uint32_t n = block.first; n < block.first + block.count; ++n) {
      const auto events = flow_.access(flow_.nodes[n]).events();
      for (size_t e = 0; e < events.size(); ++e) {
        if (events[e].stream == Stream::kNone) continue;
        const bool main = events[e].stream == Stream::kMain;
        if (report)
          flow_.uniforms.push_back({n, static_cast<uint8_t>(e), events[e].stream, main ? s.next : kDynamic});
        if (main) s.next = moved(s.next, 1);
      }
    }
    leave(block, s, report);
  }

  void leave(const Block& block, Streams s, bool report) {
    const uint32_t last = block.first + block.count - 1;
    const Exit& exit = block.exit;
    if (!report && exit.taken != kNowhere) reach(exit.taken, {s.next, s.next});
    if (exit.next == kNowhere) return;
    if (flow_.nodes[last].in_flight.branch_in == 1)
      jump(last, exit.next, s, report);
    else if (!report)
      reach(exit.next, s);
  }

  // The branch under way takes effect.
  void jump(uint32_t node, uint32_t target, Streams s, bool report) {
    const Branch& b = branch_under_way(flow_.nodes[node]);
    const bool by_word = b.uniforms && b.uniform_target == static_cast<uint8_t>(BranchTarget::kRelative);
    if (by_word && s.branch != kDynamic) {
      if (!report) {
        anywhere_.insert(target);
        reach_branch(target);
      } else if (before_[target].next != kDynamic) {
        flow_.uniform_jumps.push_back({node, s.branch - kWord, before_[target].next - s.branch});
      }
      return;
    }
    if (!report) reach(target, {b.uniforms ? kDynamic : s.next, kDynamic});
  }

  // No branch is under way in the target; where its stream is stays open.
  void reach_branch(uint32_t target) {
    if (join(before_[target].branch, kDynamic) && before_[target].next != kUnset) open_.add(target);
  }

  // Gives the first block that was only reached by branches with a word of the stream its offset.
  bool assume() {
    while (!anywhere_.empty()) {
      const uint32_t first = *anywhere_.begin();
      anywhere_.erase(anywhere_.begin());
      if (before_[first].next != kUnset) continue;
      reach(first, {in_order(flow_.nodes[flow_.blocks[first].first].index), kDynamic});
      return true;
    }
    return false;
  }

  // The offset if each instruction before, from the entry, has its words once.
  int32_t in_order(int32_t index) const { return kWord * (words_before(index) - words_before(0)); }
  int32_t words_before(int32_t index) const {
    const auto found = std::lower_bound(indices_.begin(), indices_.end(), index);
    return words_before_[static_cast<size_t>(found - indices_.begin())];
  }

  Flow& flow_;
  std::vector<Streams> before_;
  OpenBlocks open_;
  std::set<uint32_t> anywhere_;        // targets of branches by a word of the stream
  std::vector<int32_t> indices_;       // of Flow::instructions
  std::vector<int32_t> words_before_;  // words of the main stream that the instructions before each take
};

}  // namespace

void place_uniforms(Flow& flow) { Uniforms(flow).run(); }

}  // namespace v3d::qpu::flow
