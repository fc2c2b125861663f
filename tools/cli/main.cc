#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "gpu/base/log.h"
#include "tools/cli/command_line.h"
#include "tools/cli/commands.h"
#include "tools/cli/files/files.h"
#include "tools/cli/run_options.h"

namespace {

constexpr int kWrongUsage = 2;

int run(int argc, char** argv) {
  CLI::App app("Raspberry Pi graphics drivers without a Raspberry Pi", "v3demu");
  app.require_subcommand(1);
  app.set_version_flag("--version", "v3demu " V3DEMU_VERSION, "Print the version and exit");
  const auto formatter = std::make_shared<v3d::tools::WordFormatter>();
  formatter->label("SUBCOMMAND", "COMMAND");
  app.formatter(formatter);
  app.footer(
      "v3demu help COMMAND tells the options of a command, and man v3demu all of it;\n"
      "in a clone that is man ./packaging/man/v3demu.1.");
  int exit_code = 0;
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words.front() == v3d::tools::kRun)
    v3d::tools::add_run(&app, &exit_code);  // suites start it thousands of times: without all other options
  else
    for (auto* add : v3d::tools::kCommands) add(&app, &exit_code);
  for (CLI::App* command : app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); }))
    command->group("Commands");
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
  if (words.empty()) {
    std::fputs(app.help().c_str(), stderr);
    return kWrongUsage;
  }
  v3d::tools::translate_help(&words);
  if (const std::string wrong = v3d::tools::unknown_command(app, words); !wrong.empty()) {
    std::fprintf(stderr, "v3demu: %s\n(v3demu help tells what they do)\n", wrong.c_str());
    return kWrongUsage;
  }
  v3d::tools::separate_program(app, &words);
  v3d::tools::complete_trace_option(&words);
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // as CLI11 takes them
  try {
    app.parse(reversed);
  } catch (const CLI::Success& e) {  // --help and --version
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    const std::string command = words.front().starts_with("-") ? "" : " " + words.front();
    std::fprintf(stderr, "v3demu%s: %s\n(v3demu help%s tells the usage)\n", command.c_str(),
                 v3d::tools::explain(app, e, words).c_str(), command.c_str());
    return kWrongUsage;
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
