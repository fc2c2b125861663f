#include "gpu/csd/supergroup_runner.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "gpu/base/host_time.h"
#include "gpu/base/job_control.h"
#include "gpu/csd/batch_function.h"
#include "gpu/qpu/run/observer.h"

namespace v3d::csd {
namespace {

/// Batches of a range: few enough that workers end at about the same time.
constexpr uint64_t kRangeBatches = 64;
/// Those of a batch that counts for no more than one.
constexpr uint64_t kInstructionsOfShortBatch = 64;

/// So long the caller works alone at a dispatch of few batches: to wake a worker takes as long.
constexpr std::chrono::microseconds kAlone(20);
constexpr uint64_t kFewBatches = 256;

/// Instructions per batch of a supergroup since it last met at a barrier, and of all since one ended, after
/// which it may be waiting for one that has no place, or for ever.
constexpr uint64_t kLongWait = 10'000'000, kLongTime = 1'000'000'000;

constexpr std::chrono::microseconds kForever = std::chrono::microseconds::max();

}  // namespace

/// As many as are under way at a time.
uint32_t SupergroupRunner::count_groups(const JobContext& job, const Configuration& configuration) {
  const uint64_t threads = QpuSlots(*job.profile, configuration.four_threads).capacity();
  return static_cast<uint32_t>(std::min({threads / configuration.batches_per_sg,
                                         uint64_t{configuration.max_slots()}, configuration.supergroups()}));
}

bool SupergroupRunner::suits(const JobContext& job, const Configuration& configuration) {
  if ((job.watch && !job.watch->takes_any_order()) || !configuration.is_regular()) return false;
  const uint32_t groups = count_groups(job, configuration);
  // Supergroups that are too large for two to be resident have their batches spread over the workers.
  return groups > 1 || (groups == 1 && (job.pool->concurrency() == 1 || configuration.supergroups() == 1));
}

SupergroupRunner::SupergroupRunner(const JobContext& job, const Configuration& configuration,
                                   const Engine& engine)
    : job_(job),
      configuration_(configuration),
      engine_(engine),
      supergroups_(configuration.supergroups()),
      per_range_(std::max<uint64_t>(kRangeBatches / configuration.batches_per_sg, 1)),
      all_fit_(configuration.batches <= QpuSlots(*job.profile, configuration.four_threads).capacity()),
      most_groups_(count_groups(job, configuration)) {
  const QpuSlots qpus(*job.profile, configuration.four_threads);
  for (uint32_t n = 0; n < qpus.capacity(); ++n) tidx_[n] = static_cast<uint8_t>(qpus.nth(n));
  const auto count = std::min(static_cast<uint32_t>(job.pool->concurrency()), most_groups_);
  workers_.reserve(count);
  for (uint32_t i = 0; i < count; ++i) workers_.emplace_back(configuration_);
  groups_.reserve(most_groups_);
}

bool SupergroupRunner::run() {
  if (configuration_.batches <= kFewBatches) work(workers_[0], 0, kAlone);
  const auto shift = [this](int i, int pool_slot) {
    const host_time::Scope host(host_time::Block::kDispatches);
    try {
      work(workers_[static_cast<size_t>(i)], pool_slot, kForever);
    } catch (...) {  // there is no memory: the others need not go on
      stuck_ = true;
      throw;
    }
  };
  while (!is_over()) {
    job_.pool->parallel_for(static_cast<int>(workers_.size()), shift, job_.control);
    job_.stopped();  // waits for its turn
  }
  return !stuck_ || job_.ended();
}

/// Until nothing is left, or the worker is to do something else: what is under way stays in its group.
void SupergroupRunner::work(Worker& worker, int pool_slot, std::chrono::microseconds patience) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  while (!stuck_.load(std::memory_order_relaxed) && !job_.ended() && has_group(worker)) {
    run_turn(worker, pool_slot);
    if (job_.control && job_.control->look()) break;
    if (job_.pool->is_crowded() && Clock::now() - start >= ThreadPool::kShare) break;
    if (patience != kForever && Clock::now() - start >= patience) break;
  }
  leave(worker);
}

/// Has the worker go on with a supergroup: without a lock while all end within their turn. @return  false:
/// there is none for it
bool SupergroupRunner::has_group(Worker& worker) {
  if (worker.group && worker.group->live == 0 && parked_.load(std::memory_order_relaxed) == 0 &&
      refill(worker, per_range_)) {
    open(worker);
    return true;
  }
  std::unique_lock lock = lock_soon(mutex_);
  while (!choose(worker)) {
    if (waiting_ == 0 || stuck_ || job_.ended() || (job_.control && job_.control->held())) return false;
    const host_time::Scope waiting(host_time::Block::kWaiting);
    if (!change_.wait(lock)) return false;  // those that run are still too far behind
  }
  lock.unlock();
  if (worker.group->live == 0) open(worker);
  return true;
}

/// Takes the place whose clock is the earliest, of a supergroup under way or for the next one. @return false:
/// there is none, or it would get too far ahead
bool SupergroupRunner::choose(Worker& worker) {
  park(worker);
  Group* chosen = refill_shared(worker) ? place() : nullptr;
  if (chosen) chosen->clock = std::max(chosen->clock, now_);
  if (waiting_ != 0) {
    Group* const parked = earliest(waiting_);
    if (!chosen || parked->clock < chosen->clock) chosen = parked;
    if (running_ != 0 && !chosen->goes_alone &&
        chosen->clock > earliest(running_)->clock + kLead * kInstructionClocks)
      return false;
  }
  if (!chosen) return false;
  const uint64_t bit = uint64_t{1} << chosen->slot;
  if (waiting_ & bit) parked_.fetch_sub(1, std::memory_order_relaxed);
  free_ &= ~bit;
  waiting_ &= ~bit;
  running_ |= bit;
  worker.group = chosen;
  if (waiting_ != 0) change_.tell_one();
  return true;
}

/// The worker leaves its place.
void SupergroupRunner::park(Worker& worker) {
  Group* const group = std::exchange(worker.group, nullptr);
  if (!group) return;
  const uint64_t bit = uint64_t{1} << group->slot;
  now_ = std::max(now_, earliest(waiting_ | running_)->clock);
  running_ &= ~bit;
  // While all end within their turn, places are as good as each other.
  if (group->live != 0 || waiting_ != 0) group->clock += worker.used;
  (group->live == 0 ? free_ : waiting_) |= bit;
  if (group->live != 0) parked_.fetch_add(1, std::memory_order_relaxed);
}

void SupergroupRunner::leave(Worker& worker) {
  const std::unique_lock lock = lock_soon(mutex_);
  park(worker);
  if (worker.range.begin != worker.range.end) ranges_.push_back(std::exchange(worker.range, {}));
  change_.tell_all();
}

/// @return false when no supergroup is left to begin
bool SupergroupRunner::refill(Worker& worker, uint64_t supergroups) {
  if (worker.range.begin != worker.range.end) return true;
  if (next_.load(std::memory_order_relaxed) >= supergroups_) return false;
  const uint64_t begin = std::min(next_.fetch_add(supergroups, std::memory_order_relaxed), supergroups_);
  worker.range = {begin, std::min(begin + supergroups, supergroups_)};
  if (worker.range.begin == worker.range.end) return false;
  worker.generator = BatchGenerator(configuration_, worker.range);
  return true;
}

/// The same for a worker that is not alone: while supergroups take long, nobody keeps more than the next one.
bool SupergroupRunner::refill_shared(Worker& worker) {
  SupergroupRange& range = worker.range;
  if (waiting_ != 0 && range.end - range.begin > 1) {
    ranges_.push_back({range.begin + 1, range.end});
    range.end = range.begin + 1;
  }
  if (range.begin != range.end) return true;
  if (ranges_.empty()) return refill(worker, waiting_ != 0 ? 1 : per_range_);
  SupergroupRange& from = ranges_.back();
  range = from;
  if (waiting_ != 0) range.end = range.begin + 1;
  from.begin = range.end;
  if (from.begin == from.end) ranges_.pop_back();
  worker.generator = BatchGenerator(configuration_, range);
  return true;
}

/// The first one among equals. @param slots  not 0
SupergroupRunner::Group* SupergroupRunner::earliest(uint64_t slots) {
  Group* found = &groups_[static_cast<size_t>(std::countr_zero(slots))];
  for (uint64_t left = slots & (slots - 1); left != 0; left &= left - 1) {
    Group& group = groups_[static_cast<size_t>(std::countr_zero(left))];
    if (group.clock < found->clock) found = &group;
  }
  return found;
}

/// For a supergroup that begins. nullptr: all are taken.
SupergroupRunner::Group* SupergroupRunner::place() {
  Group* const found = free_ == 0 ? nullptr : earliest(free_);
  if ((found && found->clock <= now_) || groups_.size() == most_groups_) return found;
  Group& group = groups_.emplace_back();
  group.slot = static_cast<uint32_t>(groups_.size() - 1);
  group.batches.resize(std::min<uint64_t>(configuration_.batches_per_sg, configuration_.batches));
  free_ |= uint64_t{1} << group.slot;
  return &group;
}

void SupergroupRunner::open(Worker& worker) {
  Group& group = *worker.group;
  group.count = group.live = worker.generator.opens_supergroup();
  group.is_new = true;
  group.at_barrier = 0;
  group.executed = group.at_meeting = group.at_end = 0;
}

/// Software that starts no more batches than there are QPU threads may count on all values being different.
const uint8_t* SupergroupRunner::tidx(const Group& group, uint64_t supergroup) const {
  return tidx_.data() + (all_fit_ ? supergroup : group.slot) * configuration_.batches_per_sg;
}

/// Begins the supergroup and, while all of their batches end at once, those after it.
void SupergroupRunner::begin(Worker& worker, int pool_slot, Turn& turn) {
  BatchFunction* const function =
      engine_.function ? engine_.function(spare_thread(worker), pool_slot) : nullptr;
  uint32_t batches = 0;
  for (;;) {
    batches += worker.group->count;
    begin_supergroup(worker, pool_slot, function, turn);
    if (worker.group->live != 0 || worker.range.begin == worker.range.end || turn.instructions >= kTurn ||
        parked_.load(std::memory_order_relaxed) != 0 || job_.stopped())
      break;
    open(worker);
  }
  if (function != nullptr || !engine_.went_without) return;
  // Long ones count for several: what they execute is what a function would save.
  engine_.went_without(batches + static_cast<uint32_t>(turn.instructions / kInstructionsOfShortBatch));
}

/// Has each batch run for a turn at most. What ends there needs no place.
void SupergroupRunner::begin_supergroup(Worker& worker, int pool_slot, BatchFunction* function, Turn& turn) {
  Group& group = *worker.group;
  group.is_new = false;
  group.goes_alone = function != nullptr && function->cut() != nullptr && function->cut()->goes_alone();
  const uint8_t* const tidx = this->tidx(group, worker.range.begin++);
  uint64_t most = 0;
  uint32_t first = 0;
  if (function != nullptr && function->cut() != nullptr) {
    for (uint32_t i = 0; i < group.count; ++i) {
      worker.generator.next(group.slot, &worker.batch);
      place_batch(worker, i, tidx[i]);
      group.batches[i].code = function->cut();
      group.batches[i].slots.resize(function->cut()->slots());
    }
    return;
  }
  if (function != nullptr) {
    first = function->run(spare_thread(worker), worker.generator, group.count, group.slot, worker.batch);
    turn.instructions += uint64_t{first} * function->instructions();
    if (first != 0) most = function->instructions();
    group.live -= first;
    for (uint32_t i = 0; i < first && group.live != 0; ++i) group.batches[i].ended = true;
  }
  for (uint32_t i = first; i < group.count; ++i) {
    if (i != first || function == nullptr) worker.generator.next(group.slot, &worker.batch);
    if (engine_.clocks || stuck_ || (i != 0 && job_.stopped())) {
      place_batch(worker, i, tidx[i]);
      continue;
    }
    qpu::Thread& thread = spare_thread(worker);
    engine_.start(thread, worker.batch, tidx[i]);
    const qpu::Stop stop = csd::run_turn(thread, engine_, kTurn, job_.instruction_limit, false, pool_slot);
    turn.instructions += thread.instructions;
    most = std::max(most, thread.instructions);
    Resident& resident = group.batches[i];
    if (stop == qpu::Stop::kEnd) {
      resident.ended = true;
      --group.live;
      continue;
    }
    place_batch(worker, i, tidx[i]);
    resident.started = true;
    resident.last_turn = thread.instructions;
    resident.thread = take_thread(worker);
    take_stop(group, i, stop, turn);
  }
  turn.spend(most, kInstructionClocks * most);
  release(group);
}

/// Worker::batch is the one of that index of the supergroup.
void SupergroupRunner::place_batch(const Worker& worker, uint32_t index, uint32_t tidx) {
  Resident& resident = worker.group->batches[index];
  resident.batch = worker.batch;
  resident.slot = worker.group->slot;
  resident.tidx = tidx;
  resident.started = resident.ended = false;
  resident.code = nullptr;
  resident.stretch = 0;
  resident.wait = Wait::kNone;
}

/// Runs the supergroup until one of its batches used up the turn, from barrier to barrier.
void SupergroupRunner::run_turn(Worker& worker, int pool_slot) {
  Group& group = *worker.group;
  Turn turn;
  if (group.is_new) begin(worker, pool_slot, turn);
  if (group.goes_alone) turn.left = kTurnAlone;
  while (group.live != 0 && !turn.spent && turn.left != 0 && !stuck_ && !job_.ended())
    run_round(worker, pool_slot, turn);
  worker.used = turn.used;
  worker.instructions += turn.instructions;
}

/// Each batch up to a barrier.
void SupergroupRunner::run_round(Worker& worker, int pool_slot, Turn& turn) {
  Group& group = *worker.group;
  uint64_t most = 0, clocks = 0;
  for (uint32_t i = 0; i < group.count && !stuck_; ++i) {
    Resident& resident = group.batches[i];
    if (resident.ended || resident.wait != Wait::kNone) continue;
    if (i != 0 && job_.stopped()) break;  // a turn of one batch is as long as nobody has to wait for
    if (!resident.thread) resident.thread = take_thread(worker);
    const qpu::Stop stop =
        csd::run_turn(resident, engine_, turn.left, job_.instruction_limit, false, pool_slot);
    turn.instructions += resident.last_turn;
    most = std::max(most, resident.last_turn);
    clocks = std::max(clocks, resident.last_clocks);
    if (stop != qpu::Stop::kEnd) {
      take_stop(group, i, stop, turn);
      continue;
    }
    resident.ended = true;
    worker.spare.push_back(std::move(resident.thread));
    --group.live;
    group.at_meeting = group.at_end = group.executed;
  }
  turn.spend(most, clocks);
  release(group);
}

/// One is there then: the last.
qpu::Thread& SupergroupRunner::spare_thread(Worker& worker) {
  if (worker.spare.empty()) {
    worker.spare.push_back(std::make_unique<qpu::Thread>());
    engine_.prepare(*worker.spare.back());
  }
  return *worker.spare.back();
}

/// That one leaves the worker.
std::unique_ptr<qpu::Thread> SupergroupRunner::take_thread(Worker& worker) {
  spare_thread(worker);
  std::unique_ptr<qpu::Thread> thread = std::move(worker.spare.back());
  worker.spare.pop_back();
  return thread;
}

void SupergroupRunner::take_stop(Group& group, uint32_t index, qpu::Stop stop, Turn& turn) {
  turn.spent |= stop == qpu::Stop::kBudget;
  if (!settle(group, index, stop)) stuck_ = true;
}

/// All that did not end have met at the barrier.
void SupergroupRunner::release(Group& group) {
  if (group.live == 0 || group.at_barrier != group.live) return;
  for (uint32_t i = 0; i < group.count; ++i) group.batches[i].wait = Wait::kNone;
  group.at_barrier = 0;
  group.at_meeting = group.executed;
}

/// @return false when the batch stopped for something that is not the supergroup's own
bool SupergroupRunner::settle(Group& group, uint32_t index, qpu::Stop stop) {
  Resident& resident = group.batches[index];
  group.executed += resident.last_turn;
  const bool is_patient = group.executed - group.at_meeting < kLongWait * group.live &&
                          group.executed - group.at_end < kLongTime &&
                          resident.thread->instructions < job_.instruction_limit;
  if (is_patient && stop == qpu::Stop::kBarrier) {
    resident.wait = Wait::kBarrier;
    ++group.at_barrier;
    return true;
  }
  if (is_patient && stop == qpu::Stop::kBudget) return true;
  group.is_unsettled = true;
  group.unsettled = index;
  group.stop = stop;
  return false;
}

bool SupergroupRunner::is_empty() const {
  return next_.load(std::memory_order_relaxed) >= supergroups_ && ranges_.empty() &&
         std::all_of(groups_.begin(), groups_.end(), [](const Group& g) { return g.live == 0; });
}

Leftover SupergroupRunner::leftover() {
  Leftover left;
  uint64_t unfinished = 0;  // bit n: the batch of TIDX n
  for (Group& group : groups_) {
    if (group.live == 0) continue;
    Leftover::Group& to = left.groups.emplace_back();
    to.slot = group.slot;
    to.clock = group.clock;
    to.is_unsettled = group.is_unsettled;
    to.stop = group.stop;
    for (uint32_t i = 0; i < group.count; ++i) {
      Resident& resident = group.batches[i];
      if (resident.ended) continue;
      if (i == group.unsettled) to.unsettled = to.batches.size();
      unfinished |= uint64_t{1} << resident.tidx;
      to.batches.push_back(std::move(resident));
    }
    group.live = 0;
  }
  left.ranges = std::move(ranges_);
  const uint64_t next = std::min(next_.load(), supergroups_);
  if (next != supergroups_) left.ranges.push_back({next, supergroups_});
  if (!all_fit_) return left;
  for (const SupergroupRange& range : left.ranges) {
    const uint64_t end = std::min(range.end * configuration_.batches_per_sg, configuration_.batches);
    for (uint64_t n = range.begin * configuration_.batches_per_sg; n < end; ++n)
      unfinished |= uint64_t{1} << tidx_[n];
  }
  for (uint32_t n = 0; n < configuration_.batches; ++n)
    if (!(unfinished >> tidx_[n] & 1)) left.used_up.push_back(tidx_[n]);
  return left;
}

uint64_t SupergroupRunner::instructions() const {
  uint64_t sum = 0;
  for (const Worker& worker : workers_) sum += worker.instructions;
  return sum;
}

}  // namespace v3d::csd
