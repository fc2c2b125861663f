/// A backlog bounds how far a file may run ahead of the GPU. The kernel sets no limit, as on the board a GPU
/// keeps up with whoever does not wait for it; here a compositor or an X server that shows what the CPU drew
/// submits frames faster than they are drawn, and would end minutes behind and out of memory.
#pragma once

#include <deque>

#include "ioctl/sync/fence.h"

namespace v3d::ioctl {

/// The unfinished submissions of a file. Not synchronised.
class Backlog {
 public:
  static constexpr size_t kMax = 64;
  /// Longer than that no submit waits for one submission: it may hang, or wait for the submitter.
  static constexpr int64_t kPatienceNs = 1'000'000'000;

  /// Remembers a submission.
  /// @return what its submitter should wait for, for kPatienceNs at most, or null
  FencePtr add(FencePtr submission);
  /// Whether the next submitter may have to wait.
  bool is_near() const { return unfinished_.size() >= kMax; }

 private:
  std::deque<FencePtr> unfinished_;  // oldest first, without those that ended before the oldest
  FencePtr waited_for_;
};

}  // namespace v3d::ioctl
