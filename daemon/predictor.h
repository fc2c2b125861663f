/// A Predictor predicts the times of jobs that are over, beside others, while nobody waits for the result.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <queue>
#include <thread>

#include "gpu/device/device.h"

namespace v3d::daemon {

/// Thread safe. One thread, from the first job that needs it.
class Predictor {
 public:
  /// What there is at most at a time, the one under way included: whose job is one too many makes its
  /// prediction itself, so that nobody is ahead of the predictions by more.
  static constexpr size_t kMostJobs = 8;
  static constexpr uint64_t kMostBytes = uint64_t{256} << 20;  ///< of what was recorded

  Predictor() = default;
  /// Drops what waits. The devices of the jobs are still there.
  ~Predictor();
  Predictor(const Predictor&) = delete;
  Predictor& operator=(const Predictor&) = delete;

  /// Has the prediction of that job made, if one is to be made: by and by, or before it returns where there
  /// is no room for it, or no thread.
  void take(device::JobResult result);

 private:
  bool enqueue(device::JobResult& result);
  void work();

  std::mutex mutex_;  // protects all below
  std::condition_variable wake_;
  std::queue<device::JobResult> jobs_;  // the first one is under way
  uint64_t bytes_ = 0;                  // that they hold
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace v3d::daemon
