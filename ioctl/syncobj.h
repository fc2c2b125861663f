/// A syncobj: a slot that holds a fence or nothing (drm-abi.md 6).
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "ioctl/fence.h"

namespace v3d::ioctl {

/// Thread safe.
class Syncobj {
 public:
  FencePtr fence() const;
  /// Null empties the slot. A fence goes to everybody who waits for one to appear.
  void replace(FencePtr fence);

  /// A WAIT with FOR_SUBMIT on an empty slot. The first fence that appears is kept, whatever the slot holds
  /// later.
  struct Watch {
    std::shared_ptr<Watcher> watcher;
    FencePtr fence;  // protected by the syncobj's lock
  };
  /// Takes the fence of the slot, or waits for one and notifies the watcher then.
  void watch(const std::shared_ptr<Watch>& watch);
  void unwatch(const std::shared_ptr<Watch>& watch);
  FencePtr watched_fence(const Watch& watch) const;

 private:
  mutable std::mutex mutex_;  // protects all below and Watch::fence of its watches
  FencePtr fence_;
  std::vector<std::shared_ptr<Watch>> watches_;
};

}  // namespace v3d::ioctl
