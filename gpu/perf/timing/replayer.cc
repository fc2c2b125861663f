#include "gpu/perf/timing/replayer.h"

#include <algorithm>
#include <deque>
#include <limits>

#include "gpu/chip/profile.h"

namespace v3d::timing {
namespace {

using Kind = Event::Kind;

constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
constexpr size_t kMaxThreads = 4;
constexpr uint32_t kLineInstructions = kLineBytes / 8;

/// A place for a batch.
struct Thread {
  const std::vector<Event>* path = nullptr;  // null: it is free
  const Batch* batch = nullptr;
  size_t event = 0, line = 0;  // next ones
  uint64_t launched = 0;
  uint64_t wake = 0;  // kNever: at a barrier
  size_t supergroup = 0;
  std::deque<uint64_t> results;  // when they can be taken
  uint64_t stores_done = 0;
  InFlight lookups{1};
};

struct Input {
  uint64_t leaves = 0;
  uint32_t words = 0;
};

struct Qpu {
  int slice = 0;
  std::array<Thread, kMaxThreads> threads;
  size_t current = kMaxThreads;  // none
  size_t last = kMaxThreads - 1;
  uint64_t now = 0;
  uint64_t key = kNever;  // when it has something to do
  uint32_t code_line = ~0u;
  uint32_t last_instruction = 0;
  std::deque<Input> inputs;  // of the TMU, waiting
  uint32_t occupied = 0;
};

struct Supergroup {
  uint32_t live = 0, waiting = 0;
  uint64_t last_arrival = 0;
};

class Replayer {
 public:
  Replayer(const Dispatch& dispatch, const chip::Profile& profile, const Parameters& parameters)
      : d_(dispatch),
        p_(parameters),
        memory_(parameters, profile.slices, profile.clock_mhz),
        qpus_(static_cast<size_t>(profile.qpu_count())),
        tmu_free_(static_cast<size_t>(profile.slices)) {
    for (size_t i = 0; i < qpus_.size(); ++i) {
      qpus_[i].slice = static_cast<int>(i) / profile.qpus_per_slice;
      const size_t per_slice = static_cast<size_t>(profile.qpus_per_slice);
      const size_t slices = static_cast<size_t>(profile.slices);
      order_.push_back(profile.csd_fills_in_order() ? i : i % slices * per_slice + i / slices);
    }
    result_.clock_mhz = profile.clock_mhz;
    result_.slices = profile.slices;
    result_.qpus = profile.qpu_count();
    result_.submit_ns = p_.submit * 1000;
    const size_t per_group = std::max(d_.batches_per_supergroup, 1u);
    groups_.resize((d_.batches.size() + per_group - 1) / per_group);
    for (size_t i = 0; i < d_.batches.size(); ++i) ++groups_[i / per_group].live;
  }

  Prediction run() {
    launch(0);
    while (true) {
      size_t first = 0, second = qpus_.size();
      for (size_t i = 1; i < qpus_.size(); ++i) {
        if (qpus_[i].key < qpus_[first].key) {
          second = first;
          first = i;
        } else if (second == qpus_.size() || qpus_[i].key < qpus_[second].key) {
          second = i;
        }
      }
      if (qpus_[first].key == kNever) {
        if (!release_all()) break;
        continue;
      }
      disturbed_ = false;
      do step(qpus_[first]);
      while (!disturbed_ && is_before(first, second));
    }
    return finish();
  }

 private:
  bool is_before(size_t first, size_t second) const {
    if (qpus_[first].key == kNever) return false;
    if (second == qpus_.size()) return true;
    return qpus_[first].key < qpus_[second].key || (qpus_[first].key == qpus_[second].key && first < second);
  }

  // ---- Launch and end

  /// Places batches while there is room: on the QPU with the fewest threads, the first of the order among
  /// equals.
  void launch(uint64_t clock) {
    while (next_batch_ < d_.batches.size()) {
      Qpu* fewest = nullptr;
      for (const size_t i : order_)
        if (!fewest || qpus_[i].occupied < fewest->occupied) fewest = &qpus_[i];
      if (fewest->occupied >= d_.threads_per_qpu) return;
      next_launch_ = std::max(next_launch_, clock);
      start(*fewest, next_launch_);
      next_launch_ += p_.batch_launch;
    }
  }

  void start(Qpu& qpu, uint64_t clock) {
    size_t slot = 0;
    while (qpu.threads[slot].path) ++slot;
    Thread& t = qpu.threads[slot];
    const Batch& batch = d_.batches[next_batch_];
    t.path = &d_.paths[batch.path];
    t.batch = &batch;
    t.event = t.line = 0;
    t.launched = t.wake = clock;
    t.supergroup = next_batch_ / std::max(d_.batches_per_supergroup, 1u);
    t.results.clear();
    t.stores_done = 0;
    t.lookups = InFlight(p_.tmu_queue);
    ++next_batch_;
    if (qpu.occupied++ == 0) qpu.now = std::max(qpu.now, clock);
    set_key(qpu);
    disturbed_ = true;
  }

  void end(Qpu& qpu, Thread& t) {
    result_.resident += qpu.now - t.launched;
    last_end_ = std::max({last_end_, qpu.now, t.stores_done});
    Supergroup& group = groups_[t.supergroup];
    --group.live;
    t.path = nullptr;
    --qpu.occupied;
    qpu.current = kMaxThreads;
    if (group.live != 0 && group.waiting == group.live) release(group, t.supergroup);
    launch(qpu.now);
    set_key(qpu);
  }

  // ---- Threads of a QPU

  /// A thread that goes on has the QPU; of those that wait the one that wakes first says when.
  void set_key(Qpu& qpu) {
    if (qpu.current != kMaxThreads) {
      qpu.key = qpu.now;
      return;
    }
    uint64_t wake = kNever;
    for (const Thread& t : qpu.threads)
      if (t.path) wake = std::min(wake, t.wake);
    qpu.key = wake == kNever ? kNever : std::max(wake, qpu.now);
  }

  void choose(Qpu& qpu) {
    if (qpu.key > qpu.now) {
      result_.waiting += qpu.key - qpu.now;
      qpu.now = qpu.key;
    }
    for (size_t n = 1; n <= kMaxThreads; ++n) {
      const size_t i = (qpu.last + n) % kMaxThreads;
      if (!qpu.threads[i].path || qpu.threads[i].wake > qpu.now) continue;
      qpu.current = qpu.last = i;
      qpu.code_line = ~0u;
      return;
    }
  }

  void yield(Qpu& qpu, Thread& t, uint64_t wake) {
    t.wake = wake;
    qpu.current = kMaxThreads;
    qpu.now += p_.thread_switch;
    set_key(qpu);
  }

  void arrive(Qpu& qpu, Thread& t) {
    Supergroup& group = groups_[t.supergroup];
    ++group.waiting;
    group.last_arrival = std::max(group.last_arrival, qpu.now);
    yield(qpu, t, kNever);
    if (group.waiting == group.live) release(group, t.supergroup);
  }

  void release(Supergroup& group, size_t number) {
    for (Qpu& qpu : qpus_)
      for (Thread& t : qpu.threads)
        if (t.path && t.supergroup == number && t.wake == kNever) {
          t.wake = group.last_arrival;
          set_key(qpu);
        }
    group.waiting = 0;
    group.last_arrival = 0;
    disturbed_ = true;
  }

  /// Nobody can go on: batches that others wait for find no place, as in BatchScheduler.
  bool release_all() {
    bool any = false;
    for (size_t i = 0; i < groups_.size(); ++i)
      if (groups_[i].waiting != 0) {
        release(groups_[i], i);
        any = true;
      }
    if (any) ++result_.released;
    return any;
  }

  // ---- Events

  /// Behind the instruction that just issued, which begins when its slot does.
  void stall(Qpu& qpu, Stall why, uint64_t clocks) {
    clocks = (clocks + p_.instruction - 1) / p_.instruction * p_.instruction;
    qpu.now += clocks;
    result_.stalls[static_cast<size_t>(why)] += clocks;
    instruction(qpu.last_instruction).stalls[static_cast<size_t>(why)] += clocks;
  }
  void stall_until(Qpu& qpu, Stall why, uint64_t ready) {
    const uint64_t began = qpu.now - p_.instruction;
    if (ready > began) stall(qpu, why, ready - began);
  }

  Prediction::Instruction& instruction(uint32_t number) {
    if (number >= result_.program.size()) result_.program.resize(number + 1);
    return result_.program[number];
  }

  void step(Qpu& qpu) {
    if (qpu.current == kMaxThreads) {
      choose(qpu);
      set_key(qpu);
      return;
    }
    Thread& t = qpu.threads[qpu.current];
    const Event event = (*t.path)[t.event++];
    switch (event.kind()) {
      case Kind::kIssue:
        issue(qpu, event.first(), event.count());
        break;
      case Kind::kLookup:
        lookup(qpu, t, d_.shapes[event.value()]);
        break;
      case Kind::kRead:
        if (t.results.empty()) break;
        stall_until(qpu, Stall::kTmu, t.results.front());
        t.results.pop_front();
        break;
      case Kind::kWait:
        stall_until(qpu, Stall::kTmu, t.stores_done);
        break;
      case Kind::kSfu:
        stall(qpu, Stall::kSfu, p_.sfu_stall);
        break;
      case Kind::kRep:
        stall(qpu, Stall::kRep, p_.rep_stall);
        break;
      case Kind::kUniforms:
        stall_until(qpu, Stall::kUniforms,
                    memory_.uniforms(qpu.slice, t.batch->lines[t.line++], qpu.now - p_.instruction));
        break;
      case Kind::kSwitch:
        return yield(qpu, t, t.results.empty() ? qpu.now : std::max(t.results.front(), qpu.now));
      case Kind::kBarrier:
        return arrive(qpu, t);
      case Kind::kEnd:
        return end(qpu, t);
    }
    qpu.key = qpu.now;
  }

  void issue(Qpu& qpu, uint32_t first, uint32_t count) {
    instruction(first + count - 1);
    result_.instructions += count;
    while (count != 0) {
      const uint32_t place = d_.code / 8 + first;
      const uint32_t line = place / kLineInstructions;
      const uint32_t part = std::min(count, kLineInstructions - place % kLineInstructions);
      qpu.last_instruction = first;
      if (line != qpu.code_line) {
        qpu.code_line = line;
        const uint64_t ready = memory_.code(qpu.slice, line, qpu.now);
        if (ready > qpu.now) stall(qpu, Stall::kCode, ready - qpu.now);
      }
      for (uint32_t i = 0; i < part; ++i) ++result_.program[first + i].issued;
      qpu.now += part * p_.instruction;
      first += part;
      count -= part;
    }
    qpu.last_instruction = first - 1;
  }

  /// Waits for a place in the queues of the thread and of the QPU.
  void enter_queues(Qpu& qpu, const Thread& t, const Shape& shape) {
    stall_until(qpu, Stall::kTmu, t.lookups.admit(0));
    uint32_t words = shape.inputs;
    for (const Input& input : qpu.inputs) words += input.words;
    while (!qpu.inputs.empty() && (qpu.inputs.front().leaves <= qpu.now || words > p_.tmu_input)) {
      stall_until(qpu, Stall::kTmu, qpu.inputs.front().leaves);
      words -= qpu.inputs.front().words;
      qpu.inputs.pop_front();
    }
  }

  void lookup(Qpu& qpu, Thread& t, const Shape& shape) {
    enter_queues(qpu, t, shape);
    uint64_t& free = tmu_free_[static_cast<size_t>(qpu.slice)];
    const uint64_t start = std::max(qpu.now + p_.tmu_request, free);
    const uint64_t cost = std::max<uint64_t>(shape.quad_words / p_.tmu_quad_words, 1);
    uint64_t asked = start, delay = 0;
    uint32_t base = 0;
    for (uint32_t i = 0; i < shape.num_lines; ++i) {
      if (i == 0 || shape.lines_follow) base = t.batch->lines[t.line++];
      const uint32_t line = shape.lines_follow ? base : base + static_cast<uint32_t>(shape.lines[i]);
      const uint64_t there = access(qpu.slice, shape.access, line, &asked);
      delay = std::max(delay, there - asked);
    }
    qpu.inputs.push_back({start, shape.inputs});
    free = asked + cost;
    result_.tmu_busy += free - start;
    result_.tmu_stalled += asked - start;
    const bool returns = shape.results != 0;
    const uint64_t done = asked + cost + delay + (returns ? p_.tmu_return : 0);
    if (shape.access == Shape::Access::kStore || shape.access == Shape::Access::kAtomic)
      t.stores_done = std::max(t.stores_done, done);
    const uint64_t ready = t.results.empty() ? done : std::max(done, t.results.back());
    for (uint32_t i = 0; i < shape.results; ++i) t.results.push_back(ready);
    t.lookups.add(returns ? ready : done);
    ++result_.lookups;
    result_.lookup_quads += shape.quads;
    result_.one_line_lookups += shape.one_line;
  }

  uint64_t access(int slice, Shape::Access access, uint32_t line, uint64_t* clock) {
    switch (access) {
      case Shape::Access::kLoad:
        return memory_.load(slice, line, clock);
      case Shape::Access::kStore:
        return memory_.store(slice, line, *clock);
      case Shape::Access::kAtomic:
        return memory_.atomic(slice, line, *clock);
      case Shape::Access::kNothing:
        break;
    }
    return *clock;
  }

  Prediction finish() {
    result_.clocks = std::max(memory_.clean(last_end_), last_end_);
    result_.clean_clocks = result_.clocks - last_end_;
    result_.memory = memory_.counts();
    result_.dram_busy = memory_.dram_busy();
    result_.uniform_words = d_.uniform_words;
    result_.texture_lookups = d_.texture_lookups;
    return std::move(result_);
  }

  const Dispatch& d_;
  const Parameters p_;
  MemorySystem memory_;
  std::vector<Qpu> qpus_;
  std::vector<size_t> order_;       // in which QPUs get batches
  std::vector<uint64_t> tmu_free_;  // by slice
  std::vector<Supergroup> groups_;
  size_t next_batch_ = 0;
  uint64_t next_launch_ = 0, last_end_ = 0;
  bool disturbed_ = false;  // keys of other QPUs changed
  Prediction result_;
};

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

const char* stall_name(Stall stall) {
  constexpr const char* kNames[] = {"TMU", "SFU", "rep", "uniforms", "code"};
  return kNames[static_cast<int>(stall)];
}

const char* bound_name(Bound bound) {
  constexpr const char* kNames[] = {"issue", "TMU", "L2T", "DRAM", "latency"};
  return kNames[static_cast<int>(bound)];
}

double Prediction::issue_share() const {
  return share(instructions * 4, clocks * static_cast<uint64_t>(qpus));
}
double Prediction::qpu_share() const {
  const uint64_t own = stalls[static_cast<size_t>(Stall::kSfu)] + stalls[static_cast<size_t>(Stall::kRep)];
  return issue_share() + share(own, clocks * static_cast<uint64_t>(qpus));
}
double Prediction::tmu_share() const { return share(tmu_busy, clocks * static_cast<uint64_t>(slices)); }
double Prediction::l2_share() const { return share(memory.l2_busy, clocks); }
double Prediction::dram_share() const { return share(dram_busy, clocks); }

Bound Prediction::bound() const {
  const std::pair<double, Bound> shares[] = {{qpu_share(), Bound::kIssue},
                                             {tmu_share(), Bound::kTmu},
                                             {l2_share(), Bound::kL2},
                                             {dram_share(), Bound::kDram}};
  const auto largest = std::max_element(std::begin(shares), std::end(shares),
                                        [](const auto& a, const auto& b) { return a.first < b.first; });
  return largest->first > kBusy ? largest->second : Bound::kLatency;
}

Prediction replay(const Dispatch& dispatch, const chip::Profile& profile, const Parameters& parameters) {
  return Replayer(dispatch, profile, parameters).run();
}

}  // namespace v3d::timing
