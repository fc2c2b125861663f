/// A deadline ends the process in time, whatever else runs in it.
#pragma once

#include <semaphore.h>

#include <chrono>
#include <functional>
#include <thread>

namespace v3d::daemon {

/// From start() on the process has so long to come to the destructor. If it does not, a thread of this
/// abandons what is under way: a client's job that does not look whether it is to end, or a call of the host
/// that does not return.
class Deadline {
 public:
  /// @param abandon  ends the process. Throws std::system_error when the host has no thread.
  Deadline(std::chrono::milliseconds time, std::function<void()> abandon);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  /// Any thread, also signal handlers. The first call counts.
  void start() { sem_post(&started_); }

 private:
  void wait();

  const std::chrono::milliseconds time_;
  const std::function<void()> abandon_;
  sem_t started_, over_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace v3d::daemon
