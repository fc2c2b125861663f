/// As much of an X server as a proxy needs: it greets, counts requests, and answers those that the proxy
/// asks.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ioctl/base/unique_fd.h"

namespace v3d::fuzz {

class XServer {
 public:
  /// Listens as a display of this process alone.
  XServer();
  ~XServer();
  XServer(const XServer&) = delete;
  XServer& operator=(const XServer&) = delete;

  /// As $DISPLAY names it.
  const std::string& display() const { return display_; }

 private:
  void accept_all();

  std::string display_;
  ioctl::UniqueFd listener_;
  std::mutex mutex_;       // protects what follows
  std::vector<int> open_;  // each has a thread, which closes it last of all
  std::condition_variable closed_;
  std::thread acceptor_;
};

}  // namespace v3d::fuzz
