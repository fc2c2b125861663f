/// The subcommands of v3demu. Each has a file of its own, which adds it to the parser and sets the callback
/// that runs it; the callback sets *exit_code if it is not 0.
#pragma once

#include <vector>

namespace CLI {
class App;
}

namespace v3d::tools {

void add_run(CLI::App* app, int* exit_code);
void add_serve(CLI::App* app, int* exit_code);
void add_status(CLI::App* app, int* exit_code);
void add_capture(CLI::App* app, int* exit_code);
void add_replay(CLI::App* app, int* exit_code);
void add_decode(CLI::App* app, int* exit_code);
void add_assemble(CLI::App* app, int* exit_code);
void add_disassemble(CLI::App* app, int* exit_code);

/// Makes a command line one that CLI11 understands. Takes the "--" between the options of `run` or `capture`
/// and the program out: CLI11 would look for options behind it. Gives --trace-qpu of `replay` its default
/// value: CLI11 would take the next argument.
void adapt_arguments(std::vector<char*>* arguments);

inline constexpr void (*kCommands[])(CLI::App*, int*) = {
    add_run, add_serve, add_status, add_capture, add_replay, add_decode, add_assemble, add_disassemble};

}  // namespace v3d::tools
