#include "tools/cli/run/run_program.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "daemon/board.h"
#include "daemon/timing_mode.h"
#include "ioctl/link/place.h"
#include "shim/process/place.h"
#include "shim/process/presentation.h"
#include "tools/cli/files/files.h"
#include "tools/cli/files/list_path.h"
#include "tools/cli/run/control.h"
#include "tools/cli/run/drivers.h"
#include "tools/cli/run/emulator.h"
#include "tools/cli/run/program.h"
#include "tools/cli/run/x_display.h"

namespace v3d::tools {
namespace {

constexpr int kCannotRun = 127;

/// What is started, and by what.
struct Start {
  const ForeignArchitecture* foreign = nullptr;  ///< null: it is a program of this one's
  std::string shim;
  std::string emulator, root;  ///< of foreign programs; else empty
  std::string program;         ///< a path; empty: execvp() says why

  std::string libraries() const { return foreign ? foreign->triplet : kHostArchitecture; }
};

absl::Status find_in_root(const RunOptions& options, Start* start) {
  const ForeignArchitecture& foreign = *start->foreign;
  start->emulator = find_emulator(foreign);
  if (start->emulator.empty())
    return absl::NotFoundError(
        absl::StrCat(foreign.emulator, " not found; it is in Debian's package qemu-user"));
  start->root = find_root(foreign, options.root);
  if (start->root.empty())
    return absl::NotFoundError(absl::StrCat(
        "no root with ", foreign.name, " libraries; packaging/debian-root ", foreign.name, " makes one"));
  std::string error;
  start->program = find_foreign_program(foreign, start->root, options.command[0], &error);
  return start->program.empty() ? absl::NotFoundError(error) : absl::OkStatus();
}

/// Whether the library reaches the program. Prints a warning where it does not, but may reach its children.
absl::Status check_start(const RunOptions& options, const Start& start) {
  if (start.program.empty()) return absl::OkStatus();
  const std::string architecture =
      start.foreign ? start.foreign->name : program_architecture("/proc/self/exe");
  const Verdict verdict = check_program(start.program, architecture);
  if (!verdict.warning.empty() && !options.seccomp)
    fprintf(stderr, "v3demu %s: warning: %s\n", options.name.c_str(), verdict.warning.c_str());
  return verdict.error.empty() ? absl::OkStatus() : absl::InvalidArgumentError(verdict.error);
}

absl::StatusOr<Start> make_start(const RunOptions& options) {
  // Whence this program, the library and loaders learn where they are.
  if (!exists("/proc/self/exe")) return absl::FailedPreconditionError("/proc is not mounted");
  Start start;
  start.foreign = find_foreign(options.arch);
  if (start.foreign && start.foreign->triplet == std::string_view(kHostArchitecture)) start.foreign = nullptr;
  if (!start.foreign) {
    start.program = find_program(options.command[0]);
  } else if (absl::Status found = find_in_root(options, &start); !found.ok()) {
    return found;
  }
  if (absl::Status good = check_start(options, start); !good.ok()) return good;
  start.shim = find_shim(start.libraries());
  if (exists(start.shim)) return start;
  if (const std::string named = variable("V3DEMU_SHIM"); !named.empty())
    return absl::NotFoundError(absl::StrCat("no file ", named, ", which V3DEMU_SHIM names"));
  const std::string programs = start.foreign ? absl::StrCat("for ", start.foreign->name, " programs ") : "";
  const std::string compiler =
      start.foreign ? absl::StrCat(", by Debian's g++-", start.foreign->triplet) : "";
  return absl::NotFoundError(absl::StrCat("no libv3demu.so ", programs,
                                          "beside this program; in a clone packaging/setup builds it",
                                          compiler, "; V3DEMU_SHIM may name one elsewhere"));
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

/// GCC's AddressSanitizer ends programs of whose libraries its own is not the first. It works after this
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

/// Who asks for strictness and gets a daemon that does not look would take that for a good program.
absl::Status use_strict_daemon() {
  const std::string debug = variable("V3DEMU_DEBUG");
  setenv("V3DEMU_DEBUG", debug.empty() ? "strict" : absl::StrCat(debug, ",strict").c_str(), 1);
  shim::DaemonPlace place;
  shim::read_place(&place);
  const std::string socket = place.socket.c_str();
  const auto answer = ask_daemon_at(socket, "debug strict");
  if (!answer.ok() || answer->empty()) return absl::OkStatus();  // there is none yet, or it is strict
  return absl::FailedPreconditionError(absl::StrCat("the daemon that runs at ", socket,
                                                    " is not strict: end it, or name another V3DEMU_SOCKET "
                                                    "or none, for a daemon with V3DEMU_DEBUG=strict"));
}

absl::StatusOr<Start> prepare(const RunOptions& options) {
  auto start = make_start(options);
  if (!start.ok()) return start;
  if (absl::Status board = use_board(options); !board.ok()) return board;
  if (options.strict)
    if (absl::Status strict = use_strict_daemon(); !strict.ok()) return strict;
  const std::string usual = start->root.empty() ? find_mesa() : start->root + "/usr";
  if (absl::Status drivers = use_drivers(options.mesa, usual, start->libraries()); !drivers.ok())
    return drivers;
  choose_presentation();
  if (absl::Status preloaded = preload(start->shim); !preloaded.ok()) return preloaded;
  return start;
}

int fail(const RunOptions& options, const std::string& what) {
  fprintf(stderr, "v3demu %s: %s\n", options.name.c_str(), what.c_str());
  return kCannotRun;
}

/// Whether the daemon that runs at a socket, if one does, has the settings that the environment asks for.
/// What is only told, and what the program finds when it starts one itself, the preload library says.
absl::Status compare_settings(const shim::DaemonPlace& place) {
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

}  // namespace

void set_board(const BoardChoice& board) {
  const std::pair<const char*, const std::string&> choices[] = {
      {"V3DEMU_DEVICE", board.device}, {"V3DEMU_KERNEL", board.kernel}, {"V3DEMU_MEMORY", board.memory}};
  for (const auto& [name, value] : choices)
    if (!value.empty()) setenv(name, value.c_str(), 1);
}

absl::Status use_board(const RunOptions& options) {
  set_board(options.board);
  if (!options.timing.empty()) setenv("V3DEMU_TIMING", options.timing.c_str(), 1);
  // Children of the program mean the same files, wherever they stand.
  for (const place::Setting& setting : place::kSettings) {
    const std::string value = variable(setting.variable);
    std::error_code error;
    if (setting.is_path && !value.empty() && value != "-")
      setenv(setting.variable, std::filesystem::absolute(value, error).c_str(), 1);
  }
  // The options have been checked; what the environment says, not.
  const std::string device = variable("V3DEMU_DEVICE"), kernel = variable("V3DEMU_KERNEL"),
                    memory = variable("V3DEMU_MEMORY");
  const auto board = daemon::find_board({device, kernel, memory});
  if (!board.ok()) return board.status();
  // Who asks for what the board has anyway shares the daemon of those who do not ask.
  if (board->buffer_mib == static_cast<uint32_t>(board->profile->buffer_memory_mib))
    unsetenv("V3DEMU_MEMORY");
  const std::string timing = variable("V3DEMU_TIMING");
  if (!daemon::find_timing_mode(timing))
    return absl::InvalidArgumentError(absl::StrCat("unknown V3DEMU_TIMING=", timing));
  shim::DaemonPlace place;
  shim::read_place(&place);
  return compare_settings(place);
}

int run_program(const RunOptions& options) {
  const auto start = prepare(options);
  if (!start.ok()) return fail(options, std::string(start.status().message()));
  if (!start->emulator.empty()) {
    exec_foreign(start->emulator, start->root, start->program, options.command);
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

}  // namespace v3d::tools
