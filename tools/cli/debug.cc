/// v3demu debug: a QPU program under an editor's debugger.

#include <CLI/CLI.hpp>
#include <cstdio>

#include "tools/cli/commands.h"
#include "tools/debugger/adapter.h"

namespace v3d::tools {

void add_debug(CLI::App* app, int* exit_code) {
  CLI::App* command = app->add_subcommand(
      "debug", "Serve an editor that debugs QPU programs (Debug Adapter Protocol, on input and output)");
  command->callback([exit_code] {
    debugger::Messages messages(stdin, stdout);
    if (debugger::serve_editor(messages)) return;
    std::fprintf(stderr,
                 "v3demu debug: what came is no message of the Debug Adapter Protocol: editors start this "
                 "command (docs/qpu.md)\n");
    *exit_code = 1;
  });
}

}  // namespace v3d::tools
