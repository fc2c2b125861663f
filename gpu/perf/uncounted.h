/// While an Uncounted lives, nobody looks at the performance counters of the jobs that its thread starts:
/// what has no other effect than to count need not be done.
#pragma once

#include <utility>

namespace v3d::perf {

class Uncounted {
 public:
  /// @param is  whether that is so; else somebody may look, as without an Uncounted
  explicit Uncounted(bool is = true) : before_(std::exchange(here_, is)) {}
  ~Uncounted() { here_ = before_; }
  Uncounted(const Uncounted&) = delete;
  Uncounted& operator=(const Uncounted&) = delete;

  /// Of the calling thread.
  static bool here() { return here_; }

 private:
  static inline thread_local bool here_ = false;
  const bool before_;
};

}  // namespace v3d::perf
