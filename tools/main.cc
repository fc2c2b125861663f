#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "gpu/base/log.h"
#include "tools/commands.h"
#include "tools/files.h"

namespace {

constexpr int kWrongUsage = 2;

int run(int argc, char** argv) {
  CLI::App app("Raspberry Pi graphics drivers without a Raspberry Pi", "v3demu");
  app.require_subcommand(1);
  app.set_version_flag("--version", "v3demu " V3DEMU_VERSION, "Print the version and exit");
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return std::string("v3demu: ") + error.what() +
           "\n(v3demu --help and v3demu COMMAND --help tell the usage)\n";
  });
  int exit_code = 0;
  for (auto* add : v3d::tools::kCommands) add(&app, &exit_code);
  // For what a command starts, and for what it runs of the GPU itself (replay).
  const auto debug = v3d::parse_debug(v3d::tools::variable("V3DEMU_DEBUG"));
  if (!debug.ok()) {
    std::fprintf(stderr, "v3demu: %s\n", std::string(debug.status().message()).c_str());
    return kWrongUsage;
  }
  if (debug->help) {
    std::fputs(v3d::debug_help().c_str(), stdout);
    return 0;
  }
  v3d::g_debug_mask = debug->mask;
  if (const std::string log = v3d::tools::variable("V3DEMU_LOG"); log != "-") v3d::log_to(log);
  std::vector<std::string> words(argv + 1, argv + argc);
  v3d::tools::separate_program(app, &words);
  v3d::tools::complete_trace_option(&words);
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  try {
    app.parse(words);
  } catch (const CLI::ParseError& e) {  // also --help and --version
    return app.exit(e) == 0 ? 0 : kWrongUsage;
  }
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
