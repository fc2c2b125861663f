#include "ioctl/sync/fence.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <memory>
#include <new>
#include <unordered_map>

namespace v3d::ioctl {

int64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

uint64_t new_fence_context() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

FencePtr Fence::stub() {
  auto fence = std::make_shared<Fence>("stub", "stub", new_fence_context(), 0);
  fence->signal();
  return fence;
}

Fence::~Fence() {
  if (!place_ || is_signalled()) return;
  status_->show_signal(place_);
  status_->give_back(place_);
}

void Fence::show_in(std::shared_ptr<FileStatus> status) {
  place_ = status->take_place(weak_from_this());
  if (place_) status_ = std::move(status);
}

int Fence::status() const {
  if (!is_signalled()) return 0;
  return error_ ? -error_ : 1;
}

void Fence::signal(int error) {
  std::vector<std::shared_ptr<Watcher>> watchers;
  std::unique_ptr<Positions> positions;  // of many, and so dropped outside the lock
  {
    const std::lock_guard lock(mutex_);
    if (signalled_.load(std::memory_order_relaxed)) return;
    error_ = error;
    timestamp_ns_ = monotonic_ns();
    // First for clients: who sees here that it has signalled tells them nothing that they do not see. Who
    // sees it there, and asks, is made to wait for the mutex by watch().
    if (place_) status_->show_signal(place_);
    signalled_.store(true, std::memory_order_release);
    watchers.swap(watchers_);
    positions.swap(positions_);
  }
  if (place_) status_->give_back(place_);
  for (const auto& watcher : watchers)
    if (watcher) watcher->notify();
}

bool Fence::watch(std::shared_ptr<Watcher> watcher) {
  if (is_signalled()) return false;
  const std::lock_guard lock(mutex_);
  if (signalled_.load(std::memory_order_relaxed)) return false;
  watchers_.push_back(std::move(watcher));
  if (positions_) {
    try {
      positions_->emplace(watchers_.back().get(), watchers_.size() - 1);
    } catch (const std::bad_alloc&) {
      positions_.reset();
    }
  }
  return true;
}

/// An index of them is made when one of many goes, and lost with the gaps.
std::vector<std::shared_ptr<Watcher>>::iterator Fence::find_watcher(const Watcher* watcher) {
  constexpr size_t kFew = 16;
  if (watchers_.size() > kFew && !positions_) {
    try {
      auto positions = std::make_unique<Positions>(watchers_.size());
      for (size_t i = 0; i < watchers_.size(); ++i)
        if (watchers_[i]) positions->emplace(watchers_[i].get(), i);
      positions_ = std::move(positions);
    } catch (const std::bad_alloc&) {  // it takes longer then
    }
  }
  if (!positions_) return std::ranges::find_if(watchers_, [&](const auto& w) { return w.get() == watcher; });
  const auto known = positions_->find(watcher);
  if (known == positions_->end()) return watchers_.end();
  const auto position = static_cast<std::ptrdiff_t>(known->second);
  positions_->erase(known);
  return watchers_.begin() + position;
}

void Fence::close_gaps() {
  std::erase(watchers_, nullptr);
  gaps_ = 0;
  positions_.reset();
}

void Fence::unwatch(const Watcher* watcher) {
  std::shared_ptr<Watcher> gone;  // dropped outside the lock
  const std::lock_guard lock(mutex_);
  const auto found = find_watcher(watcher);
  if (found == watchers_.end()) return;
  found->swap(gone);
  ++gaps_;
  if (2 * gaps_ > watchers_.size() || !positions_) close_gaps();
}

std::vector<FencePtr> Fence::parts() {
  if (merged_from_.empty()) return {shared_from_this()};
  return merged_from_;
}

/// Signals the merged fence with the last of its parts; the first error of a part becomes its error. The
/// parts do not keep the merged fence alive.
class Fence::PartWatcher : public Watcher {
 public:
  PartWatcher(const FencePtr& merged, int count) : merged_(merged), pending_(count) {}
  void notify() override {
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    const FencePtr merged = merged_.lock();
    if (!merged) return;
    int error = 0;
    for (const FencePtr& part : merged->merged_from_)
      if (error == 0 && part->status() < 0) error = -part->status();
    merged->signal(error);
  }

 private:
  const std::weak_ptr<Fence> merged_;
  std::atomic<int> pending_;
};

FencePtr Fence::merge(const FencePtr& a, const FencePtr& b) {
  std::vector<FencePtr> parts;
  std::unordered_map<uint64_t, size_t> index;  // by context
  for (const FencePtr& source : {a, b}) {
    for (FencePtr& part : source->parts()) {
      if (part->is_signalled()) continue;
      const auto [same, added] = index.try_emplace(part->context(), parts.size());
      if (added)
        parts.push_back(std::move(part));
      else if (parts[same->second]->seqno() < part->seqno())
        parts[same->second] = std::move(part);
    }
  }
  if (parts.empty()) return stub();
  if (parts.size() == 1) return parts.front();

  auto merged = std::make_shared<Fence>("dma_fence_array", "unbound", new_fence_context(), 1);
  merged->merged_from_ = parts;
  // One more than the parts, so that it cannot signal before all are watched.
  const auto watcher = std::make_shared<PartWatcher>(merged, static_cast<int>(parts.size()) + 1);
  for (const FencePtr& part : parts)
    if (!part->watch(watcher)) watcher->notify();
  watcher->notify();
  return merged;
}

Waiter::Waiter(int connection, int process)
    : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), connection_(connection), process_(process) {}

void Waiter::notify() {
  if (pending_.exchange(true, std::memory_order_acq_rel)) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(event_.get(), &one, sizeof one);
}

void Waiter::clear() {
  if (!pending_.exchange(false, std::memory_order_acq_rel)) return;
  uint64_t count;
  [[maybe_unused]] const ssize_t got = read(event_.get(), &count, sizeof count);
}

Waiter::Result Waiter::wait(int64_t deadline_ns) {
  while (!pending_.load(std::memory_order_acquire)) {
    timespec timeout;
    const timespec* limit = nullptr;
    if (deadline_ns != INT64_MAX) {
      const int64_t left = deadline_ns - monotonic_ns();
      if (left <= 0) return Result::kTimedOut;
      timeout = {static_cast<time_t>(left / 1'000'000'000), static_cast<long>(left % 1'000'000'000)};
      limit = &timeout;
    }
    // poll passes over negative descriptors.
    pollfd fds[] = {{event_.get(), POLLIN, 0}, {connection_, POLLRDHUP, 0}, {process_, POLLIN, 0}};
    if (ppoll(fds, std::size(fds), limit, nullptr) <= 0) continue;
    if (fds[1].revents != 0 || fds[2].revents != 0) return Result::kAborted;
    // The write of a notification that clear() overtook: its news has been seen, or is about to be.
    uint64_t count;
    [[maybe_unused]] const ssize_t got = read(event_.get(), &count, sizeof count);
    break;
  }
  return Result::kNotified;
}

int wait_for_all(const std::vector<FencePtr>& fences, const std::shared_ptr<Waiter>& waiter,
                 int64_t deadline_ns) {
  for (const FencePtr& fence : fences) {
    if (fence->is_signalled()) continue;
    waiter->clear();
    if (!fence->watch(waiter)) continue;
    while (!fence->is_signalled()) {
      const Waiter::Result result = waiter->wait(deadline_ns);
      waiter->clear();
      if (fence->is_signalled() || result == Waiter::Result::kNotified) continue;
      fence->unwatch(waiter.get());
      return result == Waiter::Result::kTimedOut ? ETIME : EINTR;
    }
  }
  return 0;
}

}  // namespace v3d::ioctl
