/// v3demu stop: ends daemons.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ioctl/link/wire.h"
#include "shim/process/config.h"
#include "tools/cli/commands.h"
#include "tools/cli/files/files.h"
#include "tools/cli/run/control.h"

namespace v3d::tools {
namespace {

/// The socket that --socket or $V3DEMU_SOCKET names, if one does.
std::string named_socket(const std::string& option) {
  if (!option.empty()) return option;
  return variable(wire::kSocketVariable).empty() ? "" : std::string(shim::config().socket.c_str());
}

/// All of this user; but what a capture writes, its end is `capture`'s.
std::vector<std::string> sockets_to_stop() {
  std::vector<std::string> sockets;
  for (const DaemonSocket& socket : daemon_sockets(shim::config().socket.c_str()))
    if (!socket.captures) sockets.push_back(socket.path);
  return sockets;
}

int stop(const std::string& option) {
  const std::string named = named_socket(option);
  int stopped = 0, failed = 0;
  for (const std::string& socket : named.empty() ? sockets_to_stop() : std::vector{named}) {
    const absl::Status end = end_daemon(socket);
    if (end.ok()) {
      printf("the daemon on %s has ended\n", socket.c_str());
      ++stopped;
    } else if (!absl::IsNotFound(end)) {
      fprintf(stderr, "v3demu stop: %s\n", std::string(end.message()).c_str());
      ++failed;
    }
  }
  // Without a name there is no one socket to speak of: daemons of several settings leave their names behind.
  if (stopped + failed == 0)
    fprintf(
        stderr, "v3demu stop: no daemon runs %s\n",
        (named.empty() ? "in " + std::string(shim::config().runtime_dir.c_str()) : "on " + named).c_str());
  return stopped > 0 && failed == 0 ? 0 : 1;
}

}  // namespace

void add_stop(CLI::App* app, int* exit_code) {
  static std::string socket;
  CLI::App* command = app->add_subcommand("stop", "End the daemons of this user; programs lose their GPU");
  command
      ->add_option("--socket", socket,
                   "Only the daemon there (default: that of $V3DEMU_SOCKET, or all but those of captures)")
      ->option_text("PATH");
  command->callback([exit_code] { *exit_code = stop(socket); });
}

}  // namespace v3d::tools
