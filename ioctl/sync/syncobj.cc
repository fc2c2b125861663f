/// @file The slots (Linux drm_syncobj.c).
#include "ioctl/sync/syncobj.h"

#include <algorithm>
#include <utility>

namespace v3d::ioctl {

Syncobj::~Syncobj() { hide(); }

FencePtr Syncobj::fence() const {
  const std::lock_guard lock(mutex_);
  return fence_;
}

void Syncobj::set(std::unique_lock<std::mutex> lock, FencePtr fence) {
  std::vector<std::shared_ptr<Watch>> woken;
  fence_.swap(fence);  // the old one is dropped outside the lock
  if (fence_) {
    woken.swap(watches_);
    for (const auto& watch : woken) watch->fence = fence_;
  }
  show();
  lock.unlock();
  for (const auto& watch : woken) watch->watcher->notify();
}

void Syncobj::show_in(const std::shared_ptr<FileStatus>& status, uint32_t handle) {
  const std::lock_guard lock(mutex_);
  status_ = status;
  handle_ = handle;
  show();
}

void Syncobj::show() {
  if (!status_) return;
  // Who waits for a fence here would not hear of one that a client puts there.
  const bool awaited = !fence_ && !watches_.empty();
  entry_ = awaited ? status_->forget(handle_) : status_->say(handle_, fence_.get());
}

bool Syncobj::hear() {
  std::unique_lock lock(mutex_);
  const auto change = status_ ? status_->change_of(handle_, entry_) : std::nullopt;
  if (!change) return true;
  if (*change == wire::kDestroyed) return false;
  replace(std::move(lock), status_->fence_of_change(*change));
  return true;
}

void Syncobj::hide() {
  std::unique_lock lock(mutex_);
  if (!status_) return;
  // In this order: a client that changes it now sees that it has to ask, or is seen here.
  status_->forget(handle_);
  const auto change = status_->change_of(handle_, entry_);
  const auto status = std::exchange(status_, nullptr);
  if (change) replace(std::move(lock), status->fence_of_change(*change));
}

FencePtr Syncobj::fence(uint32_t* entry) const {
  const std::lock_guard lock(mutex_);
  *entry = status_ ? entry_ : 0;
  return fence_;
}

void Syncobj::replace(FencePtr fence) { replace(std::unique_lock(mutex_), std::move(fence)); }

void Syncobj::replace(std::unique_lock<std::mutex> lock, FencePtr fence) {
  std::map<uint64_t, Point> points;  // dropped when set() has unlocked
  points.swap(points_);
  passed_ = 0;
  set(std::move(lock), std::move(fence));
}

void Syncobj::add_point(const FencePtr& fence, uint64_t point, Charge watches) {
  std::unique_lock lock(mutex_);
  while (points_.size() > 1 && points_.begin()->second.fence->is_signalled()) {
    passed_ = points_.begin()->first;
    points_.erase(points_.begin());
  }
  if (!points_.empty()) point = std::max(point, points_.rbegin()->first);
  FencePtr whole = fence_ ? Fence::merge(fence_, fence) : fence;
  points_[point] = {whole, std::move(watches)};
  set(std::move(lock), std::move(whole));
}

FencePtr Syncobj::find_point(uint64_t point) const {
  const std::lock_guard lock(mutex_);
  if (point == 0) return fence_;
  if (point <= passed_) return Fence::stub();
  const auto it = points_.lower_bound(point);
  return it == points_.end() ? nullptr : it->second.fence;
}

void Syncobj::watch(const std::shared_ptr<Watch>& watch) {
  std::unique_lock lock(mutex_);
  if (fence_) {
    watch->fence = fence_;
    return;
  }
  watches_.push_back(watch);
  if (!status_) return;
  // As in hide().
  const uint32_t entry = std::exchange(entry_, status_->forget(handle_));
  if (const auto change = status_->change_of(handle_, entry))
    replace(std::move(lock), status_->fence_of_change(*change));
}

void Syncobj::unwatch(const std::shared_ptr<Watch>& watch) {
  const std::lock_guard lock(mutex_);
  const bool was_awaited = !watches_.empty();
  std::erase(watches_, watch);
  if (was_awaited && watches_.empty()) show();
}

FencePtr Syncobj::watched_fence(const Watch& watch) const {
  const std::lock_guard lock(mutex_);
  return watch.fence;
}

}  // namespace v3d::ioctl
