/// A fixed set of workers that share out independent pieces of one job (tiles, vertex batches, workgroups).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace v3d {

class ThreadPool {
 public:
  /// @param workers  threads besides the caller, 0 or more; 0 runs everything on the caller.
  explicit ThreadPool(int workers);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Number of pieces that can run at once: workers plus the caller.
  int concurrency() const { return static_cast<int>(threads_.size()) + 1; }

  /// Runs fn(i, slot) for i in [0, count) on the caller and the workers and returns when all are done.
  /// slot is in [0, concurrency()) and unique among the pieces of this call that run at one time, so it can
  /// index per-thread state. Several threads may call parallel_for at once.
  void parallel_for(int count, const std::function<void(int i, int slot)>& fn);

 private:
  struct Task;
  void worker();
  static void help(Task& task);

  std::vector<std::thread> threads_;
  std::mutex mutex_;  // protects tasks_ and stop_
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Task>> tasks_;
  bool stop_ = false;
};

}  // namespace v3d
