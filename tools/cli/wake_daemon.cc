/// v3demu wake-daemon, which other commands run with the library in it.

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "tools/cli/commands.h"

namespace v3d::tools {

void add_wake_daemon(CLI::App* app, int* exit_code) {
  app->add_subcommand("wake-daemon", "Open a node, so that there is a daemon")
      ->group("")
      ->callback([exit_code] {
        const int node = open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
        *exit_code = node < 0 ? 1 : 0;
        if (node >= 0) close(node);
      });
}

}  // namespace v3d::tools
