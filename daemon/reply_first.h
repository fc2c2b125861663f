/// A thread that has a request to answer answers it before it wakes workers for the jobs that came with it. A
/// worker often begins on the processor of the thread that wakes it, and the client would wait for the whole
/// job.
#pragma once

namespace v3d::daemon {

/// From begin() to end() JobThreads::wake_summoned() does nothing on the calling thread.
class ReplyFirst {
 public:
  static void begin() { t_pending_ = true; }
  static void end() { t_pending_ = false; }
  static bool is_pending() { return t_pending_; }

 private:
  static inline thread_local bool t_pending_ = false;
};

}  // namespace v3d::daemon
