/// @file What `desktop` runs with the library in it: weston, then the program in weston.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ioctl/link/wire.h"
#include "shim/process/place.h"
#include "tools/cli/commands.h"
#include "tools/cli/files/files.h"
#include "tools/cli/run/program.h"
#include "tools/cli/run_options.h"
#include "tools/cli/screen/run_on_screen.h"
#include "tools/cli/screen/seat.h"

namespace v3d::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPatience{120};  // slow machines compile shaders first
constexpr size_t kToldOfLog = 2000;

volatile sig_atomic_t g_program = 0, g_ended = 0;

/// weston needs a folder for its socket; where there is none of this user, that of the daemon's socket
/// serves.
void need_runtime_folder() {
  shim::DaemonPlace place;  // as the environment is by now
  shim::read_place(&place);
  if (!variable("XDG_RUNTIME_DIR").empty() && !place.not_in_xdg) return;
  setenv(wire::kSocketVariable, place.socket.c_str(), 1);
  setenv("XDG_RUNTIME_DIR", place.runtime_dir.c_str(), 1);
}

std::string log_of(const TemporaryFolder& folder) { return read_file(folder.path / "log").value_or(""); }

/// The display of Xwayland, as weston's log says it.
std::string x_display(const std::string& log) {
  constexpr std::string_view kLine = "xserver listening on display ";
  const size_t at = log.find(kLine);
  const size_t end = at == std::string::npos ? at : log.find('\n', at);
  if (end == std::string::npos) return {};
  return log.substr(at + kLine.size(), end - at - kLine.size());
}

/// Why weston could not listen for X programs, which ends weston 10, or "".
std::string x_socket_refused(const std::string& log) {
  constexpr std::string_view kLine = "failed to bind to ";  // of its xwayland/launcher.c
  const size_t at = log.find(kLine);
  return at == std::string::npos ? "" : log.substr(at, log.find('\n', at) - at);
}

absl::Status start_weston(const TemporaryFolder& folder, const std::string& mode, const std::string& socket,
                          bool has_x, WestonLauncher* seat) {
  std::string settings = "[core]\nidle-time=0\nrequire-input=false\n[shell]\nlocking=false\n";
  if (!mode.empty()) settings += absl::StrCat("[output]\nname=HDMI-A-1\nmode=", mode, "\n");
  if (absl::Status written = write_file(folder.path / "weston.ini", settings); !written.ok()) return written;
  std::vector<std::string> command = {"weston",
                                      "--backend=drm-backend.so",
                                      "--continue-without-input",
                                      "--idle-time=0",
                                      "--socket=" + socket,
                                      absl::StrCat("--config=", (folder.path / "weston.ini").string()),
                                      absl::StrCat("--log=", (folder.path / "log").string())};
  if (has_x) command.push_back("--xwayland");
  if (absl::Status started = seat->start(command); !started.ok()) return started;
  const fs::path listens = fs::path(variable("XDG_RUNTIME_DIR")) / socket;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!exists(listens) || (has_x && x_display(log_of(folder)).empty())) {
    if (g_ended) return absl::CancelledError("ended");
    if (!seat->is_alive() || std::chrono::steady_clock::now() > deadline) {
      const std::string log = log_of(folder);
      return absl::UnavailableError("weston does not start:\n" +
                                    log.substr(log.size() - std::min(log.size(), kToldOfLog)));
    }
    usleep(20'000);
  }
  return absl::OkStatus();
}

/// The size that the log says weston has chosen ("1280x720@60.0, current, ...") is the one asked for.
absl::Status check_mode(const std::string& log, const std::string& mode) {
  if (mode.empty()) return absl::OkStatus();
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);)
    if (line.find(" " + mode + "@") != std::string::npos && line.find(", current") != std::string::npos)
      return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the display has no mode ", mode));
}

/// The viewer takes its last picture before anything is taken down.
void tell_end(int fd) {
  char byte = 0;
  if (fd < 0) return;
  if (write(fd, &byte, 1) == 1)
    while (read(fd, &byte, 1) < 0 && errno == EINTR) {
    }
}

/// Where that is told: nothing that is started here is to have it. -1: nowhere
int take_end() {
  int fd = -1;
  if (!absl::SimpleAtoi(variable(kEndVariable), &fd) || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return -1;
  unsetenv(kEndVariable);
  return fd;
}

/// @return as a shell's $?
int run_inside(const std::vector<std::string>& command, WestonLauncher* seat) {
  const pid_t program = spawn(command);
  if (program < 0) return 127;
  g_program = program;
  int status = 0;
  bool told = false;
  while (waitpid(program, &status, WNOHANG) == 0) {
    if ((!seat->is_alive() || g_ended) && !told) {
      if (!g_ended) fprintf(stderr, "v3demu desktop: weston has ended\n");
      kill(program, SIGTERM);
      told = true;
    }
    usleep(10'000);
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int fail(const std::string& what) {
  fprintf(stderr, "v3demu desktop: %s\n", what.c_str());
  return 1;
}

int run_session(const std::string& mode, const std::vector<std::string>& command) {
  signal(SIGPIPE, SIG_IGN);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, [](int) { g_ended = 1; });
  const int end = take_end();
  const TemporaryFolder folder("v3demu-desktop");
  need_runtime_folder();
  const std::string socket = absl::StrCat("v3demu-", getpid());
  for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "EGL_PLATFORM"}) unsetenv(name);
  auto seat = std::make_unique<WestonLauncher>();
  const bool has_x = !find_program("Xwayland").empty();
  absl::Status started = start_weston(folder, mode, socket, has_x, seat.get());
  if (const std::string why = x_socket_refused(log_of(folder)); !started.ok() && has_x && !why.empty()) {
    fprintf(
        stderr,
        "v3demu desktop: no X programs: weston %s. A server of another user left that socket, or made the "
        "folder: remove it\n",
        why.c_str());
    seat = std::make_unique<WestonLauncher>();
    started = start_weston(folder, mode, socket, false, seat.get());
  }
  if (!started.ok()) return fail(std::string(started.message()));
  if (absl::Status good = check_mode(log_of(folder), mode); !good.ok())
    return fail(std::string(good.message()));
  setenv("WAYLAND_DISPLAY", socket.c_str(), 1);
  if (const std::string display = x_display(log_of(folder)); !display.empty())
    setenv("DISPLAY", display.c_str(), 1);
  const int status = run_inside(command, seat.get());
  tell_end(end);
  return status;
}

}  // namespace

void add_desktop_session(CLI::App* app, int* exit_code) {
  static std::string mode;
  CLI::App* command = app->add_subcommand("desktop-session", "What desktop runs")->group("");
  command->add_option("--mode", mode);
  add_program(command);
  command->callback([exit_code] { *exit_code = run_session(mode, required_program()); });
}

}  // namespace v3d::tools
