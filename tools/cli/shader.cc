/// v3demu shader and shader-db: what shaders become on the board. The tools behind them are tools/shader and
/// tools/shader_db, which compile them with the driver and take their times from v3demu profile.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tools/cli/commands.h"
#include "tools/cli/files/script.h"
#include "tools/cli/run_options.h"

namespace v3d::tools {

void add_shader(CLI::App* app, int* exit_code) {
  static std::string file, other, json, device, mesa;
  CLI::App* command = app->add_subcommand(
      "shader", "Compile a shader with Mesa, and tell its QPU code and what it would take on the board");
  command
      ->add_option("file", file,
                   "GLSL (.vert, .frag, .comp), a SPIR-V module (.spv) or a program (.shader_test)")
      ->required();
  command->add_option("--diff", other, "Tell what changed since this shader, or since its --json")
      ->option_text("OLD");
  command->add_option("--json", json, "All of it as JSON; to the standard output in place of text: -")
      ->option_text("FILE");
  add_device_option(command, &device);
  command->add_option("--mesa", mesa, "The prefix of a Mesa with Broadcom drivers, as for run")
      ->option_text("PREFIX");
  command->callback([exit_code] {
    std::vector<std::string> words;
    const auto add = [&](const char* name, const std::string& value) {
      if (!value.empty()) words.insert(words.end(), {name, value});
    };
    add("--diff", other);
    add("--json", json);
    add("--device", device);
    add("--mesa", mesa);
    words.insert(words.end(), {"--", file});
    *exit_code = run_script("shader", "shader", words);
  });
}

void add_shader_db(CLI::App* app, int* exit_code) {
  static std::vector<std::string> runs;
  static std::string against, json, jobs, device, mesa;
  static bool code = false, progress = false;
  CLI::App* command = app->add_subcommand(
      "shader-db", "Compile many shaders with Mesa, and tell of each what it would take on the board");
  command->add_option("run", runs, "Folders or files: .shader_test, .vert, .frag, .comp and .spv")
      ->required();
  command
      ->add_option("--against", against,
                   "Set the prefix of another Mesa, or the --json of a former run, beside it")
      ->option_text("PREFIX|FILE.json");
  command->add_option("--json", json, "All of it as JSON")->option_text("FILE");
  command->add_flag("--code", code, "With the QPU code in the JSON");
  command->add_option("--jobs", jobs, "Processes at a time (default: one for each processor)")
      ->option_text("N");
  command->add_flag("--progress", progress, "Report progress though standard error is no terminal");
  add_device_option(command, &device);
  command->add_option("--mesa", mesa, "The prefix of a Mesa with Broadcom drivers, as for run")
      ->option_text("PREFIX");
  command->callback([exit_code] {
    std::vector<std::string> words;
    const auto add = [&](const char* name, const std::string& value) {
      if (!value.empty()) words.insert(words.end(), {name, value});
    };
    add("--against", against);
    add("--json", json);
    add("--jobs", jobs);
    add("--device", device);
    add("--mesa", mesa);
    if (code) words.emplace_back("--code");
    if (progress) words.emplace_back("--progress");
    words.emplace_back("--");
    words.insert(words.end(), runs.begin(), runs.end());
    *exit_code = run_script("shader-db", "shader_db", words);
  });
}

}  // namespace v3d::tools
