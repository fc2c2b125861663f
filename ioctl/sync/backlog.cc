#include "ioctl/sync/backlog.h"

#include <new>
#include <utility>

namespace v3d::ioctl {

FencePtr Backlog::add(FencePtr submission) {
  try {
    unfinished_.push_back(std::move(submission));
  } catch (const std::bad_alloc&) {
    return nullptr;  // it is queued already: one more than we count
  }
  while (!unfinished_.empty() && unfinished_.front()->is_signalled()) unfinished_.pop_front();
  if (unfinished_.size() <= kMax) return nullptr;
  // One that was waited for in vain is not waited for again.
  if (waited_for_ && !waited_for_->is_signalled()) return nullptr;
  return waited_for_ = unfinished_[unfinished_.size() - kMax - 1];
}

}  // namespace v3d::ioctl
