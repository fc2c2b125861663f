/// Runs the supergroups of a dispatch one by one, each on one worker, which holds no lock and takes the next
/// ones from a counter. Batches go on until a barrier or the end of a slice stops them, and then make way for
/// the others of their supergroup.
///
/// That is how dispatches of drivers run. Supergroups that cannot end alone, or not soon, and other shapes of
/// dispatches are for the BatchScheduler.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/base/job_context.h"
#include "gpu/csd/batch_generator.h"
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
  /// What a worker works at. Outlives its shifts.
  struct alignas(64) Group {
    explicit Group(const Configuration& configuration) : generator(configuration, {}) {}

    uint32_t slot = 0, first_thread = 0;  // index of the first of its own TIDX values
    SupergroupRange range;                // that follows
    BatchGenerator generator;
    std::vector<Resident> batches;              // of the supergroup under way, and further places
    uint32_t count = 0, begun = 0;              // of those
    uint32_t live = 0, at_barrier = 0;          // did not end yet; 0: no supergroup is under way
    uint64_t since_barrier = 0, since_end = 0;  // instructions
    std::vector<std::unique_ptr<qpu::Thread>> spare;
    uint64_t instructions = 0;
    bool is_unsettled = false;  // how batch number `unsettled` stopped
    size_t unsettled = 0;
    qpu::Stop stop = qpu::Stop::kBudget;
  };

  static uint32_t count_groups(const JobContext& job, const Configuration& configuration);
  void work(Group& group, int pool_slot, std::chrono::microseconds patience);
  bool open(Group& group);
  void begin(Group& group, Resident& resident);
  bool run_turn(Group& group, int pool_slot);
  bool settle(Group& group, uint32_t index, qpu::Stop stop);
  bool is_empty() const;
  bool is_over() const { return stuck_ || job_.ended() || is_empty(); }
  uint32_t tidx(const Group& group, uint32_t index) const;

  const JobContext& job_;
  const Configuration configuration_;
  const Engine& engine_;
  const uint64_t supergroups_, per_range_;
  const QpuSlots qpus_;            // for the order of their threads
  const bool all_fit_;             // every batch has a thread of its own
  std::vector<Group> groups_;      // by worker
  std::atomic<uint64_t> next_{0};  // supergroup
  std::atomic<bool> stuck_{false};
};

}  // namespace v3d::csd
