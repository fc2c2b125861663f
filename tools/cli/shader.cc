/// v3demu shader: what a shader becomes on the board. The tool behind it is tools/shader, which compiles it
/// with the driver and takes its times from v3demu profile.

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
  command->add_option("file", file, "GLSL of OpenGL ES (.vert, .frag, .comp) or a SPIR-V module (.spv)")
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

}  // namespace v3d::tools
