/// v3demu run: a program with the emulated GPU and the drivers for it.

#include "tools/run.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/board.h"
#include "daemon/timing_mode.h"
#include "ioctl/link/place.h"
#include "shim/process/place.h"
#include "shim/process/presentation.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/control.h"
#include "tools/drivers.h"
#include "tools/emulator.h"
#include "tools/files.h"
#include "tools/list_path.h"
#include "tools/program.h"
#include "tools/run_report.h"
#include "tools/screen/run_on_screen.h"
#include "tools/x_display.h"

namespace v3d::tools {
namespace {

constexpr int kCannotRun = 127;
/// The positional by which separate_program() knows commands that run a program.
constexpr char kProgram[] = "PROGRAM";

/// What separate_program() found.
std::vector<std::string>& program_words() {
  static std::vector<std::string> words;
  return words;
}

/// What is started, and by what.
struct Start {
  std::string architecture;
  std::string shim;
  std::string emulator, root;  ///< of arm64 programs; else empty
  std::string program;         ///< a path; empty: execvp() says why
};

absl::Status find_arm64(const RunOptions& options, Start* start) {
  start->emulator = find_arm64_emulator();
  if (start->emulator.empty())
    return absl::NotFoundError("qemu-aarch64 not found; it is in Debian's package qemu-user");
  start->root = find_arm64_root(options.root);
  if (start->root.empty())
    return absl::NotFoundError("no root with arm64 libraries; packaging/arm64-root makes one");
  std::string error;
  start->program = find_arm64_program(start->root, options.command[0], &error);
  return start->program.empty() ? absl::NotFoundError(error) : absl::OkStatus();
}

/// Whether the library reaches the program. Prints a warning where it does not, but may reach its children.
absl::Status check_start(const RunOptions& options, const Start& start) {
  if (start.program.empty()) return absl::OkStatus();
  const std::string architecture =
      start.emulator.empty() ? program_architecture("/proc/self/exe") : std::string("arm64");
  const Verdict verdict = check_program(start.program, architecture);
  if (!verdict.warning.empty() && !options.seccomp)
    fprintf(stderr, "v3demu %s: warning: %s\n", options.name.c_str(), verdict.warning.c_str());
  return verdict.error.empty() ? absl::OkStatus() : absl::InvalidArgumentError(verdict.error);
}

absl::StatusOr<Start> make_start(const RunOptions& options) {
  // Whence this program, the library and loaders learn where they are.
  if (!exists("/proc/self/exe")) return absl::FailedPreconditionError("/proc is not mounted");
  Start start;
  const bool arm64 = options.arch == "arm64";
  start.architecture = arm64 ? kArm64Architecture : kHostArchitecture;
  if (!arm64) start.program = find_program(options.command[0]);
  if (arm64) {
    if (absl::Status found = find_arm64(options, &start); !found.ok()) return found;
  }
  if (absl::Status good = check_start(options, start); !good.ok()) return good;
  start.shim = find_shim(start.architecture);
  if (exists(start.shim)) return start;
  if (const std::string named = variable("V3DEMU_SHIM"); !named.empty())
    return absl::NotFoundError(absl::StrCat("no file ", named, ", which V3DEMU_SHIM names"));
  return absl::NotFoundError(absl::StrCat("no libv3demu.so ", arm64 ? "for arm64 programs " : "",
                                          "beside this program; in a clone ", "packaging/setup builds it",
                                          arm64 ? ", by Debian's g++-aarch64-linux-gnu" : "",
                                          "; V3DEMU_SHIM may name one elsewhere"));
}

void choose_presentation() {
  if (variable("V3DEMU_WSI") != "native") {
    // By the server itself: Vulkan's pixels need no detour.
    if (variable("MESA_VK_WSI_DEBUG").empty() && shim::needs_software_presentation(true))
      set_default("MESA_VK_WSI_DEBUG", "sw");
    add_dri3();
  }
  // Vulkan needs nothing without a display (VK_EXT_headless_surface); EGL would look for an X server.
  if (variable("DISPLAY").empty() && variable("WAYLAND_DISPLAY").empty()) {
    set_default("EGL_PLATFORM", "surfaceless");
  }
}

/// GCC's AddressSanitizer ends programs of whose libraries its own is not the first. It works behind this
/// one, and cannot be put before it where a child of the program is the one that needs it.
void allow_sanitizers() {
  constexpr char kVariable[] = "ASAN_OPTIONS", kOption[] = "verify_asan_link_order";
  const std::string options = variable(kVariable);
  if (options.find(kOption) != std::string::npos) return;
  setenv(kVariable, absl::StrCat(options, options.empty() ? "" : ":", kOption, "=0").c_str(), 1);
}

absl::Status preload(const std::string& shim) {
  allow_sanitizers();
  const auto path = list_path(shim);
  if (!path.ok())
    return absl::FailedPreconditionError(absl::StrCat("LD_PRELOAD cannot name ", path.status().message()));
  extend_list("LD_PRELOAD", *path, false);
  return absl::OkStatus();
}

/// Has the program started by v3demu-box, which is not to have the library in it.
absl::Status put_into_box(const RunOptions& options, std::vector<std::string>* command) {
  if (!options.arch.empty())
    return absl::InvalidArgumentError("--sandbox and --seccomp are for programs of this architecture");
  const std::string box = find_box();
  if (!exists(box)) return absl::NotFoundError("v3demu-box not found beside this program");
  std::vector<std::string> words = {box};
  if (options.sandbox) words.push_back("--sandbox");
  if (options.seccomp) words.push_back("--seccomp");
  words.insert(words.end(), {"--preload", variable("LD_PRELOAD"), "--"});
  unsetenv("LD_PRELOAD");
  command->insert(command->begin(), words.begin(), words.end());
  return absl::OkStatus();
}

absl::StatusOr<Start> prepare(const RunOptions& options) {
  auto start = make_start(options);
  if (!start.ok()) return start;
  if (absl::Status board = use_board(options); !board.ok()) return board;
  const std::string usual = start->root.empty() ? find_mesa() : start->root + "/usr";
  if (absl::Status drivers = use_drivers(options.mesa, usual, start->architecture); !drivers.ok())
    return drivers;
  choose_presentation();
  if (absl::Status preloaded = preload(start->shim); !preloaded.ok()) return preloaded;
  return start;
}

int fail(const RunOptions& options, const std::string& what) {
  fprintf(stderr, "v3demu %s: %s\n", options.name.c_str(), what.c_str());
  return kCannotRun;
}

/// "-- PROGRAM [ARGUMENT...]" in the line of usage.
class ProgramFormatter : public WordFormatter {
 public:
  std::string make_option_usage(const CLI::Option* option) const override {
    return option->get_name() == kProgram ? std::string("-- ") + kProgram + " [ARGUMENT...]"
                                          : WordFormatter::make_option_usage(option);
  }
};

/// Whether the daemon that runs at a socket, if one does, has the settings that the environment asks for.
/// What is only told, and what the program finds when it starts one itself, the preload library says.
absl::Status compare_settings(const shim::Place& place) {
  shim::Text<8192> wishes;
  if (!shim::add_wishes(place, &wishes)) return absl::OkStatus();
  const std::string socket = place.socket.c_str();
  const auto answer = ask_daemon_at(socket, wishes.c_str());
  if (!answer.ok() || !answer->starts_with(place::kRefusedAnswer) ||
      variable(place::kOthersVariable) == place::kAcceptOthers)
    return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the daemon that runs at ", socket, answer->substr(sizeof place::kRefusedAnswer - 1), "; ",
                   place::kOthersVariable, "=", place::kAcceptOthers, " makes this a warning"));
}

std::string what_is_wrong(const absl::StatusOr<daemon::Board>& board) {
  return board.ok() ? std::string() : std::string(board.status().message());
}

/// How many words an option takes on the command line; one for those that the command does not have.
size_t words_of_option(const CLI::App& command, const std::string& word) {
  const bool is_long = word.starts_with("--");
  const std::string name = is_long ? word.substr(0, word.find('=')) : word.substr(0, 2);
  const CLI::Option* option = command.get_option_no_throw(name);
  const bool takes_value = option && option->get_items_expected_min() > 0;
  return takes_value && name == word ? 2 : 1;
}

}  // namespace

absl::Status use_board(const RunOptions& options) {
  const std::pair<const char*, const std::string&> choices[] = {{"V3DEMU_DEVICE", options.device},
                                                                {"V3DEMU_KERNEL", options.kernel},
                                                                {"V3DEMU_TIMING", options.timing}};
  for (const auto& [name, value] : choices)
    if (!value.empty()) setenv(name, value.c_str(), 1);
  // Children of the program mean the same files, wherever they stand.
  for (const place::Setting& setting : place::kSettings) {
    const std::string value = variable(setting.variable);
    std::error_code error;
    if (setting.is_path && !value.empty() && value != "-")
      setenv(setting.variable, std::filesystem::absolute(value, error).c_str(), 1);
  }
  // The options have been checked; what the environment says, not.
  const auto board = daemon::find_board(variable("V3DEMU_DEVICE"), variable("V3DEMU_KERNEL"));
  if (!board.ok()) return board.status();
  const std::string timing = variable("V3DEMU_TIMING");
  if (!daemon::find_timing_mode(timing))
    return absl::InvalidArgumentError(absl::StrCat("unknown V3DEMU_TIMING=", timing));
  shim::Place place;
  shim::read_place(&place);
  return compare_settings(place);
}

int run_program(const RunOptions& options) {
  const auto start = prepare(options);
  if (!start.ok()) return fail(options, std::string(start.status().message()));
  if (!start->emulator.empty()) {
    exec_arm64(start->emulator, start->root, start->program, options.command);
    return fail(options, start->emulator + ": " + strerror(errno));
  }
  std::vector<std::string> command = options.command;
  if (options.sandbox || options.seccomp) {
    if (absl::Status boxed = put_into_box(options, &command); !boxed.ok())
      return fail(options, std::string(boxed.message()));
  }
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  return fail(options, command[0] + ": " + strerror(errno));
}

void add_device_option(CLI::App* command, std::string* device) {
  command->add_option("--device", *device, "Board: " + daemon::device_names())
      ->option_text("NAME")
      ->check([](const std::string& name) { return what_is_wrong(daemon::find_board(name, "")); });
}

void add_board_options(CLI::App* command, std::string* device, std::string* kernel) {
  add_device_option(command, device);
  command
      ->add_option("--kernel", *kernel,
                   "Linux whose driver interface is answered with: " + daemon::kernel_names())
      ->option_text("VERSION")
      ->check([](const std::string& name) { return what_is_wrong(daemon::find_board("", name)); });
}

void add_run_options(CLI::App* command, RunOptions* options) {
  add_board_options(command, &options->device, &options->kernel);
  command
      ->add_option(
          "--mesa", options->mesa,
          "Prefix of a Mesa with Broadcom drivers (default: $V3DEMU_MESA, that of the "
          "installation, or the cache's), or \"system\": the distribution's, whatever drivers it has")
      ->option_text("PREFIX");
  command->add_option("--arch", options->arch, "arm64: run an arm64 program, by qemu-aarch64")
      ->option_text("ARCHITECTURE")
      ->check(CLI::IsMember({"arm64"}));
  command
      ->add_option("--root", options->root,
                   "Libraries of arm64 programs: a folder, or a suite of packaging/arm64-root")
      ->option_text("ROOT");
  command->add_flag(
      "--sandbox", options->sandbox,
      "Mount /dev/dri and what belongs to it in /sys, for programs that preloading does not reach");
  command->add_flag("--seccomp", options->seccomp,
                    "Answer the system calls of statically linked programs, and of Go's");
  add_program(command);
}

void add_program(CLI::App* command) {
  static std::string unused;
  command->add_option(kProgram, unused, "The program, and its arguments")->option_text(" ");
  command->formatter(std::make_shared<ProgramFormatter>());
}

std::vector<std::string> required_program() {
  if (program_words().empty()) throw CLI::RequiredError("a program to run");
  return program_words();
}

std::vector<std::string> program_behind_options() { return program_words(); }

namespace {

int run(const RunOptions& options, const ScreenOptions& screen) {
  if (screen.any()) return run_on_screen(options, screen);
  if (options.fail_on_gpu_error) return run_for_status(options);
  sum_up_behind(options);
  return run_program(options);
}

}  // namespace

void add_run(CLI::App* app, int* exit_code) {
  static RunOptions options;
  CLI::App* command = app->add_subcommand("run", "Run a program with the emulated GPU");
  add_run_options(command, &options);
  const auto timing = [](daemon::TimingMode mode) {
    return [mode](int64_t) { options.timing = timing_mode_name(mode); };
  };
  CLI::Option* count =
      command->add_flag_function("--timing", timing(daemon::TimingMode::kCount),
                                 "Predict what jobs take on the board, for its performance counters; slower");
  command
      ->add_flag_function("--pace", timing(daemon::TimingMode::kPace),
                          "The same, and jobs end no earlier than on the board")
      ->excludes(count);
  static ScreenOptions screen;
  command->add_flag("--screen", screen.window, "Show in a window what is on the display meanwhile");
  command->add_option("--screen-png", screen.png, "Save the last picture that the program put on the display")
      ->option_text("FILE");
  command->add_option("--screen-video", screen.video, "Save a video of the display, by ffmpeg")
      ->option_text("FILE");
  command->add_flag("--fail-on-gpu-error", options.fail_on_gpu_error,
                    absl::StrCat("Exit with ", kGpuErrorStatus,
                                 " when the program ends well, but had GPU errors: hangs, MMU faults, "
                                 "refused jobs"));
  command->callback([exit_code] {
    options.command = required_program();
    *exit_code = run(options, screen);
  });
}

void separate_program(const CLI::App& app, std::vector<std::string>* words) {
  if (words->empty()) return;
  const auto commands = app.get_subcommands([&](const CLI::App* one) {
    return one->get_name() == words->front() && one->get_option_no_throw(kProgram) != nullptr;
  });
  if (commands.empty()) return;
  size_t at = 1;
  while (at < words->size() && (*words)[at].starts_with("-") && (*words)[at] != "--")
    at += words_of_option(*commands[0], (*words)[at]);
  // Of a command that takes a file as well the program stands behind "--".
  if (commands[0]->get_option_no_throw("file") != nullptr)
    at = static_cast<size_t>(std::find(words->begin(), words->end(), "--") - words->begin());
  if (at >= words->size()) return;
  const auto options_end = words->begin() + static_cast<ptrdiff_t>(at);
  program_words().assign(options_end + (*options_end == "--" ? 1 : 0), words->end());
  words->erase(options_end, words->end());
}

}  // namespace v3d::tools
