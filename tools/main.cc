#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "gpu/base/log.h"
#include "tools/commands.h"
#include "tools/files.h"

namespace {

int run(int argc, char** argv) {
  CLI::App app("Raspberry Pi graphics drivers without a Raspberry Pi", "v3demu");
  app.require_subcommand(1);
  int exit_code = 0;
  for (auto* add : v3d::tools::kCommands) add(&app, &exit_code);
  // For what a command starts, and for what it runs of the GPU itself (replay).
  const auto debug = v3d::parse_debug(v3d::tools::variable("V3DEMU_DEBUG"));
  if (!debug.ok()) {
    std::fprintf(stderr, "v3demu: %s\n", std::string(debug.status().message()).c_str());
    return 2;
  }
  if (debug->help) {
    std::fputs(v3d::debug_help().c_str(), stdout);
    return 0;
  }
  v3d::g_debug_mask = debug->mask;
  if (const std::string log = v3d::tools::variable("V3DEMU_LOG"); log != "-") v3d::log_to(log);
  std::vector<char*> arguments(argv, argv + argc);
  v3d::tools::adapt_arguments(&arguments);
  CLI11_PARSE(app, static_cast<int>(arguments.size()), arguments.data());
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {  // of the standard library, or an option declared twice
    std::fprintf(stderr, "v3demu: %s\n", e.what());
    return 1;
  }
}
