/// A thread that has a request to answer answers it before it wakes workers for the jobs that came with it. A
/// worker often begins on the processor of the thread that wakes it, and the client would wait for the whole
/// job.
#pragma once

#include <utility>

namespace v3d::daemon {

/// From begin() to end() JobThreads::wake_summoned() does nothing on the calling thread.
class ReplyFirst {
 public:
  static void begin() { t_pending = true; }
  static void end() { t_pending = false; }
  static bool is_pending() { return t_pending; }

  /// For the time in which the thread runs a job itself, which may take long and lets others have their turn.
  class Pause {
   public:
    Pause() : was_pending_(std::exchange(t_pending, false)) {}
    ~Pause() { t_pending = was_pending_; }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    const bool was_pending_;
  };

 private:
  static inline thread_local bool t_pending = false;
};

}  // namespace v3d::daemon
