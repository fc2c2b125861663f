/// These are the subcommands of v3demu. Each has a file of its own, which adds it to the parser and sets the
/// callback that runs it; the callback sets *exit_code if it is not 0.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace v3d::tools {

/// What add_run() adds.
inline constexpr const char* kRun = "run";

void add_run(CLI::App* app, int* exit_code);
void add_devices(CLI::App* app, int* exit_code);
void add_counters(CLI::App* app, int* exit_code);
void add_timing(CLI::App* app, int* exit_code);
void add_serve(CLI::App* app, int* exit_code);
void add_status(CLI::App* app, int* exit_code);
void add_stop(CLI::App* app, int* exit_code);
void add_help(CLI::App* app, int* exit_code);
void add_screen(CLI::App* app, int* exit_code);
void add_connector(CLI::App* app, int* exit_code);
void add_wake_daemon(CLI::App* app, int* exit_code);
void add_desktop(CLI::App* app, int* exit_code);
void add_desktop_session(CLI::App* app, int* exit_code);
void add_capture(CLI::App* app, int* exit_code);
void add_profile(CLI::App* app, int* exit_code);
void add_replay(CLI::App* app, int* exit_code);
void add_decode(CLI::App* app, int* exit_code);
void add_inspect(CLI::App* app, int* exit_code);
void add_ci(CLI::App* app, int* exit_code);
void add_shader(CLI::App* app, int* exit_code);
void add_shader_db(CLI::App* app, int* exit_code);
void add_assemble(CLI::App* app, int* exit_code);
void add_disassemble(CLI::App* app, int* exit_code);
void add_exec(CLI::App* app, int* exit_code);
void add_debug(CLI::App* app, int* exit_code);

/// Gives --trace-qpu of `replay` and `exec` its default value: CLI11 would take the next word.
void complete_trace_option(std::vector<std::string>* words);

inline constexpr void (*kCommands[])(CLI::App*, int*) = {
    add_run,       add_devices, add_counters, add_timing,      add_serve,           add_status,
    add_stop,      add_screen,  add_desktop,  add_wake_daemon, add_desktop_session, add_capture,
    add_replay,    add_profile, add_decode,   add_assemble,    add_disassemble,     add_help,
    add_connector, add_ci,      add_shader,   add_shader_db,   add_inspect,         add_exec,
    add_debug};

}  // namespace v3d::tools
