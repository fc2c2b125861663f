/// @file v3demud: command line, socket, and life as a daemon.
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "daemon/capture.h"
#include "daemon/capture_window.h"
#include "daemon/deadline.h"
#include "daemon/gpus.h"
#include "daemon/host_profile.h"
#include "daemon/limits.h"
#include "daemon/options.h"
#include "daemon/runtime_folder.h"
#include "daemon/server.h"
#include "daemon/surroundings.h"
#include "gpu/base/host_time.h"
#include "gpu/base/left_out.h"
#include "gpu/base/log.h"
#include "gpu/mmu/host_pages.h"

namespace {

using v3d::ioctl::UniqueFd;

using v3d::daemon::Options;

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "v3demud: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

/// Where to listen; the default folder is made. Exits when that cannot be.
std::string socket_path(const Options& options) {
  if (!options.socket.empty()) return std::filesystem::absolute(options.socket);
  const std::string folder = v3d::daemon::default_runtime_folder();
  if (const absl::Status made = v3d::daemon::make_private_folder(folder); !made.ok()) {
    std::fprintf(stderr, "v3demud: %s\n", std::string(made.message()).c_str());
    std::exit(1);
  }
  return std::filesystem::absolute(folder) / v3d::daemon::socket_name(options.settings);
}

sockaddr_un socket_address(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    die(path);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size());
  return address;
}

bool is_answered(const std::string& path) {
  const sockaddr_un address = socket_address(path);
  const UniqueFd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

/// Held as long as the daemon lives. Exits when another daemon serves the socket; waits for one that is
/// leaving.
UniqueFd take_lock(const std::string& socket) {
  const std::string path = socket + ".lock";
  UniqueFd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) die("cannot open " + path);
  // Less than the preload library's patience (shim/link/launch.cc), so that it still sees why.
  constexpr int kMostTries = 800;
  for (int tries = 0; flock(lock.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (errno != EWOULDBLOCK) die("cannot lock " + path);
    if (is_answered(socket)) {
      std::fprintf(stderr, "v3demud: already running: %s\n", socket.c_str());
      std::exit(0);
    }
    if (tries == kMostTries) die("another v3demud holds " + path + " but does not answer");
    usleep(10'000);
  }
  return lock;
}

/// The socket appears under its name when it can be connected to, in place of that of a daemon that crashed
/// (the lock is ours).
UniqueFd make_listener(const std::string& path) {
  const std::string early = path + "~";
  const sockaddr_un address = socket_address(early);
  UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  unlink(early.c_str());
  const mode_t mask = umask(0177);
  const int bound = bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  umask(mask);
  if (bound != 0 || listen(listener.get(), 128) != 0 || rename(early.c_str(), path.c_str()) != 0)
    die("cannot listen on " + path);
  return listener;
}

/// Before anything is opened. Whoever starts a daemon may wait for the end of a pipe that it would inherit.
/// The preload library waits for the end of descriptor 3 to learn that the daemon is gone.
void drop_inherited_descriptors() {
  constexpr unsigned kFirst = 4;
  syscall(SYS_close_range, kFirst, ~0u, 0);
}

/// The log beside the socket. Daemons append to it, so that what one wrote before it aborted is still there
/// when the next has started; one that has grown beyond kMostLogBytes makes room under another name first.
constexpr off_t kMostLogBytes = 4 << 20;

UniqueFd open_log(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) == 0 && info.st_size > kMostLogBytes)
    rename(path.c_str(), (path + ".1").c_str());
  return UniqueFd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
}

/// Returns in the child; the parent's exit says that the socket can be connected to.
void go_to_background(const std::string& log_path, bool keep_stderr) {
  const pid_t child = fork();
  if (child < 0) die("fork");
  if (child > 0) _exit(0);
  setsid();
  if (chdir("/") != 0) die("chdir");
  // Nothing of the terminal stays open: a pipeline that started us must see its end.
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  dup2(null.get(), STDIN_FILENO);
  dup2(null.get(), STDOUT_FILENO);
  if (keep_stderr) return;
  const UniqueFd log(open_log(log_path));
  dup2(log ? log.get() : null.get(), STDERR_FILENO);
}

/// Limits of the table for this host, with those that the options name. Exits on wrong usage.
v3d::ioctl::ResourceLimits make_limits(const std::vector<std::string>& options) {
  v3d::daemon::raise_descriptor_limit();
  v3d::ioctl::ResourceLimits limits(v3d::daemon::read_host_room());
  for (const std::string& option : options) {
    if (const absl::Status status = v3d::daemon::set_limit(option, &limits); !status.ok()) {
      std::fprintf(stderr, "v3demud: %s\n", std::string(status.message()).c_str());
      std::exit(2);
    }
  }
  return limits;
}

/// Opened before anybody is told that there is a daemon. Nothing without a path.
FILE* open_host_profile(const std::string& path) {
  if (path.empty()) return nullptr;
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  FILE* const file = fd < 0 ? nullptr : fdopen(fd, "w");
  if (!file) die("cannot write " + path);
  v3d::host_time::start();
  return file;
}

void write_host_profile(FILE* file, const v3d::ioctl::Gpu& gpu, bool perf_map) {
  if (!file) return;
  const std::string text = v3d::daemon::host_profile_text(v3d::host_time::totals(), gpu.status());
  std::fputs(text.c_str(), file);
  if (perf_map) std::fprintf(file, "perf map: /tmp/perf-%d.map\n", getpid());
  std::fclose(file);
}

std::unique_ptr<v3d::ioctl::Gpu> make_gpu(const Options& options) {
  if (options.no_execute) return v3d::daemon::make_idle_gpu(options.board);
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int workers = (options.threads ? options.threads : cores) - 1;
  return v3d::daemon::make_device_gpu(options.board, workers, options.reset_after, options.watch,
                                      options.engine, options.perf_map, options.timing);
}

v3d::daemon::Server::Options server_options(const Options& options) {
  v3d::daemon::Server::Options server;
  server.limits = make_limits(options.limits);
  server.abi = options.board.abi;
  server.capture = options.capture;
  server.display.vblank_hz = options.vblank_hz;
  server.exit_when_idle = options.exit_when_idle;
  server.timing = options.timing;
  server.settings = options.settings;
  server.run_after_exit *= std::min(options.reset_after, 1.0);
  return server;
}

/// Exits when a category does not exist.
void apply_debug(const std::string& list) {
  const auto request = v3d::parse_debug(list);
  if (!request.ok()) {
    std::fprintf(stderr, "v3demud: %s\n", std::string(request.status().message()).c_str());
    std::exit(2);
  }
  if (request->help) std::fputs(v3d::debug_help().c_str(), stderr);
  v3d::g_debug_mask = request->mask;
}

/// Nothing without a path.
std::unique_ptr<v3d::daemon::CaptureWriter> open_capture(const std::string& path, const char* profile) {
  if (path.empty()) return nullptr;
  auto writer = v3d::daemon::CaptureWriter::create(path, profile);
  if (writer.ok()) return *std::move(writer);
  std::fprintf(stderr, "v3demud: %s\n", std::string(writer.status().message()).c_str());
  std::exit(1);
}

v3d::daemon::Server* g_server = nullptr;
void on_termination(int) {
  const int saved_errno = errno;  // of the code that was interrupted
  g_server->stop();
  errno = saved_errno;
}

/// So long a daemon that is to end waits for what it runs, less than whoever stops it
/// (tools/cli/run/control.cc) waits.
constexpr std::chrono::seconds kLongestEnd{2};

/// Nobody waits for the end of a job that does not look whether it is to end. Nor for the log, in which
/// another thread may be at a standstill.
[[noreturn]] void abandon_jobs(const std::string& path) {
  const std::string line = absl::StrFormat("v3demud: what clients run has not ended within %d s: abandoned\n",
                                           kLongestEnd.count());
  pollfd log = {STDERR_FILENO, POLLOUT, 0};
  if (poll(&log, 1, 0) == 1 && (log.revents & POLLOUT)) {
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  }
  unlink(path.c_str());  // still ours: by the lock
  _exit(0);
}

/// Until it is told to end, or nobody needs it any more.
void serve(const Options& options, v3d::daemon::Server::Options server_options,
           std::unique_ptr<v3d::daemon::CaptureWriter> capture, FILE* host_profile, UniqueFd listener,
           const std::string& path) {
  v3d::daemon::Deadline end(kLongestEnd, [path] { abandon_jobs(path); });
  server_options.stopping = [&end] { end.start(); };
  std::unique_ptr<v3d::ioctl::Gpu> gpu = make_gpu(options);
  if (capture)
    gpu = v3d::daemon::make_capture_gpu(std::move(capture), *server_options.capture_window, std::move(gpu));
  v3d::daemon::Server server(*gpu, server_options);
  g_server = &server;
  std::signal(SIGTERM, on_termination);
  std::signal(SIGINT, on_termination);
  server.run(std::move(listener));
  end.start();
  // Newcomers start another daemon from here on.
  unlink(path.c_str());
  write_host_profile(host_profile, *gpu, options.perf_map);
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGINT, SIG_DFL);
}

/// What malloc keeps of what jobs gave back: enough for the next frames, which would take it page by page
/// from the kernel, and no more in all arenas together. malloc_trim does not reach the upper end of the
/// arenas that threads use, and left alone malloc keeps there twice the largest block that was ever freed, up
/// to 64 MiB in each arena.
void bound_heap() {
  constexpr int kKeptBytes = 64 << 20;
  const int arenas = std::clamp(2 * static_cast<int>(std::thread::hardware_concurrency()), 2, 16);
  mallopt(M_ARENA_MAX, arenas);
  mallopt(M_TRIM_THRESHOLD, kKeptBytes / arenas);
  mallopt(M_MMAP_THRESHOLD, 16 << 20);
}

}  // namespace

int main(int argc, char** argv) {
  Options options = v3d::daemon::parse_options(argc, argv);
  if (!options.foreground) drop_inherited_descriptors();
  if (const absl::Status pages = v3d::mmu::check_host_pages(); !pages.ok()) {
    std::fprintf(stderr, "v3demud: %s\n", std::string(pages.message()).c_str());
    return 1;
  }
  if (options.shed) v3d::daemon::shed_surroundings();
  v3d::daemon::fix_thread_stacks();
  apply_debug(options.debug);
  v3d::g_left_out = options.left_out;
  // Opened after the change of folder.
  if (!options.capture.empty()) options.capture = std::filesystem::absolute(options.capture);
  v3d::daemon::CaptureWindow window(options.capture_frames, !options.capture_trigger);
  v3d::daemon::Server::Options server = server_options(options);
  server.capture_window = &window;

  const std::string path = socket_path(options);
  const char* named_log = std::getenv("V3DEMU_LOG");
  const std::string log = named_log ? named_log : "";
  const bool log_to_stderr = log == "-";
  if (!log.empty() && !log_to_stderr) v3d::log_to(std::filesystem::absolute(log));
  const UniqueFd lock = take_lock(path);
  // Before anybody is told that there is a daemon; after the lock, so that it is nobody else's file.
  std::unique_ptr<v3d::daemon::CaptureWriter> capture =
      open_capture(options.capture, options.board.profile->name);
  FILE* const host_profile = open_host_profile(options.host_profile);
  UniqueFd listener = make_listener(path);
  // In the background the log tells lives apart: one that begins and does not end was cut short.
  const bool tell_life = !options.foreground && !log_to_stderr;
  if (options.foreground) {
    std::fprintf(stderr, "v3demud: serves %s as %s, Linux %s\n", path.c_str(), options.board.profile->name,
                 options.board.abi->name);
  } else {
    go_to_background(std::filesystem::path(path).parent_path() / "v3demud.log", log_to_stderr);
  }
  if (tell_life) v3d::log_line("start", absl::StrFormat("v3demud %s, pid %d", V3DEMU_VERSION, getpid()));

  bound_heap();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // the write's errno says it
  try {
    serve(options, server, std::move(capture), host_profile, std::move(listener), path);
  } catch (const std::exception& error) {  // no threads or no memory to begin with
    v3d::log_error("v3demud cannot go on: %s", error.what());
    unlink(path.c_str());
    return 1;
  }
  if (tell_life) v3d::log_line("end", absl::StrFormat("pid %d", getpid()));
  return 0;
}
