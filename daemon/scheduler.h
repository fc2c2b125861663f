/// The job queues (drm-abi.md 3.1; Linux scheduler/sched_main.c, sched_entity.c): six queues, a FIFO per file
/// and queue, with one job of it in flight.
///
/// Between files the kernel starts the earliest pushed job and lets it end; here a job may take a thousand
/// times as long, so files share each queue in slices. In each queue one job runs. The others that have begun
/// are held: their threads wait where they are, at the next checkpoint of their Turn. Who runs next:
/// - of the client processes the one that has had least (FairShares). A process that comes anew is ahead of
///   the others, and if it is so by half a slice, it does not even wait for the end of the slice. All that
///   have exited count as one: who dies with work in the queues leaves it no more of them than that;
/// - of the files of a process the one whose job has run least;
/// - else the job that was pushed first, as in the kernel.
///
/// The thread that starts a job drives it to its end, so jobs in flight are bounded by threads. These are
/// made as they are needed; where the host gives no more, jobs wait for others to end. A small job whose
/// queue is free is started by the thread that pushed it: waking another one takes longer than the job.
///
/// With Options::pace a job has its queue at least as long as the board would take (its prediction). What is
/// left of that when it has been executed is time like any other: it is part of the job's slices, is charged
/// to its process, and stands still while others have theirs. But no thread is there for it, unless it is but
/// a moment; an Alarm ends it, at once when its client is gone.
///
/// It is live: a job that runs either ends, and its thread looks for the next, or comes to a checkpoint,
/// where it sees the end of its slice and lets others run; a job in flight waits for nothing but its slice,
/// as its dependencies are signalled before it starts; the clocks of FairShares pass by everybody who waits.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "daemon/alarm.h"
#include "daemon/fair_shares.h"
#include "daemon/gpu_errors.h"
#include "daemon/predictor.h"
#include "gpu/base/crew.h"
#include "gpu/base/short_mutex.h"
#include "ioctl/job.h"

namespace v3d::daemon {

/// Thread safe.
class Scheduler {
 public:
  struct Options {
    /// How long a job runs while up to four others want its queue; in a crowd of 50 and more a tenth of it.
    int64_t slice_ns = 20'000'000;
    /// Threads, each of which may drive a job; at least one per queue.
    int max_threads = 256;
    bool pace = false;            ///< jobs end no earlier than predicted
    GpuErrors* errors = nullptr;  ///< where those of jobs are remembered; null: nowhere
  };
  /// Of the threads so many are kept for the first job in flight of a process.
  static constexpr int kFirstJobThreads = 128;

  Scheduler() : Scheduler(Options()) {}
  /// Throws std::system_error or std::bad_alloc when the first threads cannot be started.
  explicit Scheduler(const Options& options);
  /// Drops what is queued, cancels what runs, and waits for it.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// All or, with std::bad_alloc, nothing. What comes later needs no memory of the scheduler's; a job that
  /// finds none for itself fails.
  void push(const std::vector<ioctl::JobPtr>& jobs);
  /// After push(), by the same thread: runs the small ones of these jobs whose turn it is.
  void run_small(const std::vector<ioctl::JobPtr>& jobs);
  /// By a thread that goes on running: one that was woken up for a job and has not begun, perhaps since this
  /// one has its processor, gets another. Costs nothing where there is none.
  void make_way();

  /// A client is gone: its jobs in flight are cancelled, its queued ones end with ESRCH as soon as their
  /// dependencies are signalled.
  void kill(uint64_t client);

  struct Activity {
    bool idle = true;    ///< no job queued or in flight
    int in_flight = 0;   ///< jobs
    int64_t ran_ns = 0;  ///< its jobs so far, in slices of theirs
  };
  Activity activity(const ioctl::ClientInfo& client) const;
  bool is_idle(const ioctl::ClientInfo& client) const { return activity(client).idle; }

  struct QueueStatus {
    size_t queued;     ///< those in flight included
    size_t in_flight;  ///< of which one runs and the others are held
    uint64_t jobs_done;
    uint64_t busy_ns;
  };
  std::array<QueueStatus, ioctl::kNumQueues> status() const;

 private:
  /// Threads that stay when there is nothing to do.
  static constexpr int kIdleWorkers = ioctl::kNumQueues - 1;

  class Node;
  using NodePtr = std::shared_ptr<Node>;

  struct QueueState {
    explicit QueueState(int64_t slice_ns) : shares(slice_ns) {}

    std::map<uint64_t, std::list<NodePtr>> entities;  // by client; never empty lists
    NodePtr running;                                  // in its slice, or null
    size_t in_flight = 0;
    FairShares shares;        // by process
    int64_t competitors = 1;  // files, at the last look; those of the dead as one
    bool contested = false;   // by more than one file
    uint64_t jobs_done = 0;
    uint64_t busy_ns = 0;
  };
  /// Jobs of one address space.
  struct SpaceUse {
    size_t jobs = 0;  ///< queued or in flight
    int cl = 0;       ///< bin and render in flight
    bool csd = false;
  };
  struct ProcessUse {
    size_t jobs = 0;  ///< queued or in flight
    int in_flight = 0;
  };

  QueueState& state(ioctl::Queue queue) { return queues_[static_cast<size_t>(queue)]; }
  const QueueState& state(ioctl::Queue queue) const { return queues_[static_cast<size_t>(queue)]; }

  // Places of jobs in the queues and tables below
  void make_places(const Node& node);
  void drop_empty_places(const Node& node);
  void enqueue(std::list<NodePtr>& entry);
  void dequeue(const NodePtr& node);

  void stop();
  void drop(Node& node);
  void on_ready(Node& node);
  void run_empty_jobs(std::unique_lock<std::mutex>& lock);
  NodePtr first_clean() const;

  // Small jobs
  NodePtr start_small(const ioctl::JobPtr& job);
  static bool is_small(const ioctl::Job& job);

  // Threads
  void work();
  void run(std::unique_lock<std::mutex>& lock, NodePtr node);
  void bury(std::unique_lock<std::mutex>& lock, const NodePtr& node);
  static void tell_end(const Node& node, int64_t ran_ns);

  // Jobs that have been executed and are not over yet
  bool keep_pace(Node& node, device::JobResult& result);
  int64_t look_at_paced(std::unique_lock<std::mutex>& lock);
  NodePtr find_due(int64_t now_ns) const;
  void end_paced(std::unique_lock<std::mutex>& lock, NodePtr node);
  int64_t let_others(QueueState& queue, int64_t now_ns);
  bool lacks_threads();
  void summon();
  void wake_summoned();
  bool has_thread_for(const Node& node) const;

  // Slices
  NodePtr arrange();
  NodePtr arrange(QueueState& queue, int64_t now_ns, bool may_start);
  NodePtr next_of(QueueState& queue, int64_t now_ns);
  bool may_replace(const QueueState& queue, const Node& node, int64_t now_ns) const;
  void consider(Node& node);
  bool wait(Node& node);
  void grant(QueueState& queue, const NodePtr& node, int64_t now_ns);
  void hold(QueueState& queue, int64_t now_ns);
  static int64_t elapsed(const Node& node, int64_t now_ns);
  int64_t slice(const QueueState& queue) const;
  void charge(QueueState& queue, Node& node, int64_t now_ns);
  NodePtr find_killed() const;

  // Jobs of one address space
  bool is_blocked(const Node& node) const;
  bool earlier_ready(ioctl::Queue queue, const Node& than) const;
  void enter_space(const ioctl::Job& job);
  void leave_space(const ioctl::Job& job);

  void begin(const NodePtr& node);
  void leave_thread(const Node& node);
  int64_t stop_clock(Node& node);
  void finish(const NodePtr& node);
  bool is_empty() const;

  const Options options_;
  mutable ShortMutex mutex_;  // protects all below and the plain members of nodes; not held while a job runs
  std::vector<QueueState> queues_;  // by Queue
  // No entries without jobs.
  std::unordered_map<const ioctl::BoSpace*, SpaceUse> spaces_;
  std::unordered_map<int32_t, ProcessUse> processes_;
  int in_flight_ = 0;        // jobs that have threads
  int small_in_flight_ = 0;  // of these, on threads that are no workers
  int killed_ = 0;           // queued jobs that will not run
  uint64_t next_seqno_ = 0;
  bool running_empty_jobs_ = false;
  bool stop_ = false;
  Idlers idlers_{kIdleWorkers};
  int summoned_ = 0;             // of the idle workers
  std::atomic<int> to_wake_{0};  // workers, of those who summoned them, when they have unlocked the mutex
  std::atomic<bool> summons_{false};  // a worker that does not run yet
  int thread_limit_;                  // lower than the option since the host refused one
  std::condition_variable wake_;
  Predictor predictor_;
  Crew workers_;                  // any of them serves any queue
  std::unique_ptr<Alarm> alarm_;  // null: no pace is kept
};

}  // namespace v3d::daemon
