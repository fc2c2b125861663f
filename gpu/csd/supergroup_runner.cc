#include "gpu/csd/supergroup_runner.h"

#include <algorithm>

#include "gpu/base/turn.h"
#include "gpu/qpu/run/observer.h"

namespace v3d::csd {
namespace {

/// Batches of a range: few enough that workers end at about the same time.
constexpr uint64_t kRangeBatches = 64;

/// So long the caller works alone at a dispatch of few batches: to wake a worker takes as long.
constexpr std::chrono::microseconds kAlone(20);
constexpr uint64_t kFewBatches = 256;

/// Instructions per batch of a supergroup since it last met at a barrier, and of all since one ended, after
/// which it may be waiting for another supergroup, or for ever.
constexpr uint64_t kLongWait = 10'000'000, kLongTime = 1'000'000'000;

constexpr std::chrono::microseconds kForever = std::chrono::microseconds::max();

}  // namespace

uint32_t SupergroupRunner::count_groups(const JobContext& job, const Configuration& configuration) {
  const uint64_t threads = QpuSlots(*job.profile, configuration.four_threads).capacity();
  return static_cast<uint32_t>(
      std::min({static_cast<uint64_t>(job.pool->concurrency()), threads / configuration.batches_per_sg,
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
      qpus_(*job.profile, configuration.four_threads),
      all_fit_(configuration.batches <= qpus_.capacity()) {
  const uint32_t count = count_groups(job, configuration);
  groups_.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    Group& group = groups_.emplace_back(configuration_);
    group.slot = i;
    group.first_thread = i * configuration_.batches_per_sg;
    group.batches.resize(std::min<uint64_t>(configuration_.batches_per_sg, configuration_.batches));
  }
}

bool SupergroupRunner::run() {
  if (configuration_.batches <= kFewBatches) work(groups_[0], 0, kAlone);
  const auto shift = [this](int i, int pool_slot) {
    try {
      work(groups_[static_cast<size_t>(i)], pool_slot, kForever);
    } catch (...) {  // there is no memory: the others need not go on
      stuck_ = true;
      throw;
    }
  };
  while (!is_over()) {
    job_.pool->parallel_for(static_cast<int>(groups_.size()), shift, job_.turn);
    job_.stopped();  // waits for its turn
  }
  return !stuck_ || job_.ended();
}

/// Until nothing is left, or the worker is to do something else: what is under way stays in the group.
void SupergroupRunner::work(Group& group, int pool_slot, std::chrono::microseconds patience) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  while (!stuck_.load(std::memory_order_relaxed) && !job_.ended()) {
    if (group.live == 0 && !open(group)) return;
    if (!run_turn(group, pool_slot)) stuck_ = true;
    if (job_.turn && job_.turn->look()) return;
    if (job_.pool->is_crowded() && Clock::now() - start >= ThreadPool::kShare) return;
    if (patience != kForever && Clock::now() - start >= patience) return;
  }
}

/// @return false when no supergroup is left
bool SupergroupRunner::open(Group& group) {
  if (group.range.begin == group.range.end) {
    const uint64_t begin = std::min(next_.fetch_add(per_range_, std::memory_order_relaxed), supergroups_);
    group.range = {begin, std::min(begin + per_range_, supergroups_)};
    if (group.range.begin == group.range.end) return false;
    group.generator = BatchGenerator(configuration_, group.range);
  }
  group.count = group.live = group.generator.opens_supergroup();
  group.begun = group.at_barrier = 0;
  group.since_barrier = group.since_end = 0;
  for (uint32_t i = 0; i < group.count; ++i) {
    Resident& resident = group.batches[i];
    resident.slot = group.slot;
    resident.tidx = tidx(group, i);
    resident.started = false;
    resident.wait = Wait::kNone;
  }
  ++group.range.begin;
  return true;
}

/// Software that starts no more batches than there are QPU threads may count on all values being different.
uint32_t SupergroupRunner::tidx(const Group& group, uint32_t index) const {
  const uint64_t first = all_fit_ ? group.range.begin * configuration_.batches_per_sg : group.first_thread;
  return qpus_.nth(static_cast<uint32_t>(first + index));
}

/// Gives a batch its payload and a thread.
void SupergroupRunner::begin(Group& group, Resident& resident) {
  if (!resident.thread && group.spare.empty()) {
    resident.thread = std::make_unique<qpu::Thread>();
    engine_.prepare(*resident.thread);
  } else if (!resident.thread) {
    resident.thread = std::move(group.spare.back());
    group.spare.pop_back();
  }
  group.generator.next(group.slot, &resident.batch);
  ++group.begun;
}

/// Runs each batch that can for a slice at most. @return false when one stopped for something that is not the
/// supergroup's own
bool SupergroupRunner::run_turn(Group& group, int pool_slot) {
  for (uint32_t i = 0; i < group.count; ++i) {
    Resident& resident = group.batches[i];
    if (resident.ended() || resident.wait != Wait::kNone) continue;
    if (!resident.started) begin(group, resident);
    const qpu::Stop stop = run_slice(resident, engine_, job_.instruction_limit, false, pool_slot);
    if (!settle(group, i, stop)) return false;
    if (stop == qpu::Stop::kBudget && (job_.ended() || (job_.turn && job_.turn->look()))) return true;
  }
  if (group.live != 0 && group.at_barrier == group.live) {
    for (uint32_t i = 0; i < group.count; ++i) group.batches[i].wait = Wait::kNone;
    group.at_barrier = 0;
    group.since_barrier = 0;
  }
  return true;
}

bool SupergroupRunner::settle(Group& group, uint32_t index, qpu::Stop stop) {
  Resident& resident = group.batches[index];
  group.instructions += resident.last_slice;
  if (stop == qpu::Stop::kEnd) {
    group.spare.push_back(std::move(resident.thread));
    --group.live;
    group.since_barrier = group.since_end = 0;
    return true;
  }
  group.since_barrier += resident.last_slice;
  group.since_end += resident.last_slice;
  const bool is_patient = group.since_barrier < kLongWait * group.live && group.since_end < kLongTime &&
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
  return next_.load(std::memory_order_relaxed) >= supergroups_ &&
         std::all_of(groups_.begin(), groups_.end(),
                     [](const Group& g) { return g.live == 0 && g.range.begin == g.range.end; });
}

Leftover SupergroupRunner::leftover() {
  Leftover left;
  uint64_t unfinished = 0;  // bit n: the batch of TIDX n
  for (Group& group : groups_) {
    if (group.range.begin != group.range.end) left.ranges.push_back(group.range);
    if (group.live == 0) continue;
    Leftover::Group& to = left.groups.emplace_back();
    to.slot = group.slot;
    to.is_unsettled = group.is_unsettled;
    to.stop = group.stop;
    for (uint32_t i = 0; i < group.count; ++i) {
      Resident& resident = group.batches[i];
      if (i >= group.begun) group.generator.next(group.slot, &resident.batch);
      if (resident.ended()) continue;
      if (i == group.unsettled) to.unsettled = to.batches.size();
      unfinished |= uint64_t{1} << resident.tidx;
      to.batches.push_back(std::move(resident));
    }
    group.live = 0;
  }
  const uint64_t next = std::min(next_.load(), supergroups_);
  if (next != supergroups_) left.ranges.push_back({next, supergroups_});
  if (!all_fit_) return left;
  for (const SupergroupRange& range : left.ranges) {
    const uint64_t end = std::min(range.end * configuration_.batches_per_sg, configuration_.batches);
    for (uint64_t n = range.begin * configuration_.batches_per_sg; n < end; ++n)
      unfinished |= uint64_t{1} << qpus_.nth(static_cast<uint32_t>(n));
  }
  for (uint32_t n = 0; n < configuration_.batches; ++n)
    if (!(unfinished >> qpus_.nth(n) & 1)) left.used_up.push_back(qpus_.nth(n));
  return left;
}

uint64_t SupergroupRunner::instructions() const {
  uint64_t sum = 0;
  for (const Group& group : groups_) sum += group.instructions;
  return sum;
}

}  // namespace v3d::csd
