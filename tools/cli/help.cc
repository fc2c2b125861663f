/// v3demu help: how v3demu, or one of its commands, is used. translate_help() makes --help of it.

#include <CLI/CLI.hpp>
#include <string>

#include "tools/cli/commands.h"

namespace v3d::tools {

void add_help(CLI::App* app, int*) {
  static std::string unused;
  app->add_subcommand("help", "Tell how v3demu, or one of its commands, is used")
      ->add_option("command", unused, "One of the commands");
}

}  // namespace v3d::tools
