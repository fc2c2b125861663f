/// @file Syncobjs (Linux drm_syncobj.c).
#include "ioctl/syncobj.h"

#include <algorithm>
#include <cerrno>

#include "ioctl/handlers.h"

namespace v3d::ioctl {

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
  lock.unlock();
  for (const auto& watch : woken) watch->watcher->notify();
}

void Syncobj::replace(FencePtr fence) {
  std::map<uint64_t, FencePtr> points;  // dropped outside the lock, too
  std::unique_lock lock(mutex_);
  points.swap(points_);
  passed_ = 0;
  set(std::move(lock), std::move(fence));
}

void Syncobj::add_point(const FencePtr& fence, uint64_t point) {
  std::unique_lock lock(mutex_);
  while (points_.size() > 1 && points_.begin()->second->is_signalled()) {
    passed_ = points_.begin()->first;
    points_.erase(points_.begin());
  }
  if (!points_.empty()) point = std::max(point, points_.rbegin()->first);
  FencePtr whole = fence_ ? Fence::merge(fence_, fence) : fence;
  points_[point] = whole;
  set(std::move(lock), std::move(whole));
}

FencePtr Syncobj::find_point(uint64_t point) const {
  const std::lock_guard lock(mutex_);
  if (point == 0) return fence_;
  if (point <= passed_) return Fence::stub();
  const auto it = points_.lower_bound(point);
  return it == points_.end() ? nullptr : it->second;
}

void Syncobj::watch(const std::shared_ptr<Watch>& watch) {
  const std::lock_guard lock(mutex_);
  if (fence_)
    watch->fence = fence_;
  else
    watches_.push_back(watch);
}

void Syncobj::unwatch(const std::shared_ptr<Watch>& watch) {
  const std::lock_guard lock(mutex_);
  std::erase(watches_, watch);
}

FencePtr Syncobj::watched_fence(const Watch& watch) const {
  const std::lock_guard lock(mutex_);
  return watch.fence;
}

namespace {

bool has_syncobjs(const Call& call) { return !call.file.device().modeset; }

/// Flags and point of the fd calls. A point is looked at with the flag TIMELINE only, though neither node has
/// timeline syncobjs otherwise, and refused where no sync_file is meant. Versions that do not know the flag
/// do not know the field.
int check_fd_call(const Call& call, const drm::SyncobjHandle& args, uint64_t* point) {
  const uint32_t known = call.kernel.abi().syncobj_fd_flags;
  if (args.pad || (args.flags & ~known)) return EINVAL;
  *point = args.flags & drm::kSyncobjTimeline ? args.point : 0;
  const bool has_point = (known & drm::kSyncobjTimeline) && args.point;
  return has_point && !(args.flags & drm::kSyncobjSyncFile) ? EINVAL : 0;
}

/// 0, ENOMEM, EFAULT or ENOENT.
int find_syncobjs(Call& call, uint64_t handles, uint32_t count, std::vector<std::shared_ptr<Syncobj>>* out) {
  if (count > kMaxUserArray) return ENOMEM;
  // All handles are read before the first is looked up.
  std::vector<uint32_t> values;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t value;
    if (!call.user.get(handles, i, &value)) return EFAULT;
    values.push_back(value);
  }
  for (const uint32_t value : values) {
    out->push_back(call.file.find_syncobj(value));
    if (!out->back()) return ENOENT;
  }
  return 0;
}

/// One slot of a WAIT.
struct WaitEntry {
  Syncobj* syncobj;
  FencePtr fence;                         // taken once
  std::shared_ptr<Syncobj::Watch> watch;  // while there is no fence
  bool watching_fence = false;
};

/// The blocking part of a WAIT: some fences are pending, or missing with FOR_SUBMIT.
int sleep_for_entries(std::vector<WaitEntry>& entries, const std::shared_ptr<Waiter>& waiter, bool all,
                      int64_t deadline, uint32_t* first) {
  for (WaitEntry& entry : entries) {
    if (entry.fence) continue;
    entry.watch = std::make_shared<Syncobj::Watch>(Syncobj::Watch{waiter, nullptr});
    entry.syncobj->watch(entry.watch);
  }
  while (true) {
    waiter->clear();
    size_t signalled = 0;
    for (size_t i = 0; i < entries.size(); ++i) {
      WaitEntry& entry = entries[i];
      if (!entry.fence) entry.fence = entry.syncobj->watched_fence(*entry.watch);
      if (!entry.fence) continue;
      bool done = entry.fence->is_signalled();
      if (!done && !entry.watching_fence) {
        entry.watching_fence = entry.fence->watch(waiter);
        done = !entry.watching_fence;
      }
      if (!done) continue;
      if (!all) {
        *first = static_cast<uint32_t>(i);
        return 0;
      }
      ++signalled;
    }
    if (signalled == entries.size()) return 0;
    switch (waiter->wait(deadline)) {
      case Waiter::Result::kNotified:
        break;
      case Waiter::Result::kTimedOut:
        return ETIME;
      case Waiter::Result::kAborted:
        return EINTR;
    }
  }
}

/// 0, EINVAL (empty slot), ETIME or EINTR.
int wait_for_entries(std::vector<WaitEntry>& entries, const std::shared_ptr<Waiter>& waiter, uint32_t flags,
                     int64_t deadline, uint32_t* first) {
  const bool all = (flags & drm::kWaitAll) != 0;
  size_t signalled = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    WaitEntry& entry = entries[i];
    entry.fence = entry.syncobj->fence();
    if (!entry.fence && !(flags & drm::kWaitForSubmit)) return EINVAL;
    if (entry.fence && entry.fence->is_signalled() && signalled++ == 0) *first = static_cast<uint32_t>(i);
  }
  if (signalled == entries.size() || (signalled > 0 && !all)) return 0;

  const int error = sleep_for_entries(entries, waiter, all, deadline, first);
  for (WaitEntry& entry : entries) {
    if (entry.watch) entry.syncobj->unwatch(entry.watch);
    if (entry.watching_fence) entry.fence->unwatch(waiter.get());
  }
  return error;
}

}  // namespace

int syncobj_create(Call& call, drm::SyncobjCreate& args) {
  if (!has_syncobjs(call)) return EOPNOTSUPP;
  if (args.flags & ~drm::kSyncobjCreateSignaled) return EINVAL;
  auto syncobj = std::make_shared<Syncobj>();
  if (args.flags & drm::kSyncobjCreateSignaled) syncobj->replace(Fence::stub());
  const uint32_t handle = call.file.add_syncobj(std::move(syncobj));
  if (handle == 0) return ENOSPC;
  args.handle = handle;
  return 0;
}

int syncobj_destroy(Call& call, drm::SyncobjDestroy& args) {
  if (!has_syncobjs(call)) return EOPNOTSUPP;
  if (args.pad) return EINVAL;
  return call.file.destroy_syncobj(args.handle) ? 0 : EINVAL;
}

int syncobj_handle_to_fd(Call& call, drm::SyncobjHandle& args) {
  if (!has_syncobjs(call)) return EOPNOTSUPP;
  uint64_t point;
  if (const int error = check_fd_call(call, args, &point)) return error;
  const std::shared_ptr<Syncobj> syncobj = call.file.find_syncobj(args.handle);
  UniqueFd fd;
  if (args.flags & drm::kSyncobjSyncFile) {
    if (!syncobj) return ENOENT;
    FencePtr fence = syncobj->find_point(point);
    if (!fence) return EINVAL;
    fd = call.kernel.export_sync_file({std::move(fence), ""});
  } else {
    if (!syncobj) return EINVAL;
    fd = call.kernel.export_syncobj(syncobj);
  }
  if (!fd) return EMFILE;
  call.fds.give_in_argument(offsetof(drm::SyncobjHandle, fd), std::move(fd), true);
  return 0;
}

int syncobj_fd_to_handle(Call& call, drm::SyncobjHandle& args) {
  if (!has_syncobjs(call)) return EOPNOTSUPP;
  uint64_t point;
  if (const int error = check_fd_call(call, args, &point)) return error;
  const int fd = call.fds.find(args.fd);
  if (fd < 0) return EINVAL;
  if (args.flags & drm::kSyncobjSyncFile) {
    const auto file = call.kernel.find_sync_file(fd);
    if (!file) return EINVAL;
    const std::shared_ptr<Syncobj> syncobj = call.file.find_syncobj(args.handle);
    if (!syncobj) return ENOENT;
    if (point)
      syncobj->add_point(file->fence, point);
    else
      syncobj->replace(file->fence);
    return 0;
  }
  std::shared_ptr<Syncobj> syncobj = call.kernel.find_syncobj(fd);
  if (!syncobj) return EINVAL;
  const uint32_t handle = call.file.add_syncobj(std::move(syncobj));
  if (handle == 0) return ENOSPC;
  args.handle = handle;
  return 0;
}

int syncobj_wait(Call& call, drm::SyncobjWait& args) {
  if (!has_syncobjs(call)) return EOPNOTSUPP;
  // The deadline is a hint to the hardware's clock governor.
  if (args.flags & ~(drm::kWaitAll | drm::kWaitForSubmit | drm::kWaitDeadline)) return EINVAL;
  if (args.count_handles == 0) return 0;
  std::vector<std::shared_ptr<Syncobj>> syncobjs;
  if (const int error = find_syncobjs(call, args.handles, args.count_handles, &syncobjs)) return error;
  std::vector<WaitEntry> entries(syncobjs.size());
  for (size_t i = 0; i < entries.size(); ++i) entries[i].syncobj = syncobjs[i].get();
  uint32_t first = ~0u;
  if (const int error = wait_for_entries(entries, call.waiter, args.flags, args.timeout_ns, &first))
    return error;
  args.first_signaled = first;
  return 0;
}

int syncobj_reset(Call& call, drm::SyncobjArray& args) {
  if (!has_syncobjs(call)) return EOPNOTSUPP;
  if (args.pad || args.count_handles == 0) return EINVAL;
  std::vector<std::shared_ptr<Syncobj>> syncobjs;
  if (const int error = find_syncobjs(call, args.handles, args.count_handles, &syncobjs)) return error;
  for (const auto& syncobj : syncobjs) syncobj->replace(nullptr);
  return 0;
}

int syncobj_signal(Call& call, drm::SyncobjArray& args) {
  if (!has_syncobjs(call)) return EOPNOTSUPP;
  if (args.pad || args.count_handles == 0) return EINVAL;
  std::vector<std::shared_ptr<Syncobj>> syncobjs;
  if (const int error = find_syncobjs(call, args.handles, args.count_handles, &syncobjs)) return error;
  for (const auto& syncobj : syncobjs) syncobj->replace(Fence::stub());
  return 0;
}

}  // namespace v3d::ioctl
