/// v3demu connector: monitors of the emulated board, plugged in and out.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "tools/cli/commands.h"
#include "tools/cli/run/control.h"

namespace v3d::tools {
namespace {

int ask(const std::string& command) {
  const auto answer = ask_daemon_at(used_socket(), command);
  if (answer.ok()) {
    fputs(answer->c_str(), stdout);
    return 0;
  }
  fprintf(stderr, "v3demu connector: %s\n", std::string(answer.status().message()).c_str());
  return 1;
}

}  // namespace

void add_connector(CLI::App* app, int* exit_code) {
  auto* command = app->add_subcommand("connector", "Show the HDMI sockets, or plug a monitor in or out");
  const auto name = std::make_shared<std::string>(), state = std::make_shared<std::string>();
  auto* plug = command->add_option("NAME", *name, "HDMI-A-1 or HDMI-A-2");
  command->add_option("STATE", *state, "on or off")->check(CLI::IsMember({"on", "off"}));
  plug->check(CLI::IsMember({"HDMI-A-1", "HDMI-A-2"}));
  command->callback([=] {
    if (!name->empty() && state->empty()) throw CLI::RequiredError("STATE");
    *exit_code = ask(name->empty() ? "connector" : "connector " + *name + " " + *state);
  });
}

}  // namespace v3d::tools
