/// This gives weston a seat where there is none: neither logind nor a virtual terminal.
#pragma once

#include <sys/types.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "ioctl/base/unique_fd.h"

namespace v3d::tools {

/// weston, and what plays the part of weston-launch: it opens devices for weston, which always has the seat.
class WestonLauncher {
 public:
  WestonLauncher() = default;
  /// Ends weston and waits for that.
  ~WestonLauncher();
  WestonLauncher(const WestonLauncher&) = delete;
  WestonLauncher& operator=(const WestonLauncher&) = delete;

  /// @param command  weston with its arguments
  absl::Status start(const std::vector<std::string>& command);
  /// Whether weston runs.
  bool is_alive();

 private:
  void serve() const;

  pid_t weston_ = -1;
  ioctl::UniqueFd launcher_;
  std::thread thread_;
};

/// Starts a program in a process of its own. @return its number, or -1 with the reason in errno
/// @param keep  descriptors that it gets
pid_t spawn(const std::vector<std::string>& command, const std::vector<int>& keep = {});

}  // namespace v3d::tools
