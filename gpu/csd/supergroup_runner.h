/// A SupergroupRunner runs the supergroups of a dispatch, each on one worker at a time. One that ends within
/// a turn is all that its worker does meanwhile: it holds no lock and takes the next ones from a counter. One
/// that does not makes way for others, until as many are under way as the chip holds: these take turns, the
/// one first whose clock is the earliest. Within a supergroup batches go on until a barrier or the end of the
/// turn stops them.
///
/// That is how dispatches of drivers run. Supergroups that cannot end alone, or not soon, and other shapes of
/// dispatches are for the BatchScheduler.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "gpu/base/job_context.h"
#include "gpu/base/short_mutex.h"
#include "gpu/csd/batch_generator.h"
#include "gpu/csd/change.h"
#include "gpu/csd/qpu_slots.h"
#include "gpu/csd/resident.h"

namespace v3d::csd {

class SupergroupRunner {
 public:
  /// Whether the dispatch is of a shape for it, and workers have enough to do.
  static bool suits(const JobContext& job, const Configuration& configuration);

  SupergroupRunner(const JobContext& job, const Configuration& configuration, const Engine& engine);

  /// Runs the dispatch on job.pool until all batches ended, the job is over, or supergroups are stuck.
  /// @return false in the last case: leftover() is for a BatchScheduler
  bool run();
  /// All batches ended.
  bool complete() const { return is_empty() && !stuck_; }
  /// Once, after run().
  Leftover leftover();

  uint64_t instructions() const;

 private:
  /// Where the batches of a supergroup are.
  struct Group {
    uint32_t slot = 0;
    std::vector<Resident> batches;      // places; those of the supergroup under way first
    uint32_t count = 0;                 // of those
    bool is_new = false;                // none of them began
    bool goes_alone = false;            // its turns may be longer
    uint32_t live = 0, at_barrier = 0;  // did not end yet; 0: no supergroup is under way
    // Instructions of its batches, of all turns that did not end them; how many they were when all last met
    // at a barrier, and when one ended.
    uint64_t executed = 0, at_meeting = 0, at_end = 0;
    uint64_t clock = 0;         // of the GPU, at which it goes on, or the next one of its place begins
    bool is_unsettled = false;  // how batch number `unsettled` stopped
    size_t unsettled = 0;
    qpu::Stop stop = qpu::Stop::kBudget;
  };

  /// What a worker has.
  struct alignas(64) Worker {
    explicit Worker(const Configuration& configuration) : generator(configuration, {}) {}

    Group* group = nullptr;  // that it runs
    uint64_t used = 0;       // clocks of its last turn
    SupergroupRange range;   // that it opens next
    BatchGenerator generator;
    Batch batch;                                      // that begins
    std::vector<std::unique_ptr<qpu::Thread>> spare;  // one serves batch after batch while all end in a turn
    uint64_t instructions = 0;
  };

  /// How much of a turn is left.
  struct Turn {
    uint64_t left = kTurn, used = 0;  // instructions; clocks
    uint64_t instructions = 0;        // of all batches
    bool spent = false;               // one was stopped by its end

    void spend(uint64_t most, uint64_t clocks) {
      left -= std::min(left, most);
      used += clocks;
    }
  };

  static uint32_t count_groups(const JobContext& job, const Configuration& configuration);
  void work(Worker& worker, int pool_slot, std::chrono::microseconds patience);
  bool has_group(Worker& worker);
  bool choose(Worker& worker);
  void park(Worker& worker);
  void leave(Worker& worker);
  bool refill(Worker& worker, uint64_t supergroups);
  bool refill_shared(Worker& worker);
  Group* earliest(uint64_t slots);
  Group* place();
  void open(Worker& worker);
  void begin(Worker& worker, int pool_slot, Turn& turn);
  void begin_supergroup(Worker& worker, int pool_slot, BatchFunction* function, Turn& turn);
  static void place_batch(const Worker& worker, uint32_t index, uint32_t tidx);
  void run_turn(Worker& worker, int pool_slot);
  void run_round(Worker& worker, int pool_slot, Turn& turn);
  qpu::Thread& spare_thread(Worker& worker);
  std::unique_ptr<qpu::Thread> take_thread(Worker& worker);
  void take_stop(Group& group, uint32_t index, qpu::Stop stop, Turn& turn);
  static void release(Group& group);
  bool settle(Group& group, uint32_t index, qpu::Stop stop);
  bool is_empty() const;
  bool is_over() const { return stuck_ || job_.ended() || is_empty(); }
  const uint8_t* tidx(const Group& group, uint64_t supergroup) const;

  const JobContext& job_;
  const Configuration configuration_;
  const Engine& engine_;
  const uint64_t supergroups_, per_range_;
  std::array<uint8_t, QpuSlots::kMaxThreads> tidx_{};  // by place: QPU threads in the order of the dispatcher
  const bool all_fit_;                                 // every batch has a thread of its own
  const uint32_t most_groups_;
  std::vector<Worker> workers_;
  std::atomic<uint64_t> next_{0};  // supergroup
  std::atomic<bool> stuck_{false};
  std::atomic<uint32_t> parked_{0};  // groups of waiting_

  ShortMutex mutex_;  // protects all below, and clocks of groups
  Change change_;
  std::vector<Group> groups_;                      // by slot; made when they are first needed
  uint64_t free_ = 0, waiting_ = 0, running_ = 0;  // their slots, a bit each; waiting: nobody runs them
  uint64_t now_ = 0;                               // by the clock of the GPU
  std::vector<SupergroupRange> ranges_;            // that workers gave back
};

}  // namespace v3d::csd
