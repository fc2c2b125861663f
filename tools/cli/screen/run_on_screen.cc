#include "tools/cli/screen/run_on_screen.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "shim/process/place.h"
#include "tools/cli/files/files.h"
#include "tools/cli/files/new_file.h"
#include "tools/cli/files/png_file.h"
#include "tools/cli/run/passed_signals.h"
#include "tools/cli/run/run_report.h"
#include "tools/cli/screen/snapshots.h"

namespace v3d::tools {
namespace {

/// A process that runs a program with the emulated GPU.
class Program {
 public:
  /// @param tells_end  it gets one end of a pair of sockets
  Program(const RunOptions& options, bool tells_end) {
    int ends[2] = {-1, -1};
    if (tells_end && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      signal(SIGPIPE, SIG_DFL);
      if (tells_end) {
        setenv(kEndVariable, std::to_string(ends[1]).c_str(), 1);
        fcntl(ends[1], F_SETFD, 0);
      }
      const int status = run_program(options);
      fflush(nullptr);
      _exit(status);
    }
    if (ends[1] >= 0) close(ends[1]);
    end_.reset(ends[0]);
    if (pid_ > 0) process_.reset(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  }
  ~Program() {
    if (pid_ > 0) wait();
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  bool started() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  /// Whether it has ended, or tells that it will, by then.
  bool ends_within(int timeout_ms) {
    pollfd fds[] = {{process_.get(), POLLIN, 0}, {end_.get(), POLLIN, 0}};
    poll(fds, 2, timeout_ms);
    return fds[0].revents || fds[1].revents;
  }
  /// Lets it go, and waits for its end. @return as a shell's $?
  int wait() {
    end_.reset();
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  pid_t pid_ = -1;
  ioctl::UniqueFd process_, end_;
};

/// To the daemon that the program will use.
absl::StatusOr<ScreenClient> connect_as_program() {
  shim::DaemonPlace place;  // as the environment is by now
  shim::read_place(&place);
  shim::Text<108> limited;
  shim::limited_socket(place, &limited);
  if (limited.size() != 0) {
    auto client = ScreenClient::connect(limited.c_str());
    if (!absl::IsNotFound(client.status())) return client;
  }
  return ScreenClient::connect(place.socket.c_str());
}

absl::StatusOr<ScreenClient> connect_or_start(const RunOptions& options) {
  auto client = connect_as_program();
  if (!absl::IsNotFound(client.status())) return client;
  // The library starts daemons. It goes by what is to be run, but for the way in which it gets there.
  RunOptions waker;
  waker.name = options.name;
  waker.board = options.board;
  waker.mesa = options.arch.empty() ? options.mesa : "system";
  waker.command = {std::filesystem::read_symlink("/proc/self/exe").string(), "wake-daemon"};
  Program program(waker, false);
  if (!program.started() || program.wait() != 0) return absl::UnavailableError("the daemon does not start");
  return connect_as_program();
}

/// Until the program ends. What cannot be shown is told; the program goes on.
absl::Status show_until_end(Program& program, Watch& watch) {
  absl::Status status;
  bool was_asked = false;
  while (!program.ends_within(watch.has_outputs() && status.ok() ? 0 : 1000)) {
    if (!watch.has_outputs() || !status.ok()) continue;
    status = watch.step();
    if (!status.ok()) fprintf(stderr, "v3demu: %s\n", std::string(status.message()).c_str());
    if (!was_asked && watch.is_closed()) {
      kill(program.pid(), SIGTERM);
      was_asked = true;
    }
  }
  return status;
}

absl::Status save_last(Watch& watch, const Snapshots* snapshots, const std::string& path) {
  ioctl::kms::Image image = snapshots ? snapshots->before_end() : ioctl::kms::Image();
  if (image.empty()) {
    auto frame = watch.client().last();
    if (!frame.ok()) return frame.status();
    if (frame->is_blank()) return absl::NotFoundError("nothing was shown: there is no picture to save");
    image = compose(*frame);
  }
  return save_png(path, image);
}

int fail(const RunOptions& options, const absl::Status& error) {
  fprintf(stderr, "v3demu %s: %s\n", options.name.c_str(), std::string(error.message()).c_str());
  return 1;
}

}  // namespace

int run_on_screen(const RunOptions& options, const ScreenOptions& screen, bool by_time) {
  if (!screen.png.empty()) {  // before the program takes its time
    if (absl::Status can_be = NewFile(screen.png).begin(); !can_be.ok()) return fail(options, can_be);
  }
  auto outputs = make_outputs(screen);
  if (!outputs.ok()) return fail(options, outputs.status());
  const Snapshots* snapshots = nullptr;
  if (by_time && !screen.png.empty()) {
    auto made = std::make_unique<Snapshots>();
    snapshots = made.get();
    outputs->push_back(std::move(made));
  }
  if (absl::Status board = use_board(options); !board.ok()) return fail(options, board);
  auto client = connect_or_start(options);
  if (!client.ok()) return fail(options, client.status());
  // From here on the daemon keeps the last picture.
  if (const auto first = client->now(); !first.ok()) return fail(options, first.status());
  Watch watch(*std::move(client), *std::move(outputs));

  const RunReport report;
  report.set_variable();
  Program program(options, by_time);
  if (!program.started()) return fail(options, absl::UnavailableError(strerror(errno)));
  const PassedSignals passed(program.pid());
  absl::Status status = show_until_end(program, watch);
  if (!screen.png.empty()) {
    const absl::Status saved = save_last(watch, snapshots, screen.png);
    if (!saved.ok()) fail(options, saved);
    status.Update(saved);
  }
  const absl::Status finished = watch.finish();
  if (!finished.ok()) fail(options, finished);
  status.Update(finished);
  const int exit_code = program.wait();
  const bool had_errors = report.tell(options.name);
  if (exit_code) return exit_code;
  if (had_errors && options.fail_on_gpu_error) return kGpuErrorStatus;
  return status.ok() ? 0 : 1;
}

}  // namespace v3d::tools
