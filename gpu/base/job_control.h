/// Through its JobControl a running job hears from its scheduler that it is to end, or to stand still for a
/// while.
#pragma once

#include <atomic>
#include <cstdint>

namespace v3d {

/// The threads of a job ask it between small pieces of work (a tile, a packet, some thousand instructions,
/// what a WorkMeter counts as such a piece): what they work on stays on their stacks while they wait. This
/// one never waits; a scheduler that shares the GPU derives its own. Thread safe.
class JobControl {
 public:
  JobControl() = default;
  virtual ~JobControl() = default;
  JobControl(const JobControl&) = delete;
  JobControl& operator=(const JobControl&) = delete;

  /// The job is to end early: its client is gone.
  const std::atomic<bool>& cancelled() const { return cancelled_; }
  void cancel() { cancelled_ = true; }

  /// Others have their turn: checkpoint() would wait. Threads that can do something else do that.
  bool held() const { return held_.load(std::memory_order_relaxed) && !insists(); }

  /// Waits while the job is held: until other jobs have had their slices. So nobody comes here with a lock
  /// that a job or a client may want, unless the job insists. @return whether it waited
  bool checkpoint() { return attention_.load(std::memory_order_relaxed) && !insists() && attend(); }

  /// The checkpoint of a thread that can do something else: does not wait. @return held()
  bool look() {
    if (attention_.load(std::memory_order_relaxed) && !insists()) consider();
    return held();
  }

  /// Charges whoever sent the job for host memory that its input makes grow, for as long as what the job
  /// leaves behind is there. @return  false: there is no more for it, and the job fails
  virtual bool take_memory([[maybe_unused]] uint64_t bytes) { return true; }
  /// What take_memory() took, while the job runs.
  virtual void return_memory([[maybe_unused]] uint64_t bytes) {}

  /// Whether somebody may read the performance counters of the job. If not, what has no other effect than to
  /// count need not be done. Before it runs.
  void set_counted(bool counted) { counted_ = counted; }
  bool counted() const { return counted_; }

  /// The job keeps a lock that other jobs want, and from now on does not stand still.
  void insist() { insists_ = true; }

 protected:
  /// What checkpoint() and look() do while attention_ is set.
  virtual bool attend() { return false; }
  virtual void consider() {}

  bool insists() const { return insists_.load(std::memory_order_relaxed); }

  std::atomic<bool> cancelled_{false}, held_{false}, attention_{false};

 private:
  std::atomic<bool> insists_{false};
  bool counted_ = true;
};

}  // namespace v3d
