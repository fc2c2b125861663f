/// v3demu serve: the daemon in the foreground.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "tools/cli/commands.h"
#include "tools/cli/files/files.h"
#include "tools/cli/run/run_program.h"
#include "tools/cli/run_options.h"

namespace v3d::tools {
namespace {

int serve(const BoardChoice& board, const std::vector<std::string>& extra) {
  const std::string daemon = find_daemon();
  if (daemon.empty()) {
    fprintf(stderr, "v3demu serve: v3demud not found beside this program; name it in V3DEMU_DAEMON\n");
    return 127;
  }
  set_board(board);
  char foreground[] = "--foreground";
  std::vector<char*> arguments{const_cast<char*>(daemon.c_str()), foreground};
  for (const std::string& argument : extra) {
    if (argument != "--") arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  fprintf(stderr, "v3demu serve: %s: %s\n", daemon.c_str(), strerror(errno));
  return 127;
}

}  // namespace

void add_serve(CLI::App* app, int* exit_code) {
  static BoardChoice board;
  CLI::App* command =
      app->add_subcommand("serve", "Run the daemon in the foreground; further options go to it");
  add_board_options(command, &board);
  command->allow_extras();
  command->callback([command, exit_code] { *exit_code = serve(board, command->remaining()); });
}

}  // namespace v3d::tools
