/// @file Ioctls on syncobjs (Linux drm_syncobj.c).
#include "ioctl/sync/syncobj.h"

#include <algorithm>
#include <cerrno>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ioctl/core/handlers.h"

namespace v3d::ioctl {
namespace {

bool has_syncobjs(const Call& call) { return call.file.device().has_gpu(); }

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

/// The blocking part of a WAIT: some fences are pending, or missing with FOR_SUBMIT. Each syncobj and each
/// fence is watched once, however often it was named, and looked at again only when it has news: the work is
/// proportional to the number of handles.
class BlockingWait {
 public:
  /// @param fences  of each syncobj, null where there is none; syncobjs are all different
  BlockingWait(const std::vector<Syncobj*>& syncobjs, std::shared_ptr<Waiter> waiter)
      : syncobjs_(syncobjs),
        news_(std::make_shared<News>(std::move(waiter), syncobjs.size())),
        watches_(syncobjs.size()) {}
  ~BlockingWait() {
    for (size_t i = 0; i < watches_.size(); ++i)
      if (watches_[i]) syncobjs_[i]->unwatch(watches_[i]);
    for (const WatchedFence& watched : fences_)
      if (watched.watcher) watched.fence->unwatch(watched.watcher.get());
  }
  BlockingWait(const BlockingWait&) = delete;
  BlockingWait& operator=(const BlockingWait&) = delete;

  /// @param first  the foremost syncobj that signalled, unless all are waited for
  int run(const std::vector<FencePtr>& fences, bool all, int64_t deadline, uint32_t* first) {
    left_ = syncobjs_.size();
    fences_.reserve(syncobjs_.size());
    for (uint32_t i = 0; i < syncobjs_.size(); ++i) {
      if (fences[i])
        add_fence(i, fences[i]);
      else
        await_fence(i);
    }
    while (true) {
      news_->waiter->clear();
      take_news();
      if (!all && foremost_ != kNone) *first = foremost_;
      if (left_ == 0 || (!all && foremost_ != kNone)) return 0;
      switch (news_->waiter->wait(deadline)) {
        case Waiter::Result::kNotified:
          break;
        case Waiter::Result::kTimedOut:
          return ETIME;
        case Waiter::Result::kAborted:
          return EINTR;
      }
    }
  }

 private:
  static constexpr uint32_t kNone = ~0u;

  struct News {
    /// Each of `count` has either news once at most: whoever tells them takes no memory.
    News(std::shared_ptr<Waiter> w, size_t count) : waiter(std::move(w)) {
      appeared.reserve(count);
      signalled.reserve(count);
    }
    const std::shared_ptr<Waiter> waiter;
    std::mutex mutex;  // protects both
    std::vector<uint32_t> appeared, signalled;
  };
  /// Tells which one it is that has news.
  class Teller : public Watcher {
   public:
    Teller(std::shared_ptr<News> news, std::vector<uint32_t> News::*list, uint32_t index)
        : news_(std::move(news)), list_(list), index_(index) {}
    void notify() override {
      {
        const std::lock_guard lock(news_->mutex);
        (*news_.*list_).push_back(index_);
      }
      news_->waiter->notify();
    }

   private:
    const std::shared_ptr<News> news_;
    std::vector<uint32_t> News::*const list_;
    const uint32_t index_;
  };
  struct WatchedFence {
    FencePtr fence;
    uint32_t foremost;                 // of the syncobjs that hold it
    size_t holders;                    // which still count
    std::shared_ptr<Watcher> watcher;  // null when it has signalled
  };

  void await_fence(uint32_t i) {
    auto teller = std::make_shared<Teller>(news_, &News::appeared, i);
    watches_[i] = std::make_shared<Syncobj::Watch>(Syncobj::Watch{std::move(teller), nullptr});
    syncobjs_[i]->watch(watches_[i]);
    if (FencePtr fence = syncobjs_[i]->watched_fence(*watches_[i])) found_fence(i, fence);
  }
  void found_fence(uint32_t i, const FencePtr& fence) {
    syncobjs_[i]->unwatch(std::exchange(watches_[i], nullptr));
    add_fence(i, fence);
  }
  void add_fence(uint32_t i, const FencePtr& fence) {
    const auto [known, is_new] = index_.emplace(fence.get(), static_cast<uint32_t>(fences_.size()));
    if (is_new) {
      auto teller = std::make_shared<Teller>(news_, &News::signalled, known->second);
      const bool pending = fence->watch(teller);
      fences_.push_back({fence, i, 0, pending ? std::move(teller) : nullptr});
    }
    WatchedFence& watched = fences_[known->second];
    watched.foremost = std::min(watched.foremost, i);
    ++watched.holders;
    if (!watched.watcher) settle(watched);
  }
  void settle(WatchedFence& watched) {
    watched.watcher = nullptr;
    foremost_ = std::min(foremost_, watched.foremost);
    left_ -= std::exchange(watched.holders, 0);
  }
  void take_news() {
    std::vector<uint32_t> appeared, signalled;
    {
      const std::lock_guard lock(news_->mutex);
      appeared = news_->appeared;
      signalled = news_->signalled;
      news_->appeared.clear();
      news_->signalled.clear();
    }
    for (const uint32_t i : signalled) settle(fences_[i]);
    for (const uint32_t i : appeared)
      if (watches_[i]) found_fence(i, syncobjs_[i]->watched_fence(*watches_[i]));
  }

  const std::vector<Syncobj*>& syncobjs_;
  const std::shared_ptr<News> news_;
  std::vector<std::shared_ptr<Syncobj::Watch>> watches_;  // while there is no fence
  std::vector<WatchedFence> fences_;
  std::unordered_map<const Fence*, uint32_t> index_;  // in fences_
  size_t left_ = 0;                                   // syncobjs that have not signalled
  uint32_t foremost_ = kNone;
};

/// 0, EINVAL (empty slot), ENOMEM (the client's limit), ETIME or EINTR. @param first  index into the
/// syncobjs, which are all different
int wait_for_syncobjs(Call& call, const std::vector<Syncobj*>& syncobjs, uint32_t flags, int64_t deadline,
                      uint32_t* first) {
  const bool all = (flags & drm::kWaitAll) != 0;
  std::vector<FencePtr> fences(syncobjs.size());
  size_t signalled = 0;
  for (size_t i = 0; i < syncobjs.size(); ++i) {
    fences[i] = syncobjs[i]->fence();
    if (!fences[i] && !(flags & drm::kWaitForSubmit)) return EINVAL;
    if (fences[i] && fences[i]->is_signalled() && signalled++ == 0) *first = static_cast<uint32_t>(i);
  }
  if (signalled == syncobjs.size() || (signalled > 0 && !all)) return 0;
  Charge watches;
  if (const int error = call.account.charge(Resource::kWatches, syncobjs.size(), &watches)) return error;
  return BlockingWait(syncobjs, call.waiter).run(fences, all, deadline, first);
}

/// Writes *handle only when all went well.
int add_handle(Call& call, std::shared_ptr<Syncobj> syncobj, uint32_t* handle) {
  uint32_t added;
  const int error = call.file.add_syncobj(call.account, std::move(syncobj), &added);
  if (!error) *handle = added;
  return error;
}

int replace_all(Call& call, const drm::SyncobjArray& args, const FencePtr& fence) {
  if (!has_syncobjs(call)) return EOPNOTSUPP;
  if (args.pad || args.count_handles == 0) return EINVAL;
  std::vector<std::shared_ptr<Syncobj>> syncobjs;
  if (const int error = find_syncobjs(call, args.handles, args.count_handles, &syncobjs)) return error;
  for (const auto& syncobj : syncobjs) syncobj->replace(fence);
  return 0;
}

}  // namespace

int syncobj_create(Call& call, drm::SyncobjCreate& args) {
  if (!has_syncobjs(call)) return EOPNOTSUPP;
  if (args.flags & ~drm::kSyncobjCreateSignaled) return EINVAL;
  auto syncobj = std::make_shared<Syncobj>();
  if (args.flags & drm::kSyncobjCreateSignaled) syncobj->replace(Fence::stub());
  if (const int error = add_handle(call, syncobj, &args.handle)) return error;
  const auto& status = call.file.status();
  if (status && args.handle < wire::Status::kSyncobjs) syncobj->show_in(status, args.handle);
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
    fd = call.kernel.export_sync_file(call.account, {std::move(fence), ""});
  } else {
    if (!syncobj) return EINVAL;
    syncobj->hide();
    fd = call.kernel.export_syncobj(call.account, syncobj);
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
    if (!point) {
      syncobj->replace(file->fence);
      return 0;
    }
    // A point looks at all fences before it, too.
    const FencePtr before = syncobj->fence();
    Charge watches;
    if (const int error = call.account.charge(
            Resource::kWatches, file->fence->num_parts() + (before ? before->num_parts() : 0), &watches))
      return error;
    syncobj->add_point(file->fence, point, std::move(watches));
    return 0;
  }
  std::shared_ptr<Syncobj> syncobj = call.kernel.find_syncobj(fd);
  if (!syncobj) return EINVAL;
  return add_handle(call, std::move(syncobj), &args.handle);
}

int syncobj_wait(Call& call, drm::SyncobjWait& args) {
  if (!has_syncobjs(call)) return EOPNOTSUPP;
  // The deadline is a hint to the hardware's clock governor.
  if (args.flags & ~(drm::kWaitAll | drm::kWaitForSubmit | drm::kWaitDeadline)) return EINVAL;
  if (args.count_handles == 0) return 0;
  std::vector<std::shared_ptr<Syncobj>> syncobjs;
  if (const int error = find_syncobjs(call, args.handles, args.count_handles, &syncobjs)) return error;
  if (syncobjs.size() > kMaxWaitHandles) return ENOMEM;
  std::vector<Syncobj*> different;
  std::vector<uint32_t> places;  // in the caller's array
  std::unordered_set<const Syncobj*> seen;
  for (uint32_t i = 0; i < syncobjs.size(); ++i) {
    if (!seen.insert(syncobjs[i].get()).second) continue;
    different.push_back(syncobjs[i].get());
    places.push_back(i);
  }
  uint32_t first = ~0u;
  if (const int error = wait_for_syncobjs(call, different, args.flags, args.timeout_ns, &first)) return error;
  if (first != ~0u) first = places[first];
  args.first_signaled = first;
  return 0;
}

int syncobj_reset(Call& call, drm::SyncobjArray& args) { return replace_all(call, args, nullptr); }

int syncobj_signal(Call& call, drm::SyncobjArray& args) { return replace_all(call, args, Fence::stub()); }

}  // namespace v3d::ioctl
