/// A ProcessLock is held by one thread of a process at a time. In the child of a fork nobody holds it,
/// whatever threads of its parent were about.
#pragma once

#include <sys/types.h>

#include <atomic>

#include "shim/process/own_pid.h"
#include "shim/process/raw.h"

namespace v3d::shim {

/// In signal handlers, too: one that interrupted the holder waits in vain, and is told so.
class ProcessLock {
 public:
  /// False: not in time.
  bool hold() {
    constexpr int kPatience = 10'000;
    const pid_t self = own_pid();
    pid_t seen = 0;
    for (int tries = 0; !holder_.compare_exchange_strong(seen, self, std::memory_order_acquire);) {
      if (seen != self) continue;  // free by now, or held in the process that this one was forked from
      if (++tries > kPatience) return false;
      raw::call(SYS_sched_yield);
      seen = 0;
    }
    return true;
  }
  void release() { holder_.store(0, std::memory_order_release); }

 private:
  std::atomic<pid_t> holder_{0};
};

}  // namespace v3d::shim
