/// An Alarm is a thread that looks after something when its time has come.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace v3d::daemon {

class Alarm {
 public:
  static constexpr int64_t kNever = INT64_MAX;
  /// Called by the thread under the owner's mutex, which it may give up meanwhile. @return  when to call it
  /// again (ioctl::monotonic_ns())
  using Look = std::function<int64_t(std::unique_lock<std::mutex>& lock)>;

  /// Throws std::system_error when the host has no thread.
  Alarm(std::mutex& mutex, Look look);
  /// Without the mutex.
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  /// Under the mutex: has it look soon.
  void ring() {
    rung_ = true;
    wake_.notify_one();
  }

 private:
  void work();

  std::mutex& mutex_;
  const Look look_;
  bool rung_ = false, ends_ = false;  // under the mutex
  std::condition_variable wake_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace v3d::daemon
