/// A Job is what a submit ioctl hands to the scheduler.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpu/base/job_control.h"
#include "gpu/base/log_limiter.h"
#include "gpu/device/device.h"
#include "ioctl/base/account.h"
#include "ioctl/base/unique_fd.h"
#include "ioctl/jobs/perfmon.h"
#include "ioctl/memory/bo.h"
#include "ioctl/sync/fence.h"

namespace v3d::ioctl {

/// The numbers are the ABI's (wait_stage of MULTI_SYNC).
enum class Queue : uint8_t { kBin, kRender, kTfu, kCsd, kCacheClean, kCpu };
inline constexpr int kNumQueues = 6;
/// "bin", "render", ...
const char* queue_name(Queue queue);
/// Name of the kernel's scheduler, "v3d_bin", ...: the timeline name of its fences.
const char* queue_timeline(Queue queue);

/// A process that uses files.
struct User {
  int32_t pid = 0;
  std::string program;
  std::shared_ptr<UniqueFd> process;  ///< pidfd; may be null or empty
  LogClient log;                      ///< on whose behalf messages about it are
  std::string run = {};               ///< $V3DEMU_RUN (wire.h); empty: none
};

/// Whom jobs and files belong to, for messages and statistics. A file is opened by one process and often used
/// by another: X servers and compositors open nodes for their clients.
struct ClientInfo {
  uint64_t id;          ///< of the drm_file
  int32_t pid;          ///< of the process that opened it
  std::string program;  ///< the same
  /// The process that used the file last; before any did, the one that opened it. Thread safe.
  std::shared_ptr<const User> user() const;
  void used_by(const std::shared_ptr<const User>& user);

  std::array<std::atomic<uint64_t>, kNumQueues> jobs_done{};
  std::array<std::atomic<uint64_t>, kNumQueues> busy_ns{};
  std::atomic<uint64_t> mmu_faults{0};   ///< accesses
  std::atomic<uint64_t> faulty_jobs{0};  ///< jobs with such accesses
  std::atomic<uint64_t> failed_jobs{0};
  std::atomic<uint64_t> resets{0};    ///< of the GPU that its jobs caused
  std::atomic<uint64_t> refusals{0};  ///< of memory
  /// So many of its small jobs are left to other threads, as one took long.
  std::atomic<uint32_t> not_small{0};
  /// Its jobs that were queued before that one are not run; the scheduler's, under its mutex.
  uint64_t dropped_below = 0;

 private:
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const User> user_;  // under mutex_
  std::atomic<const User*> last_{nullptr};    // user_, to compare without the lock
};

/// Whether the count-th message of a kind about one client is worth a line: a client may fail as often as it
/// likes, so all of the first are written and then ever fewer.
constexpr bool worth_a_line(uint64_t count) { return count <= 16 || (count & (count - 1)) == 0; }

struct Job {
  explicit Job(Queue q) : queue(q) {}

  const Queue queue;
  /// By its registers little work: the thread that submits it may run it itself, rather than wake another.
  bool small = false;
  std::shared_ptr<ClientInfo> client;
  /// Who submitted it; null: the client's user.
  std::shared_ptr<const User> user;
  /// Set for BIN, RENDER and CSD: compute excludes the other two in one address space (device::Context).
  std::shared_ptr<BoSpace> space;
  /// Fences to wait for, at most one per context.
  std::vector<FencePtr> dependencies;
  /// Signalled when the job has ended, after all its memory effects.
  FencePtr done;
  /// Held until the job is freed, and given its fence.
  std::vector<std::shared_ptr<Bo>> bos;
  std::shared_ptr<Perfmon> perfmon;
  /// Itself, and the bytes of its lists.
  Charge charge, bytes;
  /// What it makes of its lists, as long as that is needed.
  Charge derived;
  /// Runs the job. Empty when there is nothing to do (CACHE_CLEAN: memory is coherent here).
  std::function<device::JobResult(JobControl& control)> run;

  /// Of one context the later fence is kept.
  void add_dependency(FencePtr fence);
  /// Has many dependencies paid for; few cost no more than the job. 0, or ENOMEM and the job is not to be
  /// queued.
  /// @param expected  as many as it is about to have, if that is more than it has
  [[nodiscard]] int charge_dependencies(Account& account, size_t expected = 0);
  /// Drops those that need not be waited for.
  template <typename Predicate>
  void drop_dependencies(const Predicate& dropped) {
    std::erase_if(dependencies, dropped);
    index_.clear();
  }

 private:
  /// So many cost no more than the job itself.
  static constexpr size_t kFew = 16;
  /// Of each: the pointers here, in the fence and in the index, with the room that vectors keep.
  static constexpr uint64_t kDependencyBytes = 96;

  FencePtr* find_dependency(uint64_t context);

  Charge dependency_bytes_;
  std::unordered_map<uint64_t, size_t> index_;  // of many dependencies, by context; else empty
};
using JobPtr = std::shared_ptr<Job>;

/// Where jobs go: the scheduler of the daemon, a fake in tests.
class JobSink {
 public:
  virtual ~JobSink() = default;
  /// Queues the jobs of one submission in this order; called under the submit mutex of their file, does not
  /// block.
  virtual void push(const std::vector<JobPtr>& jobs) = 0;
  /// After each push, by its thread and without a lock: runs those of the jobs that are small and could run
  /// now.
  virtual void run_small(const std::vector<JobPtr>& /*jobs*/) {}
  /// By the same thread, which waits for jobs before it answers the request that they came with.
  virtual void before_wait() {}
};

}  // namespace v3d::ioctl
