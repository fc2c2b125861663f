#include "daemon/predictor.h"

#include <exception>
#include <utility>

namespace v3d::daemon {

Predictor::~Predictor() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    wake_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void Predictor::take(device::JobResult result) {
  if (result.later && !enqueue(result)) result.predict();
}

/// @return  false, and `result` as it was, where there is no room or no thread for it
bool Predictor::enqueue(device::JobResult& result) {
  const std::lock_guard lock(mutex_);
  const uint64_t bytes = result.recorded_bytes;
  if (jobs_.size() >= kMostJobs || bytes > kMostBytes - bytes_) return false;
  try {
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
    jobs_.push(std::move(result));  // where there is no memory for it, it is as it was
  } catch (const std::exception&) {
    return false;
  }
  bytes_ += bytes;
  wake_.notify_one();
  return true;
}

void Predictor::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return ends_ || !jobs_.empty(); });
    if (ends_) return;
    device::JobResult& result = jobs_.front();
    lock.unlock();
    result.predict();  // and what was recorded is gone
    lock.lock();
    bytes_ -= result.recorded_bytes;
    jobs_.pop();
  }
}

}  // namespace v3d::daemon
