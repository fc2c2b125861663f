/// @file From what the display is set to, to what it shows (Linux drm_atomic_helper.c, drm_vblank.c).
#include <algorithm>
#include <cerrno>

#include "ioctl/kms/display.h"

namespace v3d::ioctl::kms {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
/// So long does the kernel wait for a vertical blanking (drm_wait_vblank_ioctl).
constexpr int64_t kPatienceNs = 3 * kSecond;

constexpr uint64_t kDpmsOn = 0, kDpmsOff = 3;

drm::VblankEvent make_event(uint32_t type, uint64_t user_data, const Display::Vblank& at) {
  return {.base = {type, sizeof(drm::VblankEvent)},
          .user_data = user_data,
          .tv_sec = static_cast<uint32_t>(at.time_ns / kSecond),
          .tv_usec = static_cast<uint32_t>(at.time_ns % kSecond / 1000),
          .sequence = static_cast<uint32_t>(at.sequence),
          .crtc_id = kCrtcId};
}

}  // namespace

/// Has the clock look again when a fence signals.
class Display::FenceWatcher : public Watcher {
 public:
  explicit FenceWatcher(std::function<void()> wake) : wake_(std::move(wake)) {}
  void notify() override { wake_(); }

 private:
  const std::function<void()> wake_;
};

void Display::News::tell(Display& display) {
  for (const FencePtr& fence : done) fence->signal();
  for (const auto& watcher : watchers) watcher->notify();
  if (wake) display.wake_();
}

uint64_t Display::ticks_at(int64_t now_ns, uint64_t hz) {
  const auto now = static_cast<uint64_t>(now_ns);
  return now / kSecond * hz + now % kSecond * hz / kSecond;
}

Display::Vblank Display::vblank_at(int64_t now_ns) const {
  if (!options_.vblank_hz) return {free_sequence_, now_ns};
  const uint64_t sequence = ticks_at(now_ns, options_.vblank_hz) - first_sequence_;
  return {sequence, time_of(sequence)};
}

/// CLOCK_MONOTONIC at which it comes, rounded up so that it has come by then.
int64_t Display::time_of(uint64_t sequence) const {
  const uint64_t hz = options_.vblank_hz, grid = sequence + first_sequence_;
  return static_cast<int64_t>(grid / hz * kSecond + (grid % hz * kSecond + hz - 1) / hz);
}

bool Display::vblank(Vblank* now) const {
  const std::lock_guard lock(mutex_);
  if (!shown_.active()) return false;
  *now = vblank_at(options_.now_ns());
  return true;
}

void Display::frame_shown(int64_t time_ns, News* news) {
  ++frame_;
  frame_ns_ = time_ns;
  news->watchers.insert(news->watchers.end(), frame_watchers_.begin(), frame_watchers_.end());
  news->watchers.insert(news->watchers.end(), sleepers_.begin(), sleepers_.end());
}

/// Events and sleepers whose sequence has come; all of them when the CRTC goes off (drm_crtc_vblank_off).
void Display::release_waits(const Vblank& now, bool all, News* news) {
  std::erase_if(vblank_waits_, [&](VblankWait& wait) {
    if (!all && wait.sequence > now.sequence) return false;
    if (wait.is_sequence)
      wait.event.send(drm::SequenceEvent{
          {drm::kEventCrtcSequence, sizeof(drm::SequenceEvent)}, wait.user_data, now.time_ns, now.sequence});
    else
      wait.event.send(make_event(drm::kEventVblank, wait.user_data, now));
    return true;
  });
  const size_t asleep = sleeping_for_.size();
  std::erase_if(sleeping_for_, [&](uint64_t sequence) { return all || sequence <= now.sequence; });
  if (sleeping_for_.size() != asleep)
    news->watchers.insert(news->watchers.end(), sleepers_.begin(), sleepers_.end());
}

void Display::complete(int64_t time_ns, News* news) {
  const bool was_active = shown_.active();
  if (!options_.vblank_hz) ++free_sequence_;
  const Vblank at = {vblank_at(time_ns).sequence, time_ns};
  shown_ = std::move(pending_->next);
  pending_->event.send(make_event(drm::kEventFlipComplete, pending_->user_data, at));
  if (pending_->done) news->done.push_back(std::move(pending_->done));
  pending_.reset();
  ++completed_;
  if (was_active && !shown_.active()) release_waits(at, true, news);
  frame_shown(time_ns, news);
  keep_picture(news);
}

/// @return when there will be more to do
int64_t Display::advance(int64_t now_ns, News* news) {
  if (pending_) {
    std::erase_if(pending_->fences, [](const FencePtr& fence) { return fence->is_signalled(); });
    const bool is_quick =
        pending_->async || !options_.vblank_hz || !shown_.active() || !pending_->next.active();
    if (pending_->due_ns == 0 && pending_->fences.empty())
      pending_->due_ns = is_quick ? now_ns : time_of(vblank_at(now_ns).sequence + 1);
    if (pending_->due_ns && pending_->due_ns <= now_ns) complete(is_quick ? now_ns : pending_->due_ns, news);
  }
  const Vblank now = vblank_at(now_ns);
  if (shown_.active()) release_waits(now, false, news);
  int64_t next = pending_ && pending_->due_ns ? pending_->due_ns : INT64_MAX;
  if (options_.vblank_hz) {
    uint64_t first = UINT64_MAX;
    for (const VblankWait& wait : vblank_waits_) first = std::min(first, wait.sequence);
    for (const uint64_t sequence : sleeping_for_) first = std::min(first, sequence);
    // One that is further away than the clock reaches never comes.
    if (first - now.sequence < uint64_t{options_.vblank_hz} << 32) next = std::min(next, time_of(first));
  }
  return next;
}

int64_t Display::tick() {
  News news;
  int64_t next;
  {
    const std::lock_guard lock(mutex_);
    next = advance(options_.now_ns(), &news);
  }
  news.tell(*this);
  return next;
}

int Display::sleep(std::unique_lock<std::mutex>& lock, const std::shared_ptr<Waiter>& waiter,
                   int64_t deadline_ns, const std::function<bool()>& done) {
  waiter->clear();
  if (done()) return 0;
  sleepers_.push_back(waiter);
  Waiter::Result result = Waiter::Result::kNotified;
  while (result == Waiter::Result::kNotified) {
    lock.unlock();
    result = waiter->wait(deadline_ns);
    waiter->clear();
    lock.lock();
    if (done()) break;
  }
  const auto it = std::find(sleepers_.begin(), sleepers_.end(), waiter);
  if (it != sleepers_.end()) sleepers_.erase(it);
  if (done()) return 0;
  return result == Waiter::Result::kTimedOut ? ETIME : EINTR;
}

namespace {

/// What a flip waits for: the client's fence, else the jobs that write to the buffers
/// (drm_gem_plane_helper_prepare_fb).
std::vector<FencePtr> fences_of(const DisplayState& next, uint32_t changed) {
  std::vector<FencePtr> fences;
  for (uint32_t i = 0; i < kNumPlanes; ++i) {
    const ObjectState& plane = next.plane(i);
    if (!(changed >> (kFirstPlane + i) & 1) || !plane.fb) continue;
    if (plane.in_fence) {
      fences.push_back(plane.in_fence);
      continue;
    }
    for (uint32_t part = 0; part < plane.fb->format->parts; ++part)
      for (FencePtr& fence : plane.fb->parts[part].bo->reservation().fences(false))
        fences.push_back(std::move(fence));
  }
  std::erase_if(fences, [](const FencePtr& fence) { return fence->is_signalled(); });
  return fences;
}

}  // namespace

FencePtr Display::make_fence() {
  const std::lock_guard lock(mutex_);
  return std::make_shared<Fence>("vc4", "CRTC:32-crtc-0", fence_context_, ++last_fence_);
}

void Display::queue(Commit commit, DisplayState next, News* news) {
  auto pending = std::make_unique<Pending>();
  pending->fences = fences_of(next, commit.changed);
  next.drop_fences();
  state_ = next;
  pending->next = std::move(next);
  pending->event = std::move(commit.event);
  pending->user_data = commit.user_data;
  pending->done = std::move(commit.done);
  pending->async = commit.async;
  pending->watcher = std::make_shared<FenceWatcher>(wake_);
  for (const FencePtr& fence : pending->fences) fence->watch(pending->watcher);
  pending_ = std::move(pending);
  ++commits_;
  advance(options_.now_ns(), news);
  news->wake = true;
}

namespace {

/// After a mode setting the connectors that take part say whether they are on
/// (drm_atomic_helper_update_legacy_modeset_state).
void set_dpms(const DisplayState& before, DisplayState* next) {
  for (uint32_t i = 0; i < kNumConnectors; ++i)
    if (before.is_lit(i) || next->is_lit(i))
      next->connector(i).set(kDpms, next->is_lit(i) && next->active() ? kDpmsOn : kDpmsOff);
}

}  // namespace

int Display::commit(Commit commit, const std::shared_ptr<Waiter>& waiter) {
  std::unique_lock lock(mutex_);
  while (true) {
    DisplayState next = state_;
    commit.change(next);
    if (needs_modeset(state_, next)) set_dpms(state_, &next);
    if (const int error = check(state_, next, commit.changed, commit.allow_modeset, bool{commit.event}))
      return error;
    if (commit.test_only) return 0;
    News news;
    if (commit.at_once) {
      for (DisplayState* state : {&state_, pending_ ? &pending_->next : nullptr, &shown_}) {
        if (!state) continue;
        commit.change(*state);
        state->drop_fences();
      }
      frame_shown(options_.now_ns(), &news);
      keep_picture(&news);
      lock.unlock();
      news.tell(*this);
      return 0;
    }
    if (pending_) {
      if (commit.nonblock) return EBUSY;
      const uint64_t before = completed_;
      if (const int error = sleep(lock, waiter, INT64_MAX, [&] { return completed_ != before; }))
        return error;
      continue;
    }
    const bool blocks = !commit.nonblock;
    queue(std::move(commit), std::move(next), &news);
    const uint64_t number = commits_;
    lock.unlock();
    news.tell(*this);
    if (!blocks) return 0;
    lock.lock();
    // Whoever is gone does not take back what it has asked for.
    sleep(lock, waiter, INT64_MAX, [&] { return completed_ >= number; });
    return 0;
  }
}

/// Nobody has the node open: the console is shown again, and nothing is left of what was set.
void Display::come_to_rest(News* news) {
  if (pending_) {
    for (const FencePtr& fence : pending_->fences) fence->unwatch(pending_->watcher.get());
    if (pending_->done) news->done.push_back(std::move(pending_->done));
    pending_.reset();
    ++completed_;
  }
  state_ = shown_ = at_rest();
  release_waits(vblank_at(options_.now_ns()), true, news);
  frame_shown(options_.now_ns(), news);
}

/// Without a clock whatever is waited for comes at once, also what is far away.
void Display::skip_to(uint64_t sequence, int64_t now_ns, News* news) {
  constexpr uint64_t kNear = 1 << 20;
  if (sequence - free_sequence_ < kNear) free_sequence_ = sequence;
  release_waits({sequence, now_ns}, false, news);
}

void Display::queue_event(uint64_t sequence, EventQueue::Slot slot, uint64_t user_data, bool is_sequence) {
  News news;
  {
    const std::lock_guard lock(mutex_);
    const int64_t now = options_.now_ns();
    vblank_waits_.push_back({sequence, user_data, std::move(slot), is_sequence});
    if (!options_.vblank_hz) skip_to(sequence, now, &news);
    if (!shown_.active()) release_waits(vblank_at(now), true, &news);
    advance(now, &news);
    news.wake = true;
  }
  news.tell(*this);
}

int Display::wait_for_vblank(uint64_t sequence, const std::shared_ptr<Waiter>& waiter) {
  std::unique_lock lock(mutex_);
  if (!options_.vblank_hz) return 0;
  if (!shown_.active() || vblank_at(options_.now_ns()).sequence >= sequence) return 0;
  sleeping_for_.push_back(sequence);
  lock.unlock();
  wake_();
  lock.lock();
  const int error = sleep(lock, waiter, options_.now_ns() + kPatienceNs, [&] {
    return !shown_.active() || vblank_at(options_.now_ns()).sequence >= sequence;
  });
  const auto it = std::find(sleeping_for_.begin(), sleeping_for_.end(), sequence);
  if (it != sleeping_for_.end()) sleeping_for_.erase(it);
  return error == ETIME ? EBUSY : error;
}

}  // namespace v3d::ioctl::kms
