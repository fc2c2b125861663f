/// A Poller waits for descriptors and a moment, by epoll and a timer.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "ioctl/base/unique_fd.h"

namespace v3d::xproxy {

class Poller {
 public:
  Poller();
  /// False: the system has no resources left.
  bool is_usable() const { return epoll_ && timer_; }

  /// What to wait for: EPOLLIN, EPOLLOUT, or nothing, not even the other end's hanging up.
  void watch(int fd, uint32_t events);
  /// Ends one wait when the descriptor gets readable.
  void wake_on(int fd);
  /// Before a descriptor is closed.
  void forget(int fd);

  struct Ready {
    int fd;
    uint32_t events;
  };
  /// @param when_ns  of the monotonic clock; none: as long as it takes
  std::vector<Ready> wait(std::optional<int64_t> when_ns);

 private:
  ioctl::UniqueFd epoll_, timer_;
  std::map<int, uint32_t> watched_;
};

}  // namespace v3d::xproxy
