#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <vector>

#include "tools/commands.h"

namespace {

int run(int argc, char** argv) {
  CLI::App app("Raspberry Pi graphics drivers without a Raspberry Pi", "v3demu");
  app.require_subcommand(1);
  int exit_code = 0;
  for (auto* add : v3d::tools::kCommands) add(&app, &exit_code);
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
