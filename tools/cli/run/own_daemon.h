/// These functions run a program with a daemon that is its own.
#pragma once

#include <functional>
#include <string>

#include "tools/cli/run/run_program.h"

namespace v3d::tools {

/// A socket for a daemon of this process's, in the user's folder. Empty, with a message on stderr as the
/// command `name`, where there is no such folder.
/// @param kind  its name begins with
std::string own_socket(const std::string& name, const std::string& kind);

struct OwnDaemonEnd {
  int program = 1;     ///< for exit()
  bool ended = false;  ///< the daemon has, and all that it writes is written; else a message says so
};

/// Runs options.command, whose first access to the GPU starts the daemon, and ends both. Its settings are
/// what the environment of this process says; which is changed.
/// @param in_program  called in the process that becomes the program
/// @param beside  called in this process while it runs
OwnDaemonEnd run_with_own_daemon(const RunOptions& options, const std::string& socket,
                                 const std::function<void()>& in_program = {},
                                 const std::function<void()>& beside = {});

}  // namespace v3d::tools
