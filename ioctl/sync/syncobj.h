/// A syncobj is a slot that holds a fence or nothing (drm-abi.md 6).
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "ioctl/sync/fence.h"

namespace v3d::ioctl {

/// Thread safe.
class Syncobj {
 public:
  ~Syncobj();
  FencePtr fence() const;
  /// Null empties the slot. A fence goes to everybody who waits for one to appear.
  void replace(FencePtr fence);

  /// @name Clients that ask no more than its file's status (wire::Status)
  /// From now on its fences are shown there. Of one handle only, as clients empty the slot there.
  void show_in(const std::shared_ptr<FileStatus>& status, uint32_t handle);
  /// Hears of what clients did there. False when they have destroyed it.
  bool hear();
  /// No more: other files know it too, or it has no handle.
  void hide();
  /// What it holds, and the lower half of its entry there; 0 when it has none.
  FencePtr fence(uint32_t* entry) const;

  /// @name Timeline points (drm-abi.md 6.3)
  /// Only the fd calls reach them: neither node has the timeline ioctls.
  /// Puts a fence after what the slot holds (drm_syncobj_add_point).
  /// @param watches  kept as long as the point
  void add_point(const FencePtr& fence, uint64_t point, Charge watches = {});
  /// The fence of a point and all before it; point 0 is the whole slot. Null when there is none so late.
  FencePtr find_point(uint64_t point) const;

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
  struct Point {
    FencePtr fence;  // with all before it
    Charge watches;
  };
  void set(std::unique_lock<std::mutex> lock, FencePtr fence);
  void replace(std::unique_lock<std::mutex> lock, FencePtr fence);
  void show();

  mutable std::mutex mutex_;  // protects all below and Watch::fence of its watches
  FencePtr fence_;
  std::map<uint64_t, Point> points_;  // the last is fence_
  uint64_t passed_ = 0;               // points up to here have signalled and are forgotten
  std::vector<std::shared_ptr<Watch>> watches_;
  std::shared_ptr<FileStatus> status_;  // null: not shown
  uint32_t handle_ = 0, entry_ = 0;     // there
};

}  // namespace v3d::ioctl
