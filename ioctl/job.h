/// Jobs: what a submit ioctl hands to the scheduler.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gpu/device/device.h"
#include "ioctl/account.h"
#include "ioctl/bo.h"
#include "ioctl/fence.h"
#include "ioctl/perfmon.h"

namespace v3d::ioctl {

/// The numbers are the ABI's (wait_stage of MULTI_SYNC).
enum class Queue : uint8_t { kBin, kRender, kTfu, kCsd, kCacheClean, kCpu };
inline constexpr int kNumQueues = 6;
/// "bin", "render", ...
const char* queue_name(Queue queue);
/// Name of the kernel's scheduler, "v3d_bin", ...: the timeline name of its fences.
const char* queue_timeline(Queue queue);

/// Whom jobs and files belong to, for messages and statistics.
struct ClientInfo {
  uint64_t id;  ///< of the drm_file
  int32_t pid;
  std::string program;
  std::array<std::atomic<uint64_t>, kNumQueues> jobs_done{};
  std::array<std::atomic<uint64_t>, kNumQueues> busy_ns{};
  std::atomic<uint64_t> mmu_faults{0};   ///< accesses
  std::atomic<uint64_t> faulty_jobs{0};  ///< jobs with such accesses
  std::atomic<uint64_t> failed_jobs{0};
  std::atomic<uint64_t> resets{0};    ///< of the GPU that its jobs caused
  std::atomic<uint64_t> refusals{0};  ///< of memory
};

/// Whether the count-th message of a kind about one client is worth a line: a client may fail as often as it
/// likes, so all of the first are written and then ever fewer.
constexpr bool worth_a_line(uint64_t count) { return count <= 16 || (count & (count - 1)) == 0; }

struct Job {
  explicit Job(Queue q) : queue(q) {}

  const Queue queue;
  std::shared_ptr<ClientInfo> client;
  /// Set for BIN, RENDER and CSD: compute excludes the other two in one address space (device::Context).
  std::shared_ptr<AddressRoom> room;
  /// Fences to wait for, at most one per context.
  std::vector<FencePtr> dependencies;
  /// Signalled when the job has ended, after all its memory effects.
  FencePtr done;
  /// Held until the job is freed, and given its fence.
  std::vector<std::shared_ptr<Bo>> bos;
  std::shared_ptr<Perfmon> perfmon;
  /// Itself, and the bytes of its lists.
  Charge charge, bytes;
  /// Runs the job. Empty when there is nothing to do (CACHE_CLEAN: memory is coherent here).
  std::function<device::JobResult(const std::atomic<bool>& cancel)> run;

  /// Of one context the later fence is kept.
  void add_dependency(FencePtr fence);
};
using JobPtr = std::shared_ptr<Job>;

/// Where jobs go: the scheduler of the daemon, a fake in tests.
class JobSink {
 public:
  virtual ~JobSink() = default;
  /// Queues the jobs of one submission in this order; called under Kernel::submit_mutex, does not block.
  virtual void push(const std::vector<JobPtr>& jobs) = 0;
};

}  // namespace v3d::ioctl
