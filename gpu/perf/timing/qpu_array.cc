#include "gpu/perf/timing/qpu_array.h"

#include <algorithm>
#include <utility>

#include "gpu/chip/profile.h"
#include "gpu/perf/timing/tile_work.h"

namespace v3d::timing {
namespace {

using Kind = Event::Kind;

constexpr uint32_t kLineInstructions = kLineBytes / 8;

}  // namespace

QpuArray::QpuArray(const Trace& trace, const chip::Profile& profile, const Parameters& parameters,
                   MemorySystem& memory, Prediction* result)
    : trace_(trace),
      p_(parameters),
      memory_(memory),
      result_(*result),
      qpus_(static_cast<size_t>(profile.qpu_count())),
      keys_(qpus_.size(), kNever),
      tmu_free_(static_cast<size_t>(profile.slices) * p_.tmus),
      varyings_free_(static_cast<size_t>(profile.slices)) {
  const auto per_slice = static_cast<size_t>(profile.qpus_per_slice);
  const auto slices = static_cast<size_t>(profile.slices);
  for (size_t i = 0; i < qpus_.size(); ++i) {
    qpus_[i].number = i;
    qpus_[i].slice = static_cast<int>(i / per_slice);
    qpus_[i].is_in_second_half = i % per_slice >= per_slice / 2;
    order_.push_back(profile.csd_fills_in_order() ? i : i % slices * per_slice + i / slices);
  }
  result_.uniform_words = trace.uniform_words;
  for (const Program& program : trace.programs)
    result_.programs.push_back({.stage = program.stage, .code = program.code, .at = {}});
}

void QpuArray::set_groups(const std::vector<uint32_t>& live) {
  groups_.clear();
  for (const uint32_t batches : live) groups_.push_back({.live = batches});
}

// ---- Launch and end

/// The QPU with the fewest threads that has room, the first of the order among equals; null: none has.
const QpuArray::Qpu* QpuArray::fewest(uint32_t units) const {
  const Qpu* found = nullptr;
  for (const size_t i : order_)
    if (!found || qpus_[i].occupied < found->occupied) found = &qpus_[i];
  return found->occupied + units <= kMaxThreads ? found : nullptr;
}

void QpuArray::start(const Batch& batch, uint64_t clock, size_t tag, size_t group) {
  const uint32_t units = units_of(batch);
  Qpu& qpu = qpus_[static_cast<size_t>(fewest(units) - qpus_.data())];
  size_t slot = 0;
  while (qpu.threads[slot].path) ++slot;
  Thread& t = qpu.threads[slot];
  t.path = &trace_.paths[batch.path];
  t.batch = &batch;
  t.program = &trace_.programs[batch.program];
  t.time = &result_.programs[batch.program];
  ++t.time->batches;
  t.event = t.line = 0;
  t.issued = 0;
  t.tag = tag;
  t.group = group;
  t.units = units;
  t.launched = t.wake = clock;
  t.clocks = 0;
  for (std::deque<uint64_t>& results : t.results) results.clear();
  t.stores_done = t.transfers_done[0] = t.transfers_done[1] = 0;
  t.next_uniform = 0;
  t.lookups = InFlight(p_.tmu_queue);
  if (qpu.occupied == 0) qpu.now = std::max(qpu.now, clock);
  qpu.occupied += units;
  set_key(qpu);
  disturbed_ = true;
}

void QpuArray::end(Qpu& qpu, Thread& t) {
  result_.resident += qpu.now - t.launched;
  if (t.batch->draw < result_.draws.size()) result_.draws[t.batch->draw].qpu_clocks += t.clocks;
  t.path = nullptr;
  qpu.occupied -= t.units;
  qpu.current = kMaxThreads;
  ended_ = {t.tag, qpu.now, std::max(qpu.now, t.stores_done)};
  if (t.group < groups_.size()) {
    Group& group = groups_[t.group];
    --group.live;
    if (group.live != 0 && group.waiting == group.live) release(t.group);
  }
  set_key(qpu);
}

std::optional<QpuArray::Ended> QpuArray::run() {
  ended_.reset();
  while (true) {
    size_t first = 0, second = qpus_.size();
    for (size_t i = 1; i < qpus_.size(); ++i) {
      if (keys_[i] < keys_[first]) {
        second = first;
        first = i;
      } else if (second == qpus_.size() || keys_[i] < keys_[second]) {
        second = i;
      }
    }
    if (keys_[first] == kNever) {
      if (!release_all()) return std::nullopt;
      continue;
    }
    disturbed_ = false;
    do {
      step(qpus_[first]);
      if (ended_) return ended_;
    } while (!disturbed_ && is_before(first, second));
  }
}

bool QpuArray::is_before(size_t first, size_t second) const {
  if (keys_[first] == kNever) return false;
  if (second == qpus_.size()) return true;
  return keys_[first] < keys_[second] || (keys_[first] == keys_[second] && first < second);
}

// ---- Threads of a QPU

/// A thread that goes on has the QPU; of those that wait the one that wakes first says when.
void QpuArray::set_key(Qpu& qpu) {
  if (qpu.parked) return;
  if (qpu.current != kMaxThreads) {
    keys_[qpu.number] = qpu.now;
    return;
  }
  uint64_t wake = kNever;
  for (const Thread& t : qpu.threads)
    if (t.path) wake = std::min(wake, t.wake);
  keys_[qpu.number] = wake == kNever ? kNever : std::max(wake, qpu.now);
}

void QpuArray::choose(Qpu& qpu) {
  if (keys_[qpu.number] > qpu.now) {
    result_.waiting += keys_[qpu.number] - qpu.now;
    qpu.now = keys_[qpu.number];
  }
  for (size_t n = 1; n <= kMaxThreads; ++n) {
    const size_t i = (qpu.last + n) % kMaxThreads;
    if (!qpu.threads[i].path || qpu.threads[i].wake > qpu.now) continue;
    qpu.current = qpu.last = i;
    qpu.code_line = ~0u;
    return;
  }
}

void QpuArray::yield(Qpu& qpu, Thread& t, uint64_t wake) {
  t.wake = wake;
  qpu.current = kMaxThreads;
  qpu.now += p_.thread_switch;
  set_key(qpu);
}

/// The thread keeps the QPU, and tries its event again when another one has changed what it waits for.
void QpuArray::park(Qpu& qpu, Thread& t) {
  --t.event;
  qpu.parked = true;
  keys_[qpu.number] = kNever;
}

void QpuArray::wake_parked(uint64_t clock) {
  for (Qpu& qpu : qpus_) {
    if (!qpu.parked) continue;
    qpu.parked = false;
    qpu.woken = std::max(clock, qpu.now);
    keys_[qpu.number] = qpu.woken;
  }
  disturbed_ = true;
}

void QpuArray::arrive(Qpu& qpu, Thread& t) {
  if (t.group >= groups_.size()) return yield(qpu, t, qpu.now);
  Group& group = groups_[t.group];
  ++group.waiting;
  group.last_arrival = std::max(group.last_arrival, qpu.now);
  yield(qpu, t, kNever);
  if (group.waiting == group.live) release(t.group);
}

void QpuArray::release(size_t number) {
  Group& group = groups_[number];
  for (Qpu& qpu : qpus_)
    for (Thread& t : qpu.threads)
      if (t.path && t.group == number && t.wake == kNever) {
        t.wake = group.last_arrival;
        set_key(qpu);
      }
  group.waiting = 0;
  group.last_arrival = 0;
  disturbed_ = true;
}

/// Nobody can go on: batches that others wait for find no place, as in BatchScheduler.
bool QpuArray::release_all() {
  bool any = false;
  for (size_t i = 0; i < groups_.size(); ++i)
    if (groups_[i].waiting != 0) {
      release(i);
      any = true;
    }
  if (std::any_of(qpus_.begin(), qpus_.end(), [](const Qpu& qpu) { return qpu.parked; })) {
    any = sync_.forced = true;
    wake_parked(0);
  }
  if (any) ++result_.released;
  return any;
}

// ---- Events

/// After the instruction that just issued, which begins when its slot does.
void QpuArray::stall(Qpu& qpu, Stall why, uint64_t clocks) {
  clocks = (clocks + p_.instruction - 1) / p_.instruction * p_.instruction;
  Thread& t = qpu.threads[qpu.current];
  const auto reason = static_cast<size_t>(why);
  qpu.now += clocks;
  t.clocks += clocks;
  result_.stalls[reason] += clocks;
  t.time->stalls[reason] += clocks;
  instruction(t, qpu.last_instruction).stalls[reason] += clocks;
}
void QpuArray::stall_until(Qpu& qpu, Stall why, uint64_t ready) {
  const uint64_t began = qpu.now - p_.instruction;
  if (ready > began) stall(qpu, why, ready - began);
}

Prediction::Instruction& QpuArray::instruction(Thread& t, uint32_t number) {
  if (number >= t.time->at.size()) t.time->at.resize(number + 1);
  return t.time->at[number];
}

void QpuArray::step(Qpu& qpu) {
  if (qpu.current == kMaxThreads) {
    choose(qpu);
    set_key(qpu);
    return;
  }
  Thread& t = qpu.threads[qpu.current];
  const Event event = (*t.path)[t.event++];
  switch (event.kind()) {
    case Kind::kIssue:
      if (!issue(qpu, t, event)) --t.event;
      break;
    case Kind::kLookup:
      lookup(qpu, t, trace_.shapes[event.value()]);
      break;
    case Kind::kRead:
      if (std::deque<uint64_t>& results = t.results[event.value()]; !results.empty()) {
        stall_until(qpu, Stall::kTmu, results.front());
        results.pop_front();
      }
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
      take_uniform(qpu, t, static_cast<Event::UniformStep>(event.value()));
      break;
    case Kind::kTlb:
      access_tlb(qpu, t);
      break;
    case Kind::kSwitch:
      return yield(qpu, t, std::max(first_result(t), qpu.now));
    case Kind::kBarrier:
      return arrive(qpu, t);
    case Kind::kEnd:
      return end(qpu, t);
    case Kind::kVarying:
      take_varying(qpu);
      break;
    case Kind::kTransfer:
      transfer(qpu, t, event.value());
      break;
    case Kind::kVpmWait:
      stall_until(qpu, Stall::kVpm, t.transfers_done[event.value()]);
      break;
    case Kind::kMutex:
      if (!take_mutex(qpu, t, event.value() != 0)) return park(qpu, t);
      break;
    case Kind::kSemaphore:
      if (!pass_semaphore(qpu, event.value())) return park(qpu, t);
      break;
  }
  keys_[qpu.number] = qpu.now;
}

/// Instructions up to the end of the line that they are in: other QPUs have their turn between lines, since
/// what asks the caches first is served first. @return  whether the event is over
bool QpuArray::issue(Qpu& qpu, Thread& t, Event event) {
  const uint32_t first = event.first() + t.issued, left = event.count() - t.issued;
  const uint32_t place = t.program->code / 8 + first;
  const uint32_t line = place / kLineInstructions;
  const uint32_t count = std::min(left, kLineInstructions - place % kLineInstructions);
  instruction(t, first + count - 1);
  qpu.last_instruction = first;
  if (line != qpu.code_line) {
    qpu.code_line = line;
    const uint64_t ready = memory_.code(qpu.slice, line, qpu.now);
    if (ready > qpu.now) stall(qpu, Stall::kCode, ready - qpu.now);
  }
  for (uint32_t i = 0; i < count; ++i) ++t.time->at[first + i].issued;
  result_.instructions += count;
  t.time->instructions += count;
  t.clocks += count * p_.instruction;
  qpu.now += count * p_.instruction;
  qpu.last_instruction = first + count - 1;
  t.issued = count == left ? 0 : t.issued + count;
  return count == left;
}

/// When the first of the results that a thread waits for is there; 0: it waits for none.
uint64_t QpuArray::first_result(const Thread& t) const {
  uint64_t first = kNever;
  for (const std::deque<uint64_t>& results : t.results)
    if (!results.empty()) first = std::min(first, results.front());
  return first == kNever ? 0 : first;
}

/// QPUs in the second half of a slice have its TMUs swapped, unless the program forbids that
/// (vc4-timing.md 2.1).
size_t QpuArray::tmu_of(const Qpu& qpu, const Shape& shape) const {
  if (p_.tmus < kMaxTmus) return static_cast<size_t>(qpu.slice);
  const bool swaps = !(shape.unit & Shape::kNoSwap) && qpu.is_in_second_half;
  return static_cast<size_t>(qpu.slice) * kMaxTmus + ((shape.unit & 1) ^ static_cast<size_t>(swaps));
}

/// Waits for a place in the queues of the thread and of the QPU.
void QpuArray::enter_queues(Qpu& qpu, const Thread& t, const Shape& shape, size_t tmu) {
  std::deque<Input>& inputs = qpu.inputs[tmu % p_.tmus];
  stall_until(qpu, Stall::kTmu, t.lookups.admit(0));
  uint32_t words = shape.inputs;
  for (const Input& input : inputs) words += input.words;
  while (!inputs.empty() && (inputs.front().leaves <= qpu.now || words > p_.tmu_input)) {
    stall_until(qpu, Stall::kTmu, inputs.front().leaves);
    words -= inputs.front().words;
    inputs.pop_front();
  }
}

void QpuArray::lookup(Qpu& qpu, Thread& t, const Shape& shape) {
  const size_t tmu = tmu_of(qpu, shape);
  enter_queues(qpu, t, shape, tmu);
  uint64_t& free = tmu_free_[tmu];
  const uint64_t start = std::max(qpu.now + p_.tmu_request, free);
  const uint64_t cost = lookup_clocks(p_, shape);
  uint64_t asked = start, delay = 0;
  uint32_t base = 0;
  for (uint32_t i = 0; i < shape.num_lines; ++i) {
    if (i == 0 || shape.lines_follow) base = t.batch->lines[t.line++];
    const uint32_t line = shape.lines_follow ? base : base + static_cast<uint32_t>(shape.lines[i]);
    const uint64_t there = access(static_cast<int>(tmu), shape.access, line, &asked);
    delay = std::max(delay, there - asked);
  }
  qpu.inputs[tmu % p_.tmus].push_back({start, shape.inputs});
  free = asked + cost;
  result_.tmu_busy += free - start;
  result_.tmu_stalled += asked - start;
  const bool returns = shape.results != 0;
  const uint64_t done = asked + cost + delay + (returns ? p_.tmu_return : 0);
  if (shape.access == Shape::Access::kStore || shape.access == Shape::Access::kAtomic)
    t.stores_done = std::max(t.stores_done, done);
  std::deque<uint64_t>& results = t.results[shape.unit & 1];
  const uint64_t ready = results.empty() ? done : std::max(done, results.back());
  for (uint32_t i = 0; i < shape.results; ++i) results.push_back(ready);
  t.lookups.add(returns ? ready : done);
  ++result_.lookups;
  result_.lookup_quads += shape.quads;
  if (!shape.one_line) return;
  ++result_.one_line_lookups;
  result_.one_line_busy += free - start;
  result_.one_line_stalled += asked - start;
}

uint64_t QpuArray::access(int tmu, Shape::Access access, uint32_t line, uint64_t* clock) {
  switch (access) {
    case Shape::Access::kLoad:
      return memory_.load(tmu, line, clock);
    case Shape::Access::kStore:
      return memory_.store(tmu, line, *clock);
    case Shape::Access::kAtomic:
      return memory_.atomic(tmu, line, *clock);
    case Shape::Access::kNothing:
      break;
  }
  return *clock;
}

/// Lines that are to be foreseen are fetched ahead; words come one by one, of which the QPU keeps two
/// (vc4-timing.md 2.4: measured of lines that were new, and taken for all).
void QpuArray::take_uniform(Qpu& qpu, Thread& t, Event::UniformStep step) {
  constexpr uint64_t kKept = 2;
  const uint64_t began = qpu.now - p_.instruction;
  if (step != Event::kWord) {
    const uint64_t there = memory_.uniforms(qpu.slice, t.batch->lines[t.line++], began);
    if (step == Event::kLine) stall_until(qpu, Stall::kUniforms, there);
  }
  if (p_.uniform_word == 0) return;
  const uint64_t now = qpu.now - p_.instruction, kept = kKept * p_.uniform_word;
  t.next_uniform = std::max(t.next_uniform, now > kept ? now - kept : 0) + p_.uniform_word;
  stall_until(qpu, Stall::kUniforms, t.next_uniform);
}

/// One after the other for the QPUs of a slice; that of the next instruction is made ahead.
void QpuArray::take_varying(Qpu& qpu) {
  const uint64_t began = qpu.now - p_.instruction;
  uint64_t& free = varyings_free_[static_cast<size_t>(qpu.slice)];
  free = std::max(free, began) + p_.varying_vector;
  if (free > began + p_.instruction) stall_until(qpu, Stall::kVaryings, free - p_.instruction);
}

/// There is no queue: who finds a transfer under way waits for its end (vc4-timing.md 2.5).
void QpuArray::transfer(Qpu& qpu, Thread& t, uint32_t value) {
  const bool stores = (value & Event::kStores) != 0;
  const uint32_t lines = value & ~Event::kStores;
  Engine& engine = engines_[stores];
  const bool turns = engine.owner != nullptr && engine.owner != &qpu;
  const uint64_t gap = turns ? memory_.clocks_of_ns(p_.dma_turn) : 0;
  stall_until(qpu, Stall::kVpm, engine.free);
  const uint64_t start = std::max(qpu.now - p_.instruction, engine.free + gap);
  const uint64_t set_up = memory_.clocks_of_ns(stores ? p_.dma_write : p_.dma_read);
  const uint64_t row_ps = stores ? p_.dma_write_row : p_.dma_read_row;
  uint64_t done = start + set_up + memory_.clocks_of_ns(lines * row_ps / 1000);
  for (uint32_t i = 0; i < lines; ++i) {
    const uint32_t line = t.batch->lines[t.line++];
    const uint64_t asked = start + memory_.clocks_of_ns(i * row_ps / 1000);
    done = std::max(done, memory_.move_line(stores, line, asked));
  }
  engine = {done, &qpu};
  t.transfers_done[stores] = done;
  if (stores) t.stores_done = std::max(t.stores_done, done);
  (stores ? result_.units.vpm_stores : result_.units.vpm_loads) += done - start;
}

/// What the thread waited for others takes its instruction.
void QpuArray::pass_gate(Qpu& qpu) {
  if (qpu.woken > qpu.now) stall(qpu, Stall::kSync, qpu.woken - qpu.now);
  qpu.woken = 0;
}

/// @return  false: another one has it
bool QpuArray::take_mutex(Qpu& qpu, const Thread& t, bool takes) {
  if (!takes) {
    sync_.mutex = nullptr;
    wake_parked(qpu.now);
    return true;
  }
  if (sync_.mutex != nullptr && sync_.mutex != &t && !std::exchange(sync_.forced, false)) return false;
  pass_gate(qpu);
  sync_.mutex = &t;
  return true;
}

bool QpuArray::pass_semaphore(Qpu& qpu, uint32_t value) {
  constexpr uint8_t kHighest = 15;
  uint8_t& semaphore = sync_.semaphores[value & 15];
  const bool lowers = value & 16;
  if (semaphore == (lowers ? 0 : kHighest)) {
    if (!std::exchange(sync_.forced, false)) return false;
  } else {
    semaphore = static_cast<uint8_t>(lowers ? semaphore - 1 : semaphore + 1);
  }
  pass_gate(qpu);
  wake_parked(qpu.now);
  return true;
}

/// Batches are written one after the other; the QPU is held back when the tile buffer is busy for longer than
/// what waits in front of it takes.
void QpuArray::access_tlb(Qpu& qpu, const Thread& t) {
  const uint64_t began = qpu.now - p_.instruction;
  if (tlb_free_ > began + p_.tlb_queue) stall_until(qpu, Stall::kTlb, tlb_free_ - p_.tlb_queue);
  const uint64_t cost = t.batch->tlb_quads * p_.tlb_quad;
  tlb_free_ = std::max(tlb_free_, began) + cost;
  tlb_busy_ += cost;
}

}  // namespace v3d::timing
