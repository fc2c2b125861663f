/// A DisplayClock is the thread by which time passes for the display.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "ioctl/display/display.h"

namespace v3d::daemon {

/// Calls tick() whenever something is due. The thread starts when it is woken first: most daemons show
/// nothing.
class DisplayClock {
 public:
  explicit DisplayClock(ioctl::kms::Display& display) : display_(display) {}
  ~DisplayClock();
  DisplayClock(const DisplayClock&) = delete;
  DisplayClock& operator=(const DisplayClock&) = delete;

  /// Something may be due now, or sooner than it was. Any thread, under any lock of the display's clients.
  void wake();

 private:
  void run();

  ioctl::kms::Display& display_;
  std::mutex mutex_;  // protects all below
  std::condition_variable changed_;
  bool woken_ = false, stop_ = false;
  std::thread thread_;
};

}  // namespace v3d::daemon
