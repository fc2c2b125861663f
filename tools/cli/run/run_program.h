/// These functions run a program with the emulated GPU: its daemon, its drivers, the library in it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace v3d::tools {

/// As daemon::BoardNames; empty: what the environment says.
struct BoardChoice {
  std::string device, kernel, memory;
};
/// The environment says it from now on.
void set_board(const BoardChoice& board);

struct RunOptions {
  std::string name = "run";  ///< of the command that says what fails
  BoardChoice board;
  std::string arch;      ///< a ForeignArchitecture; empty: that of the host
  std::string root;      ///< find_root()
  std::string timing;    ///< a daemon::TimingMode; empty: as the daemon is started
  std::string mesa;      ///< prefix; "system": what the loaders find; empty: find_mesa(), or that of the root
  bool sandbox = false;  ///< the device tree is mounted, not shown by interposed paths
  bool seccomp = false;  ///< a supervisor answers system calls of what nothing can be preloaded into
  bool fail_on_gpu_error = false;  ///< the exit status tells of GPU errors
  bool strict = false;  ///< the same, also of rules that QPU programs break: the daemon's category "strict"
  std::vector<std::string> command;
};

/// Has what is started from now on use a daemon of that board and timing. An error naming
/// what is wrong, or what a daemon has that runs where $V3DEMU_SOCKET says and is of other settings.
absl::Status use_board(const RunOptions& options);

/// Replaces this process by options.command. Returns only on failure, with an exit status.
int run_program(const RunOptions& options);

}  // namespace v3d::tools
