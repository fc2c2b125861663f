/// v3demu status: what the daemon does.

#include <CLI/CLI.hpp>
#include <cstdio>

#include "tools/commands.h"
#include "tools/control.h"

namespace v3d::tools {

void add_status(CLI::App* app, int* exit_code) {
  app->add_subcommand("status", "Show the running daemon's clients and jobs")->callback([exit_code] {
    if (auto answer = ask_daemon("status")) {
      fputs(answer->c_str(), stdout);
    } else {
      *exit_code = 1;
    }
  });
}

}  // namespace v3d::tools
