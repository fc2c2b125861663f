/// The job queues (drm-abi.md 3.1; Linux scheduler/sched_main.c, sched_entity.c): six queues with one job in
/// flight each, a FIFO per file and queue, the earliest pushed job whose dependencies are signalled first.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "ioctl/job.h"

namespace v3d::daemon {

/// Thread safe.
class Scheduler {
 public:
  Scheduler();
  /// Drops what is queued, cancels what runs, and waits for it.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  void push(const std::vector<ioctl::JobPtr>& jobs);

  /// A client is gone: its running jobs are cancelled, its queued ones end with ESRCH as soon as their
  /// dependencies are signalled.
  void kill(uint64_t client);
  /// Whether the client has no job queued or running.
  bool is_idle(uint64_t client) const;

  struct QueueStatus {
    size_t queued;  ///< the running one included
    bool running;
    uint64_t jobs_done;
    uint64_t busy_ns;
  };
  std::array<QueueStatus, ioctl::kNumQueues> status() const;

 private:
  struct Node;
  using NodePtr = std::shared_ptr<Node>;

  struct QueueState {
    std::map<uint64_t, std::deque<NodePtr>> entities;  // by client; never empty deques
    NodePtr running;
    uint64_t jobs_done = 0;
    uint64_t busy_ns = 0;
  };
  /// Running jobs of one address space.
  struct RoomUse {
    int cl = 0;  ///< bin and render
    bool csd = false;
  };

  QueueState& state(ioctl::Queue queue) { return queues_[static_cast<size_t>(queue)]; }
  void on_ready(Node& node);
  void work();
  void run(std::unique_lock<std::mutex>& lock, NodePtr node);
  /// The job to start next, or null. Queues that run one are passed over.
  NodePtr pick() const;
  NodePtr pick(ioctl::Queue queue) const;
  bool is_blocked(const Node& node) const;
  bool earlier_ready(ioctl::Queue queue, const Node& than) const;
  void start(const NodePtr& node);
  void finish(const NodePtr& node, int64_t busy_ns);
  bool is_empty() const;
  void run_empty_jobs(std::unique_lock<std::mutex>& lock);

  mutable std::mutex mutex_;  // protects all below and the plain members of nodes; not held while a job runs
  std::array<QueueState, ioctl::kNumQueues> queues_;
  std::unordered_map<const ioctl::AddressRoom*, RoomUse> rooms_;
  uint64_t next_seqno_ = 0;
  bool running_empty_jobs_ = false;
  bool stop_ = false;
  int idle_workers_ = 0;
  std::condition_variable wake_;
  std::vector<std::thread> workers_;  // any of them serves any queue
};

}  // namespace v3d::daemon
