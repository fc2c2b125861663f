/// v3demu stop: ends daemons.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "ioctl/link/wire.h"
#include "shim/process/config.h"
#include "tools/cli/commands.h"
#include "tools/cli/files/files.h"
#include "tools/cli/run/control.h"

namespace v3d::tools {
namespace {

/// That of --socket or $V3DEMU_SOCKET, else all of this user; but what a capture writes, its end is
/// `capture`'s.
std::vector<std::string> sockets_to_stop(const std::string& named) {
  if (!named.empty()) return {named};
  const std::string own = shim::config().socket.c_str();
  std::vector<std::string> sockets;
  if (variable(wire::kSocketVariable).empty())
    for (const DaemonSocket& socket : daemon_sockets(own))
      if (!socket.captures) sockets.push_back(socket.path);
  if (sockets.empty()) sockets.push_back(own);
  return sockets;
}

int stop(const std::string& named) {
  int stopped = 0, failed = 0;
  std::string none;
  for (const std::string& socket : sockets_to_stop(named)) {
    const auto answer = ask_daemon_at(socket, "shutdown");
    if (absl::IsNotFound(answer.status())) {
      none = std::string(answer.status().message());
    } else if (!answer.ok()) {
      fprintf(stderr, "v3demu stop: %s\n", std::string(answer.status().message()).c_str());
      ++failed;
    } else if (!wait_for_daemon_end(socket)) {
      fprintf(stderr, "v3demu stop: the daemon on %s does not end\n", socket.c_str());
      ++failed;
    } else {
      printf("the daemon on %s has ended\n", socket.c_str());
      ++stopped;
    }
  }
  if (stopped + failed == 0) fprintf(stderr, "v3demu stop: %s\n", none.c_str());
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
