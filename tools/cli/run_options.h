/// These are the options of commands that run a program, or that ask for a board.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/run/run_program.h"

namespace CLI {
class App;
}

namespace v3d::tools {

/// --device, --kernel, --memory, --mesa, --arch and --root, and the program after them.
void add_run_options(CLI::App* command, RunOptions* options);
/// The program that separate_program() took out of the command line. CLI::RequiredError if there is none.
std::vector<std::string> required_program();

/// The same, or nothing.
std::vector<std::string> program_behind_options();

/// --device, which must exist.
void add_device_option(CLI::App* command, std::string* device);
/// --device and --kernel, which must exist, and --memory.
void add_board_options(CLI::App* command, BoardChoice* board);

/// The program after the options of a command, for separate_program().
void add_program(CLI::App* command);

/// Takes the program and its arguments, after the options of `run` or `capture` and perhaps "--", out of a
/// command line: their words are nothing that CLI11 should look at.
/// @param words  without the name of v3demu
void separate_program(const CLI::App& app, std::vector<std::string>* words);

}  // namespace v3d::tools
