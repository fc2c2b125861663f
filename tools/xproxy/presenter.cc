#include "tools/xproxy/presenter.h"

#include <poll.h>
#include <xcb/present.h>

#include <algorithm>

#include "tools/xproxy/limits.h"

namespace v3d::xproxy {

/// A fence in shared memory has no descriptor: it is looked at so often.
constexpr int64_t kFenceLook = 1'000'000;

void Presenter::learn(const Listener* client, uint32_t window, const Geometry& geometry) {
  const auto [at, is_new] = windows_.try_emplace(window);
  at->second.depth = geometry.depth;
  if (!is_new) return configured(client, window, geometry.placement);
  at->second.placements.emplace(client, geometry.placement);
  at->second.number = ++last_number_;
  // What happened to it since is told, too.
  server_.watch(window, [this, window, number = last_number_](const Placement& placement) {
    const auto found = windows_.find(window);
    if (found != windows_.end() && found->second.number == number) configured(nullptr, window, placement);
  });
}

std::optional<uint8_t> Presenter::depth_of(uint32_t window) const {
  const auto found = windows_.find(window);
  return found == windows_.end() ? std::nullopt : std::optional(found->second.depth);
}

Presenter::Selected Presenter::select(Listener* client, const EventContext& context, uint32_t events) {
  size_t count = 0;
  for (auto& [id, window] : windows_) {
    for (auto at = window.selections.begin(); at != window.selections.end(); ++at) {
      if (at->client != client) continue;
      ++count;
      if (at->id != context.id) continue;
      if (id != context.window) return Selected::kOtherWindow;
      at->events = events;
      if (events == 0) window.selections.erase(at);
      return Selected::kDone;
    }
  }
  if (events == 0) return Selected::kDone;
  if (count >= kMostSelections) return Selected::kTooMany;
  windows_[context.window].selections.push_back({client, context.id, events});
  return Selected::kDone;
}

bool Presenter::present(Present present) {
  Window& window = windows_[present.window];
  if (window.queue.size() >= kMostPresents) return false;
  const int64_t now = monotonic_ns();
  uint64_t current = clock_.msc(now);
  // A clock that follows the frames has those before it that still wait.
  if (clock_.is_free() && !window.queue.empty()) current = std::max(current, window.queue.back().msc);
  present.msc = Clock::choose(current, present.target.msc, present.target.divisor, present.target.remainder,
                              present.async);
  if (present.buffer) present.writes = present.buffer->writes_end();
  if (present.writes) wake_on_(present.writes.get());
  window.queue.push_back(std::move(present));
  return true;
}

bool Presenter::notify_msc(const Listener* client, uint32_t window, uint32_t serial, const Target& target) {
  std::vector<Waiting>& notifies = windows_[window].notifies;
  if (notifies.size() >= kMostWaitingNotifies) return false;
  // What has come already is told at once (Present 1.2, NotifyMSC).
  const uint64_t msc =
      Clock::choose(clock_.msc(monotonic_ns()), target.msc, target.divisor, target.remainder, true);
  notifies.push_back({client, serial, msc});
  return true;
}

void Presenter::configured(const Listener* client, uint32_t id, const Placement& placement) {
  const auto found = windows_.find(id);
  if (found == windows_.end() || !found->second.placements ||
      !found->second.placements->tell(client, placement))
    return;
  for (const Selection& one : found->second.selections)
    if (one.events & XCB_PRESENT_EVENT_MASK_CONFIGURE_NOTIFY)
      one.client->send_event(make_configure_notify(one.client->order(), {one.id, id}, placement));
}

void Presenter::forget(const Listener* client) {
  const auto is_its = [client](const auto& one) { return one.client == client; };
  for (auto& [id, window] : windows_) {
    std::erase_if(window.selections, is_its);
    std::erase_if(window.queue, is_its);
    std::erase_if(window.notifies, is_its);
    if (window.placements) window.placements->forget(client);
  }
}

bool Presenter::has_ended(const ioctl::UniqueFd& writes) {
  pollfd ready{writes.get(), POLLIN, 0};
  return !writes || poll(&ready, 1, 0) != 0;
}

bool Presenter::is_drawn(const Present& present) {
  return (!present.wait || present.wait->triggered()) && has_ended(present.writes);
}

void Presenter::upload(uint32_t pixmap, std::shared_ptr<Buffer> buffer, std::function<void()> done) {
  const Layout& layout = buffer->layout();
  Upload upload{
      {pixmap, layout.depth, buffer, 0, {{0, 0, layout.width, layout.height}}, 0, 0, std::move(done)},
      buffer->writes_end()};
  if (upload.writes) wake_on_(upload.writes.get());
  uploads_.push_back(std::move(upload));
}

Completion Presenter::completion(uint8_t kind, uint8_t mode, uint32_t serial, uint64_t msc,
                                 int64_t now) const {
  const int64_t when = std::min(clock_.when_ns(msc, now), now);
  return {kind, mode, serial, static_cast<uint64_t>(when) / 1000, msc};
}

void Presenter::complete(uint32_t id, const Completion& completion) {
  const auto found = windows_.find(id);
  if (found == windows_.end()) return;
  for (const Selection& one : found->second.selections)
    if (one.events & XCB_PRESENT_EVENT_MASK_COMPLETE_NOTIFY)
      one.client->send_event(make_complete_notify(one.client->order(), {one.id, id}, completion));
}

/// The client may draw into the picture again.
void Presenter::release(const Present& present) {
  if (present.idle) present.idle->trigger();
  const auto found = windows_.find(present.window);
  if (found == windows_.end()) return;
  for (const Selection& one : found->second.selections)
    if (one.events & XCB_PRESENT_EVENT_MASK_IDLE_NOTIFY)
      one.client->send_event(make_idle_notify(one.client->order(), {one.id, present.window}, present.serial,
                                              present.pixmap, present.idle_id));
}

void Presenter::finish(uint32_t id, uint64_t number, Present present, const Completion& completion) {
  if (const auto found = windows_.find(id); found != windows_.end() && found->second.number == number)
    found->second.copies = false;
  complete(id, completion);
  for (const Present::Notify& other : present.notifies) {
    Completion told = completion;
    told.serial = other.serial;
    complete(other.window, told);
  }
  release(present);
}

/// Of several pictures for one frame the last one is shown.
void Presenter::skip_superseded(uint32_t id, Window& window, int64_t now) {
  for (size_t i = 0; i + 1 < window.queue.size();) {
    const Present& one = window.queue[i];
    const bool superseded =
        std::any_of(window.queue.begin() + static_cast<ptrdiff_t>(i) + 1, window.queue.end(),
                    [&](const Present& later) { return later.msc == one.msc && is_due(later, now); });
    if (!superseded || !is_due(one, now)) {
      ++i;
      continue;
    }
    Present skipped = std::move(window.queue[i]);
    window.queue.erase(window.queue.begin() + static_cast<ptrdiff_t>(i));
    const auto mode = static_cast<uint8_t>(XCB_PRESENT_COMPLETE_MODE_SKIP);
    const Completion told =
        completion(XCB_PRESENT_COMPLETE_KIND_PIXMAP, mode, skipped.serial, skipped.msc, now);
    finish(id, 0, std::move(skipped), told);
  }
}

void Presenter::start(uint32_t id, Window& window, int64_t now) {
  const auto due = std::find_if(window.queue.begin(), window.queue.end(),
                                [&](const Present& one) { return is_due(one, now); });
  if (due == window.queue.end()) return;
  auto present = std::make_shared<Present>(std::move(*due));
  window.queue.erase(due);
  clock_.advance(present->msc);
  const uint64_t msc = std::max(present->msc, clock_.msc(now));
  const Completion told =
      completion(XCB_PRESENT_COMPLETE_KIND_PIXMAP, XCB_PRESENT_COMPLETE_MODE_COPY, present->serial, msc, now);
  window.copies = true;
  Copy copy{id,         window.depth, present->buffer, present->pixmap, present->rectangles,
            present->x, present->y,   nullptr};
  copy.done = [this, id, number = window.number, present, told] {
    finish(id, number, std::move(*present), told);
  };
  server_.copy(std::move(copy));
}

void Presenter::answer_notifies(uint32_t id, Window& window, int64_t now) {
  std::vector<Waiting> due;
  std::erase_if(window.notifies, [&](const Waiting& one) {
    if (!has_come(one.msc, now)) return false;
    due.push_back(one);
    return true;
  });
  for (const Waiting& one : due) {
    clock_.advance(one.msc);
    complete(id, completion(XCB_PRESENT_COMPLETE_KIND_NOTIFY_MSC, XCB_PRESENT_COMPLETE_MODE_COPY, one.serial,
                            std::max(one.msc, clock_.msc(now)), now));
  }
}

void Presenter::step() {
  const int64_t now = monotonic_ns();
  std::erase_if(uploads_, [this](Upload& one) {
    if (!has_ended(one.writes)) return false;
    server_.copy(std::move(one.copy));
    return true;
  });
  for (auto at = windows_.begin(); at != windows_.end();) {
    auto& [id, window] = *at;
    answer_notifies(id, window, now);
    if (!window.copies) {
      skip_superseded(id, window, now);
      start(id, window, now);
    }
    // Those that nobody uses may be used again, and the server tells when they are gone.
    const bool in_use =
        window.copies || !window.queue.empty() || !window.notifies.empty() || !window.selections.empty();
    const bool kept = in_use || windows_.size() <= kMostIdleWindows;
    if (!kept) server_.unwatch(id);
    at = kept ? std::next(at) : windows_.erase(at);
  }
}

std::optional<int64_t> Presenter::next_ns() const {
  const int64_t now = monotonic_ns();
  std::optional<int64_t> next;
  const auto at = [&next](int64_t when) { next = std::min(next.value_or(when), when); };
  for (const auto& [id, window] : windows_) {
    for (const Waiting& one : window.notifies) at(clock_.when_ns(one.msc, now));
    if (window.copies) continue;  // the server's answer comes first
    for (const Present& one : window.queue) {
      if (!has_come(one.msc, now))
        at(clock_.when_ns(one.msc, now));
      else if (one.wait && !one.wait->triggered())
        at(now + kFenceLook);
      else if (is_drawn(one))
        at(now);
    }
  }
  return next;
}

}  // namespace v3d::xproxy
