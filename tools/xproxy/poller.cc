#include "tools/xproxy/poller.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace v3d::xproxy {

constexpr int64_t kSecond = 1'000'000'000;

Poller::Poller()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)), timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)) {
  watch(timer_.get(), EPOLLIN);
}

void Poller::watch(int fd, uint32_t events) {
  uint32_t& now = watched_[fd];
  if (events == now) return;
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  const int what = events == 0 ? EPOLL_CTL_DEL : now == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  epoll_ctl(epoll_.get(), what, fd, &event);
  now = events;
}

void Poller::wake_on(int fd) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLONESHOT;
  event.data.fd = -1;
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

void Poller::forget(int fd) {
  watch(fd, 0);
  watched_.erase(fd);
}

std::vector<Poller::Ready> Poller::wait(std::optional<int64_t> when_ns) {
  itimerspec time{};  // all zero: none
  if (when_ns) {
    // A moment that has been makes the timer fire at once; zero would stop it.
    const int64_t when = std::max<int64_t>(*when_ns, 1);
    time.it_value = {when / kSecond, when % kSecond};
  }
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &time, nullptr);
  std::array<epoll_event, 64> events{};
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
  std::vector<Ready> ready;
  for (int i = 0; i < count; ++i) {
    const epoll_event& one = events[static_cast<size_t>(i)];
    if (one.data.fd != timer_.get()) ready.push_back({one.data.fd, one.events});
  }
  return ready;
}

}  // namespace v3d::xproxy
