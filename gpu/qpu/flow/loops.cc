#include <algorithm>
#include <vector>

#include "gpu/qpu/flow/parts.h"

namespace v3d::qpu::flow {
namespace {

// Finds the strongly connected parts of a graph, a loop with all loops inside it each; then, without the ways
// back to their heads, the loops inside, and so on.
class Loops {
 public:
  explicit Loops(Flow& flow) : flow_(flow), state_(flow.blocks.size()) {}

  void run() {
    for (depth_ = 1; depth_ <= kMaxLoops; ++depth_) {
      found_ = false;
      for (State& s : state_) s.order = s.low = 0;
      next_ = 1;
      for (uint32_t b = 0; b < state_.size(); ++b)
        if (state_[b].order == 0) search(b);
      if (!found_) return;
      descend();
    }
  }

 private:
  struct State {
    uint32_t order = 0, low = 0;  // Tarjan; 0: not seen
    bool waits = false;
    bool head = false;         // of a loop found before: ways to here from inside it do not count
    uint32_t loop = kNowhere;  // the head of the innermost one found so far
  };
  struct Call {
    uint32_t block;
    int way;
  };

  // The n-th way out of a block that counts now; kNowhere: it does not.
  uint32_t way(uint32_t block, int n) const {
    const Exit& exit = flow_.blocks[block].exit;
    const uint32_t to = n == 0 ? exit.next : exit.taken;
    if (to == kNowhere) return kNowhere;
    const bool same_loop = state_[to].loop == state_[block].loop;
    return same_loop && !state_[to].head ? to : kNowhere;
  }

  void search(uint32_t start) {
    enter(start);
    while (!calls_.empty()) {
      const uint32_t b = calls_.back().block;
      if (calls_.back().way == 2) {
        calls_.pop_back();
        leave(b);
        if (!calls_.empty()) {
          State& caller = state_[calls_.back().block];
          caller.low = std::min(caller.low, state_[b].low);
        }
        continue;
      }
      const uint32_t to = way(b, calls_.back().way++);
      if (to == kNowhere) continue;
      if (state_[to].order == 0)
        enter(to);
      else if (state_[to].waits)
        state_[b].low = std::min(state_[b].low, state_[to].order);
    }
  }

  void enter(uint32_t b) {
    state_[b].order = state_[b].low = next_++;
    state_[b].waits = true;
    stack_.push_back(b);
    calls_.push_back({b, 0});
  }

  void leave(uint32_t b) {
    if (state_[b].low != state_[b].order) return;
    std::vector<uint32_t> part;
    do {
      part.push_back(stack_.back());
      state_[stack_.back()].waits = false;
      stack_.pop_back();
    } while (part.back() != b);
    const bool alone = part.size() == 1 && way(b, 0) != b && way(b, 1) != b;
    if (alone) return;
    found_ = true;
    parts_.push_back(std::move(part));
    for (const uint32_t member : parts_.back()) flow_.blocks[member].loops = depth_;
    // The head is where the search came in. Marked when the search is over: it decides which ways count.
    heads_.push_back(b);
  }

  // Between two depths: the loops that were found become the graphs to search.
  void descend() {
    for (size_t n = 0; n < parts_.size(); ++n) {
      for (const uint32_t member : parts_[n]) state_[member].loop = heads_[n];
      state_[heads_[n]].head = true;
    }
    parts_.clear();
    heads_.clear();
  }

  Flow& flow_;
  std::vector<State> state_;
  std::vector<uint32_t> stack_, heads_;
  std::vector<std::vector<uint32_t>> parts_;
  std::vector<Call> calls_;
  uint32_t next_ = 1;
  uint8_t depth_ = 1;
  bool found_ = false;
};

}  // namespace

void count_loops(Flow& flow) { Loops(flow).run(); }

}  // namespace v3d::qpu::flow
