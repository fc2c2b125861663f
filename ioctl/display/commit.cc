/// @file From what the display is set to, to what it shows (Linux drm_atomic_helper.c, drm_vblank.c).
#include <algorithm>
#include <cerrno>

#include "ioctl/display/display.h"
#include "ioctl/display/modifiers.h"

namespace v3d::ioctl::kms {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
/// So long does the kernel wait for a vertical blanking (drm_wait_vblank_ioctl).
constexpr int64_t kPatienceNs = 3 * kSecond;

constexpr uint64_t kDpmsOn = 0, kDpmsOff = 3;

drm::VblankEvent make_event(uint32_t type, uint32_t pipe, uint64_t user_data, const Display::Vblank& at) {
  return {.base = {type, sizeof(drm::VblankEvent)},
          .user_data = user_data,
          .tv_sec = static_cast<uint32_t>(at.time_ns / kSecond),
          .tv_usec = static_cast<uint32_t>(at.time_ns % kSecond / 1000),
          .sequence = static_cast<uint32_t>(at.sequence),
          .crtc_id = kPipes[pipe].crtc};
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
  if (!writes.empty()) display.writer_.push(std::move(writes));
  if (wake) display.wake_();
}

uint64_t Display::ticks_at(int64_t now_ns, uint64_t hz) {
  const auto now = static_cast<uint64_t>(now_ns);
  return now / kSecond * hz + now % kSecond * hz / kSecond;
}

Display::Vblank Display::vblank_at(uint32_t pipe, int64_t now_ns) const {
  if (!has_clock(pipe)) return {counts_[pipe], now_ns};
  const uint64_t sequence = ticks_at(now_ns, options_.vblank_hz) - first_sequence_;
  return {sequence, time_of(sequence)};
}

/// CLOCK_MONOTONIC at which it comes, rounded up so that it has come by then.
int64_t Display::time_of(uint64_t sequence) const {
  const uint64_t hz = options_.vblank_hz, grid = sequence + first_sequence_;
  return static_cast<int64_t>(grid / hz * kSecond + (grid % hz * kSecond + hz - 1) / hz);
}

bool Display::vblank(uint32_t pipe, Vblank* now) const {
  const std::lock_guard lock(mutex_);
  if (!shown_.active(pipe)) return false;
  *now = vblank_at(pipe, options_.now_ns());
  return true;
}

void Display::wake_sleepers(News* news) const {
  news->watchers.insert(news->watchers.end(), sleepers_.begin(), sleepers_.end());
}

void Display::frame_shown(int64_t time_ns, News* news) {
  ++frame_;
  frame_ns_ = time_ns;
  news->watchers.insert(news->watchers.end(), frame_watchers_.begin(), frame_watchers_.end());
  wake_sleepers(news);
}

/// Events and sleepers whose sequence has come; all of them when the CRTC goes off (drm_crtc_vblank_off).
void Display::release_waits(uint32_t pipe, const Vblank& now, bool all, News* news) {
  std::erase_if(vblank_waits_, [&](VblankWait& wait) {
    if (wait.pipe != pipe || (!all && wait.sequence > now.sequence)) return false;
    if (wait.is_sequence)
      wait.event.send(drm::SequenceEvent{
          {drm::kEventCrtcSequence, sizeof(drm::SequenceEvent)}, wait.user_data, now.time_ns, now.sequence});
    else
      wait.event.send(make_event(drm::kEventVblank, pipe, wait.user_data, now));
    return true;
  });
  const size_t woken = std::erase_if(sleeping_for_, [&](const Sleep& sleep) {
    return sleep.pipe == pipe && (all || sleep.sequence <= now.sequence);
  });
  if (woken) wake_sleepers(news);
}

Display::Pending* Display::find_pending(uint64_t number) {
  const auto it =
      std::find_if(pending_.begin(), pending_.end(), [&](const auto& p) { return p->number == number; });
  return it == pending_.end() ? nullptr : it->get();
}

bool Display::is_busy(uint32_t pipes) const {
  return std::any_of(pending_.begin(), pending_.end(),
                     [&](const auto& p) { return (p->pipes & pipes) != 0; });
}

/// Shows it, and drops it.
void Display::complete(Pending& pending, int64_t time_ns, News* news) {
  for (uint32_t i = 0; i < kNumObjects; ++i)
    if (pending.objects >> i & 1) shown_.objects[i] = pending.next.objects[i];
  shown_.end_commit();
  for (uint32_t pipe = 0; pipe < kNumPipes; ++pipe) {
    if (!(pending.pipes >> pipe & 1)) continue;
    if (!has_clock(pipe)) ++counts_[pipe];
    const Vblank at = {vblank_at(pipe, time_ns).sequence, time_ns};
    Commit::Outcome& outcome = pending.outcomes[pipe];
    outcome.event.send(make_event(drm::kEventFlipComplete, pipe, pending.user_data, at));
    for (FencePtr* fence : {&outcome.done, &outcome.written})
      if (*fence) news->done.push_back(std::move(*fence));
    release_waits(pipe, at, !shown_.active(pipe), news);
  }
  if (pending.pipes & kMonitorPipes) {
    frame_shown(time_ns, news);
    keep_picture(news);
  } else {
    wake_sleepers(news);
  }
  std::erase_if(pending_, [&](const auto& p) { return p.get() == &pending; });
}

void Display::begin_write(Pending& pending, News* news) {
  Write write = {pending.number, {}};
  for (uint32_t pipe = 0; pipe < kNumPipes; ++pipe) {
    if (!(pending.pipes >> pipe & 1) || !pending.next.is_lit(pipe)) continue;
    const FramebufferPtr& to = pending.next.connector(pipe).fb;
    if (to) write.pictures.push_back({describe_pipe(pending.next, pipe, nullptr), to});
  }
  pending.writing = !write.pictures.empty();
  if (pending.writing) news->writes.push_back(std::move(write));
}

void Display::end_write(uint64_t number) {
  News news;
  {
    const std::lock_guard lock(mutex_);
    if (Pending* pending = find_pending(number)) complete(*pending, options_.now_ns(), &news);
    news.wake = true;
  }
  news.tell(*this);
}

/// When somebody waits for the clock to come; INT64_MAX: nobody.
int64_t Display::next_wait(int64_t now_ns) const {
  if (!options_.vblank_hz) return INT64_MAX;
  uint64_t first = UINT64_MAX;
  for (const VblankWait& wait : vblank_waits_)
    if (has_clock(wait.pipe)) first = std::min(first, wait.sequence);
  for (const Sleep& sleep : sleeping_for_)
    if (has_clock(sleep.pipe)) first = std::min(first, sleep.sequence);
  // One that is further away than the clock reaches never comes.
  const uint64_t now = ticks_at(now_ns, options_.vblank_hz) - first_sequence_;
  return first - now < uint64_t{options_.vblank_hz} << 32 ? time_of(first) : INT64_MAX;
}

/// By somebody who copies what it would take off the screen.
bool Display::is_held_up(Pending& pending, int64_t now_ns) const {
  if (looks_.empty() || !(pending.pipes & kMonitorPipes)) return false;
  if (pending.looked_at_ns == 0) {
    pending.looked_at_ns = now_ns;
    pending.first_later_look = next_look_;
  }
  return *looks_.begin() < pending.first_later_look && now_ns - pending.looked_at_ns < kLongestLook;
}

/// @return when there will be more to do
int64_t Display::advance(int64_t now_ns, News* news) {
  int64_t next = INT64_MAX;
  std::vector<Pending*> all;  // some of which go
  for (const auto& pending : pending_)
    if (!pending->writing) all.push_back(pending.get());
  for (Pending* pending : all) {
    std::erase_if(pending->fences, [](const FencePtr& fence) { return fence->is_signalled(); });
    bool is_quick = true;
    for (uint32_t pipe = 0; pipe < kNumPipes; ++pipe)
      if ((pending->pipes >> pipe & 1) && has_clock(pipe) && shown_.active(pipe) &&
          pending->next.active(pipe))
        is_quick = pending->async;
    if (pending->due_ns == 0 && pending->fences.empty())
      pending->due_ns = is_quick ? now_ns : time_of(vblank_at(0, now_ns).sequence + 1);
    if (pending->due_ns && pending->due_ns <= now_ns && is_held_up(*pending, now_ns)) {
      if (!is_quick) pending->due_ns = time_of(vblank_at(0, now_ns).sequence + 1);
      next = std::min(next, is_quick ? pending->looked_at_ns + kLongestLook : pending->due_ns);
    } else if (pending->due_ns && pending->due_ns <= now_ns) {
      begin_write(*pending, news);
      if (!pending->writing) complete(*pending, is_quick ? now_ns : pending->due_ns, news);
    } else if (pending->due_ns) {
      next = std::min(next, pending->due_ns);
    }
  }
  for (uint32_t pipe = 0; pipe < kNumPipes; ++pipe)
    if (shown_.active(pipe)) release_waits(pipe, vblank_at(pipe, now_ns), false, news);
  return std::min(next, next_wait(now_ns));
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
std::vector<FencePtr> fences_of(const DisplayState& next, ObjectSet changed) {
  std::vector<FencePtr> fences;
  for (const Object& object : objects()) {
    const ObjectState& plane = next.of(object.id);
    if (object.type != drm::kObjectPlane || !(changed & bit_of(object.id)) || !plane.fb) continue;
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

/// drm_crtc.c and drm_writeback.c: of all CRTCs, then of all their writeback connectors.
const char* timeline(uint32_t number) {
  static const auto names = [] {
    std::array<std::string, 2 * kNumPipes> all;
    for (uint32_t pipe = 0, writer = 0; pipe < kNumPipes; ++pipe) {
      const auto id = [](uint32_t of) { return std::to_string(of); };
      all[pipe] = "CRTC:" + id(kPipes[pipe].crtc) + "-crtc-" + id(pipe);
      if (kPipes[pipe].output == Output::kMemory)
        all[kNumPipes + pipe] = "CONNECTOR:" + id(kPipes[pipe].connector) + "-Writeback-" + id(++writer);
    }
    return all;
  }();
  return names[number].c_str();
}

/// What a commit may change: what it names, and CRTCs with their connectors that go on or off by it.
ObjectSet affected(ObjectSet changed, uint32_t pipes) {
  for (uint32_t pipe = 0; pipe < kNumPipes; ++pipe)
    for (const uint32_t id : {kPipes[pipe].crtc, kPipes[pipe].connector})
      if ((pipes >> pipe & 1) && id) changed |= bit_of(id);
  return changed;
}

/// After a mode setting the connectors that take part say whether they are on
/// (drm_atomic_helper_update_legacy_modeset_state).
void set_dpms(const DisplayState& before, DisplayState* next) {
  for (uint32_t pipe = 0; pipe < kNumPipes; ++pipe)
    if (needs_modeset(before, *next, pipe) && (before.is_lit(pipe) || next->is_lit(pipe)))
      next->connector(pipe).set(kDpms, next->is_lit(pipe) && next->active(pipe) ? kDpmsOn : kDpmsOff);
}

/// 0 or EINVAL (vc4_plane_mode_set, vc6_plane_mode_set).
int check_modifiers(const DisplayState& next, ObjectSet changed, const chip::DisplayUnit& unit) {
  for (const Object& object : objects()) {
    const FramebufferPtr& fb = next.of(object.id).fb;
    if (object.type == drm::kObjectPlane && (changed & bit_of(object.id)) && fb &&
        !shows_modifier(unit, fb->modifier))
      return EINVAL;
  }
  return 0;
}

/// What sockets show of modes; a transposer takes any. 0 or EINVAL (vc4_hdmi.c, vc4_hdmi_encoder_mode_valid).
int check_clocks(const DisplayState& next, const chip::DisplayUnit& unit) {
  for (uint32_t pipe = 0; pipe < kNumMonitors; ++pipe)
    if (next.enabled(pipe) && next.mode(pipe).clock > unit.max_clock_khz[pipe]) return EINVAL;
  return 0;
}

}  // namespace

FencePtr Display::make_fence(uint32_t pipe) {
  const std::lock_guard lock(mutex_);
  return std::make_shared<Fence>("vc4", timeline(pipe), fence_contexts_[pipe], ++last_fence_);
}

FencePtr Display::make_write_fence(uint32_t pipe) {
  const std::lock_guard lock(mutex_);
  const uint32_t number = kNumPipes + pipe;
  return std::make_shared<Fence>("vc4", timeline(number), fence_contexts_[number], ++last_fence_);
}

/// @return its number
uint64_t Display::queue(Commit commit, DisplayState next, uint32_t pipes, News* news) {
  auto pending = std::make_unique<Pending>();
  const uint64_t number = pending->number = ++commits_;
  pending->pipes = pipes;
  pending->objects = affected(commit.changed, pipes);
  pending->fences = fences_of(next, commit.changed);
  state_ = next;
  state_.end_commit();
  next.drop_fences();
  pending->next = std::move(next);
  pending->outcomes = std::move(commit.outcomes);
  pending->user_data = commit.user_data;
  pending->async = commit.async;
  pending->watcher = std::make_shared<FenceWatcher>(wake_);
  for (const FencePtr& fence : pending->fences) fence->watch(pending->watcher);
  pending_.push_back(std::move(pending));
  advance(options_.now_ns(), news);
  news->wake = true;
  return number;
}

void Display::show_at_once(const Commit& commit, News* news) {
  std::vector<DisplayState*> states = {&state_, &shown_};
  for (const auto& pending : pending_) states.push_back(&pending->next);
  for (DisplayState* state : states) {
    commit.change(*state);
    state->drop_fences();
  }
  frame_shown(options_.now_ns(), news);
  keep_picture(news);
}

int Display::commit(Commit commit, const std::shared_ptr<Waiter>& waiter) {
  std::unique_lock lock(mutex_);
  uint32_t events = 0;
  for (uint32_t pipe = 0; pipe < kNumPipes; ++pipe)
    events |= uint32_t{bool{commit.outcomes[pipe].event}} << pipe;
  while (true) {
    DisplayState next = state_;
    commit.change(next);
    const uint32_t pipes = pipes_of(state_, next, commit.changed);
    set_dpms(state_, &next);
    if (const int error = check(state_, next, commit.changed, commit.allow_modeset, events)) return error;
    if (const int error = check_clocks(next, unit())) return error;
    if (const int error = check_modifiers(next, commit.changed, unit())) return error;
    if (commit.test_only) return 0;
    News news;
    if (commit.at_once || !pipes) {
      show_at_once(commit, &news);
      lock.unlock();
      news.tell(*this);
      return 0;
    }
    if (is_busy(pipes)) {
      if (commit.nonblock) return EBUSY;
      if (const int error = sleep(lock, waiter, INT64_MAX, [&] { return !is_busy(pipes); })) return error;
      continue;
    }
    const bool blocks = !commit.nonblock;
    const uint64_t number = queue(std::move(commit), std::move(next), pipes, &news);
    lock.unlock();
    news.tell(*this);
    if (!blocks) return 0;
    lock.lock();
    // Whoever is gone does not take back what it has asked for.
    sleep(lock, waiter, INT64_MAX, [&] { return !find_pending(number); });
    return 0;
  }
}

void Display::drop_pending(News* news) {
  for (const auto& pending : pending_) {
    for (const FencePtr& fence : pending->fences) fence->unwatch(pending->watcher.get());
    for (Commit::Outcome& outcome : pending->outcomes)
      for (FencePtr* fence : {&outcome.done, &outcome.written})
        if (*fence) news->done.push_back(std::move(*fence));
  }
  pending_.clear();
}

/// Nobody has the node open: the console is shown again, and nothing is left of what was set.
void Display::come_to_rest(News* news) {
  drop_pending(news);
  state_ = shown_ = at_rest();
  for (uint32_t pipe = 0; pipe < kNumPipes; ++pipe)
    release_waits(pipe, vblank_at(pipe, options_.now_ns()), true, news);
  frame_shown(options_.now_ns(), news);
}

/// Without a clock whatever is waited for comes at once, also what is far away.
void Display::skip_to(uint32_t pipe, uint64_t sequence, int64_t now_ns, News* news) {
  constexpr uint64_t kNear = 1 << 20;
  if (sequence - counts_[pipe] < kNear) counts_[pipe] = sequence;
  release_waits(pipe, {sequence, now_ns}, false, news);
}

void Display::queue_event(uint32_t pipe, uint64_t sequence, EventQueue::Slot slot, uint64_t user_data,
                          bool is_sequence) {
  News news;
  {
    const std::lock_guard lock(mutex_);
    const int64_t now = options_.now_ns();
    vblank_waits_.push_back({pipe, sequence, user_data, std::move(slot), is_sequence});
    if (is_free(pipe)) skip_to(pipe, sequence, now, &news);
    if (!shown_.active(pipe)) release_waits(pipe, vblank_at(pipe, now), true, &news);
    advance(now, &news);
    news.wake = true;
  }
  news.tell(*this);
}

int Display::wait_for_vblank(uint32_t pipe, uint64_t sequence, const std::shared_ptr<Waiter>& waiter) {
  std::unique_lock lock(mutex_);
  if (is_free(pipe)) return 0;
  const auto has_come = [&] {
    return !shown_.active(pipe) || vblank_at(pipe, options_.now_ns()).sequence >= sequence;
  };
  if (has_come()) return 0;
  sleeping_for_.push_back({pipe, sequence});
  lock.unlock();
  wake_();
  lock.lock();
  const int error = sleep(lock, waiter, options_.now_ns() + kPatienceNs, has_come);
  const auto it = std::find(sleeping_for_.begin(), sleeping_for_.end(), Sleep{pipe, sequence});
  if (it != sleeping_for_.end()) sleeping_for_.erase(it);
  return error == ETIME ? EBUSY : error;
}

}  // namespace v3d::ioctl::kms
