/// @file Workers of the pool take the place of the QPUs. Up to one batch per hardware thread is resident, as
/// on the chip, so that TIDX values are those software expects and all batches of a supergroup can meet at a
/// barrier; resident batches take turns, the one first whose clock is the earliest. One lock is held between
/// turns only, and while these are short a worker runs its share of the batches, several turns, in between.
/// Nothing of a batch is on a worker's stack between turns: workers leave for other jobs and come back.
#include "gpu/csd/batch_scheduler.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gpu/base/host_time.h"
#include "gpu/base/log.h"
#include "gpu/qpu/run/interpreter.h"

namespace v3d::csd {
namespace {

/// Programs that are written by hand may count on QPUs that start together staying close for a while, as a
/// transform does whose passes have no barrier between them. Where all batches start together the first turns
/// are short, later ones a part of what the batch executed, up to kTurn.
constexpr uint64_t kShortestTurn = 64, kPartOfTurn = 32;

}  // namespace

BatchScheduler::BatchScheduler(const JobContext& job, const Configuration& configuration, bool serial,
                               const Engine& engine)
    : job_(job),
      configuration_(configuration),
      engine_(engine),
      generator_(configuration),
      qpus_(*job.profile, configuration.four_threads),
      starts_together_(!configuration.is_regular() && configuration.batches <= qpus_.capacity()),
      // As many as threads are enough: one is opened when a thread is free and all others have a batch on
      // one.
      free_slots_(~uint64_t{0} >>
                  (64 - (serial ? 1 : std::min(qpus_.capacity(), configuration.max_slots())))) {}

BatchScheduler::BatchScheduler(const JobContext& job, const Configuration& configuration,
                               const Engine& engine, Leftover leftover)
    : BatchScheduler(job, configuration, false, engine) {
  generator_ = BatchGenerator(configuration, {});
  ranges_ = std::move(leftover.ranges);
  for (const uint32_t tidx : leftover.used_up) qpus_.take(tidx);
  used_up_ = static_cast<uint32_t>(leftover.used_up.size());
  for (const Leftover::Group& group : leftover.groups) {
    free_slots_ &= ~(uint64_t{1} << group.slot);
    for (const Resident& resident : group.batches) qpus_.take(resident.tidx);
  }
  for (Leftover::Group& group : leftover.groups) adopt(group);
}

void BatchScheduler::adopt(Leftover::Group& group) {
  const uint32_t unsettled = group.is_unsettled ? group.batches[group.unsettled].tidx : 0;
  Supergroup& supergroup = supergroups_[group.slot];
  supergroup = {.live = static_cast<uint32_t>(group.batches.size())};
  for (Resident& from : group.batches) {
    const uint32_t tidx = from.tidx;
    clocks_[tidx] = group.clock;
    Resident& resident = resident_[tidx] = std::move(from);
    if (resident.wait == Wait::kBarrier)
      ++supergroup.at_barrier;
    else if (!group.is_unsettled || tidx != unsettled)
      make_ready(tidx);
  }
  if (group.is_unsettled) settle(unsettled, group.stop);
}

bool BatchScheduler::run() {
  if (configuration_.batches == 0) return true;
  workers_ = std::min({static_cast<uint64_t>(job_.pool->concurrency()), configuration_.batches,
                       static_cast<uint64_t>(qpus_.capacity())});
  const auto shift = [this](int, int pool_slot) {
    const host_time::Scope host(host_time::Block::kDispatches);
    worker(pool_slot);
  };
  do {
    job_.pool->parallel_for(static_cast<int>(workers_), shift, job_.control);
    job_.stopped();  // waits for its turn
  } while (!stop_);
  return complete_;
}

void BatchScheduler::worker(int pool_slot) {
  std::unique_lock<std::mutex> lock = lock_soon(mutex_);
  try {
    run_batches(lock, pool_slot);
  } catch (...) {  // there is no memory: nobody is to wait for its batch
    if (!lock.owns_lock()) lock.lock();
    stop_ = true;
    change_.tell_all();
    throw;
  }
}

void BatchScheduler::run_batches(std::unique_lock<std::mutex>& lock, int pool_slot) {
  const auto begin = std::chrono::steady_clock::now();
  for (Gang gang; next(lock, &gang);) {
    lock.unlock();
    run_gang(gang, pool_slot);
    lock_soon(lock);
    settle(gang);
    if (leaves(begin)) break;
  }
  change_.tell_all();
}

/// A turn each, and again while nobody else has a batch to run, for as many instructions as a long turn has.
void BatchScheduler::run_gang(Gang& gang, int pool_slot) {
  uint64_t executed = 0;
  bool any = true;
  while (any && executed < kTurn) {
    any = false;
    uint64_t begin = UINT64_MAX;
    for (uint32_t i = 0; i < gang.count; ++i)
      if (gang.members[i].goes_on) begin = std::min(begin, gang.members[i].clock);
    for (uint32_t i = 0; i < gang.count && executed < kTurn; ++i) {
      Gang::Member& member = gang.members[i];
      if (!member.goes_on || is_ahead(member.tidx, member.clock, begin)) continue;
      const uint64_t before = member.instructions;
      run_member(member, pool_slot);
      executed += member.instructions - before;
      any |= member.goes_on && gang.alone;
    }
  }
}

void BatchScheduler::run_member(Gang::Member& member, int pool_slot) {
  Resident& resident = resident_[member.tidx];
  const uint64_t turn = turn_of(resident);
  if (!resident.thread) {
    resident.thread = std::make_unique<qpu::Thread>();
    engine_.prepare(*resident.thread);
  }
  member.stop = run_turn(resident, engine_, turn, job_.instruction_limit, member.lockstep, pool_slot);
  member.instructions += resident.last_turn;
  member.clock += resident.last_clocks;
  member.goes_on = member.stop == qpu::Stop::kBudget && !member.lockstep && resident.last_turn != 0 &&
                   resident.thread->instructions < job_.instruction_limit;
}

/// What becomes of its batches. Those whose turn did not come stay first among equals.
void BatchScheduler::settle(const Gang& gang) {
  for (uint32_t i = 0; i < gang.count; ++i) {
    const Gang::Member& member = gang.members[i];
    running_ &= ~(uint64_t{1} << member.tidx);
    clocks_[member.tidx] = member.clock;
    instructions_ += member.instructions;
    if (member.goes_on && member.instructions == 0) make_ready(member.tidx);
  }
  for (uint32_t i = 0; i < gang.count; ++i) {
    const Gang::Member& member = gang.members[i];
    if (member.goes_on && member.instructions == 0) continue;
    resident_[member.tidx].last_turn = member.instructions;
    settle(member.tidx, member.stop);
  }
}

/// Whether the shift is over: the dispatch is held, or other jobs want workers. All see it at about the same
/// time; the first to come back is the one that the dispatch belongs to.
bool BatchScheduler::leaves(std::chrono::steady_clock::time_point begin) const {
  if (job_.control && job_.control->look()) return true;
  return job_.pool->is_crowded() && std::chrono::steady_clock::now() - begin >= ThreadPool::kShare;
}

/// Instructions of the batch's next turn.
uint64_t BatchScheduler::turn_of(const Resident& resident) const {
  if (!starts_together_) return kTurn;
  return std::clamp(resident.started ? resident.thread->instructions / kPartOfTurn : 0, kShortestTurn, kTurn);
}

/// Waits for batches that can run. @return false when the dispatch is over, or has had nothing for this
/// worker for so long that the pool should have it back; those that run batches carry on
bool BatchScheduler::next(std::unique_lock<std::mutex>& lock, Gang* gang) {
  while (true) {
    if (job_.ended()) stop_ = true;
    if (stop_) break;
    launch();
    if (choose(gang)) {
      if (ready_count_ != 0) change_.tell_one();
      return true;
    }
    if (running_ != 0) {
      if (!change_.wait(lock) && running_ != 0) return false;
    } else if (qpus_.occupied() != used_up_) {
      release_deadlocked();
    } else {
      complete_ = stop_ = true;
    }
  }
  change_.tell_all();
  return false;
}

/// A batch that is so far ahead of the earliest one that it does not run. @param begin  clock of that one
bool BatchScheduler::is_ahead(uint32_t tidx, uint64_t clock, uint64_t begin) const {
  return clock > begin && clock > begin + kInstructionClocks * std::min(kLead, turn_of(resident_[tidx]));
}

/// Takes the ready batch whose clock is the earliest, of equals the one that came first, and of the others
/// the worker's share, as many as end their turns in the time of a long one. @return false: there is none, or
/// it would get too far ahead of those that run
bool BatchScheduler::choose(Gang* gang) {
  if (ready_count_ == 0) return false;
  uint32_t first = 0;
  for (uint32_t i = 1; i < ready_count_; ++i)
    if (clocks_[ready_[i]] < clocks_[ready_[first]]) first = i;
  const uint32_t chosen = ready_[first];
  uint64_t begin = clocks_[chosen];
  for (uint64_t left = running_; left != 0; left &= left - 1)
    begin = std::min(begin, clocks_[static_cast<size_t>(std::countr_zero(left))]);
  now_ = std::max(now_, begin);
  if (is_ahead(chosen, clocks_[chosen], begin)) return false;
  // Where batches take times of their own it is always the turn of the earliest.
  const uint64_t share = engine_.clocks ? 1 : (ready_count_ + workers_ - 1) / workers_;
  gang->count = 0;
  take(gang, chosen);
  uint64_t expected = expected_turn(chosen);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < ready_count_; ++i) {
    const uint32_t tidx = ready_[i];
    if (i == first) continue;
    if (gang->count < share && expected < kTurn && !is_ahead(tidx, clocks_[tidx], begin)) {
      expected += expected_turn(tidx);
      take(gang, tidx);
    } else {
      ready_[kept++] = ready_[i];
    }
  }
  ready_count_ = kept;
  gang->alone = kept == 0 && std::popcount(running_) == static_cast<int>(gang->count) && !engine_.clocks;
  return true;
}

void BatchScheduler::take(Gang* gang, uint32_t tidx) {
  Resident& resident = resident_[tidx];
  if (!resident.thread && !spare_threads_.empty()) {
    resident.thread = std::move(spare_threads_.back());
    spare_threads_.pop_back();
  }
  running_ |= uint64_t{1} << tidx;
  gang->members[gang->count++] = {
      .tidx = tidx, .lockstep = supergroups_[resident.slot].lockstep != 0, .clock = clocks_[tidx]};
}

/// Batches that meet at barriers seldom use up their turns.
uint64_t BatchScheduler::expected_turn(uint32_t tidx) const {
  const Resident& resident = resident_[tidx];
  const uint64_t turn = turn_of(resident);
  return resident.started ? std::min(resident.last_turn, turn) : turn;
}

/// Places batches on free QPU threads, in order.
void BatchScheduler::launch() {
  while (qpus_.occupied() < qpus_.capacity() && has_batch()) {
    const uint32_t opens = generator_.opens_supergroup();
    if (opens != 0 && !open_supergroup(opens)) return;
    const uint32_t tidx = qpus_.take();
    Resident& resident = resident_[tidx];
    resident.tidx = tidx;
    resident.slot = launching_slot_;
    resident.started = false;
    resident.code = nullptr;
    resident.wait = Wait::kNone;
    launch_clock_ = std::max({launch_clock_, clocks_[tidx], now_});  // the CSD launches in order
    clocks_[tidx] = launch_clock_;
    generator_.next(launching_slot_, &resident.batch);
    make_ready(tidx);
  }
}

bool BatchScheduler::has_batch() {
  while (generator_.done() && !ranges_.empty()) {
    generator_ = BatchGenerator(configuration_, ranges_.back());
    ranges_.pop_back();
  }
  return !generator_.done();
}

/// Takes the lowest free slot: batch counts that agree with the grid then never use more of them than the
/// grid has supergroups, for which drivers allocate shared memory. @return false when there is none
bool BatchScheduler::open_supergroup(uint32_t batches) {
  if (free_slots_ == 0) return false;
  launching_slot_ = static_cast<uint32_t>(std::countr_zero(free_slots_));
  free_slots_ &= free_slots_ - 1;
  supergroups_[launching_slot_] = {.live = batches};
  return true;
}

/// What becomes of a batch that stopped.
void BatchScheduler::settle(uint32_t tidx, qpu::Stop stop) {
  Resident& resident = resident_[tidx];
  Supergroup& group = supergroups_[resident.slot];
  if (stop == qpu::Stop::kEnd) {
    without_progress_ = 0;
    retire(tidx);
  } else if (stop == qpu::Stop::kHang) {
    fail(tidx, absl::StrCat("cannot go on: ", resident.thread->hang));
  } else if (resident.thread->instructions >= job_.instruction_limit) {
    fail(tidx, "does not end");
  } else if (!makes_progress(resident.last_turn)) {
    fail(tidx, "makes no progress");
  } else if (stop == qpu::Stop::kBarrier) {
    wait(tidx, Wait::kBarrier);
  } else if (stop == qpu::Stop::kMeeting) {
    meet(tidx);
  } else if (stop == qpu::Stop::kSwitch && group.lockstep != 0) {
    wait(tidx, Wait::kSwitch);
  } else {
    if (stop == qpu::Stop::kBudget && group.lockstep != 0) {  // it may spin on what another would do
      group.lockstep = 0;
      release(resident.slot, Wait::kSwitch);
    }
    make_ready(tidx);
  }
}

/// The kernel resets a dispatch when no batch ended for a second (drm-abi.md 3.5): here, for as many
/// instructions as the QPUs that have batches issue in JobContext::patience. @return false when that is
/// reached
bool BatchScheduler::makes_progress(uint64_t instructions) {
  const int busy = std::min(static_cast<int>(qpus_.occupied() - used_up_), job_.profile->qpu_count());
  without_progress_ += static_cast<double>(instructions) / (job_.profile->qpu_rate() * busy);
  return without_progress_ < job_.patience || job_.instruction_limit == kNoInstructionLimit;
}

/// An ended batch leaves its supergroup, so that the others do not wait for it at barriers.
void BatchScheduler::retire(uint32_t tidx) {
  Resident& resident = resident_[tidx];
  spare_threads_.push_back(std::move(resident.thread));
  qpus_.give_back(tidx);
  if (--supergroups_[resident.slot].live == 0)
    free_slots_ |= uint64_t{1} << resident.slot;
  else
    advance(resident.slot);
}

void BatchScheduler::wait(uint32_t tidx, Wait wait) {
  Resident& resident = resident_[tidx];
  Supergroup& group = supergroups_[resident.slot];
  resident.wait = wait;
  ++(wait == Wait::kBarrier ? group.at_barrier : group.at_switch);
  advance(resident.slot);
}

/// The last one who comes tells how many had to (it sets the quorum anew). Others of its supergroup that wait
/// at a thread switch may be those whom it waits for.
void BatchScheduler::meet(uint32_t tidx) {
  Resident& resident = resident_[tidx];
  resident.wait = Wait::kMeeting;
  const qpu::Thread::Meeting& meeting = resident.thread->meeting;
  const auto at_object = [&](const Resident& r) {
    return r.wait == Wait::kMeeting && r.thread->meeting.object == meeting.object;
  };
  supergroups_[resident.slot].lockstep = 0;
  release(resident.slot, Wait::kSwitch);
  if (static_cast<uint32_t>(std::count_if(resident_.begin(), resident_.end(), at_object)) >= meeting.threads)
    release_all(at_object);
}

/// Those that waited for each other go on at one time: that of the last one who came. @return how many
template <typename Chosen>
uint32_t BatchScheduler::release_all(const Chosen& chosen) {
  const uint32_t before = ready_count_;
  uint64_t last = 0;
  for (uint32_t tidx = 0; tidx < resident_.size(); ++tidx) {
    if (!chosen(resident_[tidx])) continue;
    resident_[tidx].wait = Wait::kNone;
    last = std::max(last, clocks_[tidx]);
    make_ready(tidx);
  }
  for (uint32_t i = before; i < ready_count_; ++i) clocks_[ready_[i]] = last;
  return ready_count_ - before;
}

/// Lets batches go on when all live ones of the supergroup wait.
void BatchScheduler::advance(uint32_t slot) {
  Supergroup& group = supergroups_[slot];
  if (group.at_barrier + group.at_switch != group.live) return;
  if (group.at_switch != 0) {
    --group.lockstep;
    release(slot, Wait::kSwitch);
  } else {
    group.lockstep = kLockstep;
    release(slot, Wait::kBarrier);
  }
}

void BatchScheduler::release(uint32_t slot, Wait wait) {
  release_all([&](const Resident& r) { return r.wait == wait && r.slot == slot; });
  (wait == Wait::kBarrier ? supergroups_[slot].at_barrier : supergroups_[slot].at_switch) = 0;
}

/// Every resident batch waits at a barrier for batches that cannot become resident. Hardware would hang; what
/// is known of barriers is too little to call that certain, so they go on.
void BatchScheduler::release_deadlocked() {
  if (const uint32_t met = release_all([](const Resident& r) { return r.wait == Wait::kMeeting; })) {
    if (!meeting_logged_)
      log_warning("csd: a TSY quorum cannot be reached by %d waiting threads; released", met);
    meeting_logged_ = true;
    return;
  }
  if (!deadlock_logged_)
    log_warning("csd: barrier cannot complete: a supergroup of %d batches, %d threads; released",
                configuration_.batches_per_sg, qpus_.capacity());
  deadlock_logged_ = true;
  for (uint32_t slot = 0; slot < supergroups_.size(); ++slot) {
    release(slot, Wait::kSwitch);
    release(slot, Wait::kBarrier);
  }
}

void BatchScheduler::make_ready(uint32_t tidx) { ready_[ready_count_++] = static_cast<uint8_t>(tidx); }

void BatchScheduler::fail(uint32_t tidx, std::string_view what) {
  const Resident& resident = resident_[tidx];
  const uint32_t xy = resident.batch.workgroup_xy[0], z = resident.batch.workgroup_z_lii[0] & 0xffff;
  const qpu::Thread& thread = *resident.thread;
  const std::string place = engine_.place ? engine_.place(thread) : absl::StrFormat("pc 0x%08x", thread.pc);
  job_.error->set_hang(absl::StrFormat(
      "compute program at 0x%08x %s at %s after %d instructions (workgroup %d, %d, %d, TIDX %d)",
      configuration_.code, what, place, thread.instructions, xy & 0xffff, xy >> 16, z, tidx));
  stop_ = true;
}

}  // namespace v3d::csd
