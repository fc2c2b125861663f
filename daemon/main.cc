/// @file v3demud: command line, socket, and life as a daemon.
#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "daemon/capture.h"
#include "daemon/gpus.h"
#include "daemon/limits.h"
#include "daemon/server.h"
#include "gpu/base/log.h"
#include "ioctl/wire.h"

namespace {

using v3d::ioctl::UniqueFd;

constexpr char kUsage[] =
    R"(usage: v3demud [options]
Emulates the V3D GPU of a Raspberry Pi for programs that run under libv3demu.so.

  --socket PATH           control socket (default: $V3DEMU_SOCKET, else $XDG_RUNTIME_DIR/v3demu/socket,
                          else /tmp/v3demu-UID/socket)
  --device NAME           chip: rpi5 (default), rpi5-16; also $V3DEMU_DEVICE
  --kernel VERSION        Linux whose driver interface is answered with: 7.3 (default), 6.12; also $V3DEMU_KERNEL
  --exit-when-idle SECS   leave that long after the last client (default: never)
  --foreground            stay attached to the terminal, log to stderr
  --threads N             threads that share out tiles and workgroups (default: one per core)
  --memory-limit MIB      buffer memory of one client process (default: 4096)
  --limit NAME=N[:ALL]    what one client process may hold of something, and all together; "v3demu status" shows them
  --reset-after SECS      GPU time without progress after which a job is reset, as the kernel does (default: 1)
  --no-execute            accept jobs but execute none: measures drivers and the daemon alone
  --capture FILE          write every job with the memory that it finds to FILE; also $V3DEMU_CAPTURE
  --debug LIST            categories of messages ("help" lists them); also $V3DEMU_DEBUG
  --help, --version

In the background messages go to v3demud.log beside the socket, or to $V3DEMU_LOG ("-": stderr). Daemons append to
them; beyond 4 MiB the former begins anew and the old one is v3demud.log.1. Of each client 10 errors and warnings of a
kind are written in 5 seconds; the rest is counted.
Exit status: 0 ended or already running, 1 cannot start, 2 wrong usage.
)";

struct Options {
  std::string socket;
  std::string device;
  std::string kernel;
  std::string debug;
  std::string capture;
  std::vector<std::string> limits;  ///< as set_limit() takes them
  std::string trace;                ///< of the category "qpu"
  v3d::daemon::Server::Options server;
  double reset_after = 1;
  int threads = 0;
  bool foreground = false;
  bool no_execute = false;
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// When nobody names another.
std::string default_socket() {
  if (const std::string runtime = variable("XDG_RUNTIME_DIR"); !runtime.empty())
    return runtime + "/v3demu/socket";
  return absl::StrFormat("/tmp/v3demu-%d/socket", geteuid());
}

/// Exits on wrong usage.
Options parse_options(int argc, char** argv) {
  enum {
    kSocket = 256,
    kDevice,
    kKernel,
    kIdle,
    kForeground,
    kThreads,
    kMemory,
    kLimit,
    kResetAfter,
    kNoExecute,
    kCapture,
    kDebug,
    kHelp,
    kVersion
  };
  static constexpr option kLong[] = {{"socket", required_argument, nullptr, kSocket},
                                     {"device", required_argument, nullptr, kDevice},
                                     {"kernel", required_argument, nullptr, kKernel},
                                     {"exit-when-idle", required_argument, nullptr, kIdle},
                                     {"foreground", no_argument, nullptr, kForeground},
                                     {"threads", required_argument, nullptr, kThreads},
                                     {"memory-limit", required_argument, nullptr, kMemory},
                                     {"limit", required_argument, nullptr, kLimit},
                                     {"reset-after", required_argument, nullptr, kResetAfter},
                                     {"no-execute", no_argument, nullptr, kNoExecute},
                                     {"capture", required_argument, nullptr, kCapture},
                                     {"debug", required_argument, nullptr, kDebug},
                                     {"help", no_argument, nullptr, kHelp},
                                     {"version", no_argument, nullptr, kVersion},
                                     {nullptr, 0, nullptr, 0}};
  Options options;
  options.socket = variable(v3d::wire::kSocketVariable);
  options.device = variable("V3DEMU_DEVICE");
  options.kernel = variable("V3DEMU_KERNEL");
  options.debug = variable("V3DEMU_DEBUG");
  options.capture = variable("V3DEMU_CAPTURE");
  options.trace = variable("V3DEMU_TRACE_QPU");
  const auto wrong = [&](const char* what) {
    std::fprintf(stderr, "v3demud: %s: %s\n", what, optarg);
    std::exit(2);
  };
  int which;
  while ((which = getopt_long(argc, argv, "", kLong, nullptr)) != -1) {
    uint64_t mebibytes;
    switch (which) {
      case kSocket:
        options.socket = optarg;
        break;
      case kDevice:
        options.device = optarg;
        break;
      case kKernel:
        options.kernel = optarg;
        break;
      case kIdle:
        if (!absl::SimpleAtod(optarg, &options.server.exit_when_idle) || options.server.exit_when_idle < 0 ||
            options.server.exit_when_idle > 1e6)
          wrong("no number of seconds");
        break;
      case kForeground:
        options.foreground = true;
        break;
      case kThreads:
        if (!absl::SimpleAtoi(optarg, &options.threads) || options.threads < 1 || options.threads > 1024)
          wrong("no number of threads");
        break;
      case kMemory:
        if (!absl::SimpleAtoi(optarg, &mebibytes) || mebibytes < 1 || mebibytes > (1u << 20))
          wrong("no size in MiB");
        options.limits.push_back(absl::StrFormat("bo-bytes=%d", mebibytes << 20));
        break;
      case kLimit:
        options.limits.emplace_back(optarg);
        break;
      case kResetAfter:
        if (!absl::SimpleAtod(optarg, &options.reset_after) || !(options.reset_after > 0) ||
            options.reset_after > 1e6)
          wrong("no number of seconds");
        break;
      case kNoExecute:
        options.no_execute = true;
        break;
      case kCapture:
        options.capture = optarg;
        break;
      case kDebug:
        options.debug = optarg;
        if (options.debug == "help") {
          std::fputs(v3d::debug_help().c_str(), stdout);
          std::exit(0);
        }
        break;
      case kHelp:
        std::fputs(kUsage, stdout);
        std::exit(0);
      case kVersion:
        std::printf("v3demud %s\n", V3DEMU_VERSION);
        std::exit(0);
      default:
        std::fputs(kUsage, stderr);
        std::exit(2);
    }
  }
  if (optind < argc) {
    std::fprintf(stderr, "v3demud: unexpected argument: %s\n%s", argv[optind], kUsage);
    std::exit(2);
  }
  return options;
}

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "v3demud: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

/// The default socket's folder: private to the user, as /tmp is everybody's.
void make_private_folder(const std::string& folder) {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), ignored);
  struct stat info;
  if (mkdir(folder.c_str(), 0700) == 0) return;
  if (errno != EEXIST || lstat(folder.c_str(), &info) != 0) die("cannot make " + folder);
  if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 022)) {
    errno = EPERM;
    die(folder + " belongs to others or is writable by them");
  }
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
  for (int tries = 0; flock(lock.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (errno != EWOULDBLOCK) die("cannot lock " + path);
    if (is_answered(socket)) {
      std::fprintf(stderr, "v3demud: already running: %s\n", socket.c_str());
      std::exit(0);
    }
    if (tries == 1000) die("another v3demud holds " + path + " but does not answer");
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

std::unique_ptr<v3d::ioctl::Gpu> make_gpu(const v3d::device::Profile& profile, int workers,
                                          const Options& options) {
  if (!options.no_execute)
    return v3d::daemon::make_device_gpu(profile, workers, options.reset_after, options.trace);
  return v3d::daemon::make_idle_gpu(profile);
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
void on_termination(int) { g_server->stop(); }

/// Until it is told to end, or nobody needs it any more.
void serve(const v3d::device::Profile& profile, const Options& options,
           std::unique_ptr<v3d::daemon::CaptureWriter> capture, UniqueFd listener, const std::string& path) {
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int workers = (options.threads ? options.threads : cores) - 1;
  std::unique_ptr<v3d::ioctl::Gpu> gpu = make_gpu(profile, workers, options);
  if (capture) gpu = v3d::daemon::make_capture_gpu(std::move(capture), std::move(gpu));
  v3d::daemon::Server server(*gpu, options.server);
  g_server = &server;
  std::signal(SIGTERM, on_termination);
  std::signal(SIGINT, on_termination);
  server.run(std::move(listener));
  // Newcomers start another daemon from here on.
  unlink(path.c_str());
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGINT, SIG_DFL);
}

/// malloc keeps little of what jobs gave back. malloc_trim does not reach the upper end of the arenas that
/// threads use, and left alone malloc keeps there twice the largest block that was ever freed, up to 64 MiB
/// in each arena.
void bound_heap() {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  mallopt(M_ARENA_MAX, std::clamp(2 * cores, 2, 16));
  mallopt(M_TRIM_THRESHOLD, 4 << 20);
  mallopt(M_MMAP_THRESHOLD, 16 << 20);
}

}  // namespace

int main(int argc, char** argv) {
  Options options = parse_options(argc, argv);
  if (!options.foreground) drop_inherited_descriptors();
  apply_debug(options.debug);
  const v3d::device::Profile* profile =
      options.device.empty() ? &v3d::device::default_profile() : v3d::device::find_profile(options.device);
  if (!profile) {
    std::fprintf(stderr, "v3demud: no device \"%s\" (--help lists them)\n", options.device.c_str());
    return 2;
  }
  if (!options.kernel.empty()) options.server.abi = v3d::ioctl::find_abi(options.kernel);
  if (!options.server.abi) {
    std::fprintf(stderr, "v3demud: no kernel \"%s\" (--help lists them)\n", options.kernel.c_str());
    return 2;
  }

  options.server.limits = make_limits(options.limits);

  const std::string path =
      std::filesystem::absolute(options.socket.empty() ? default_socket() : options.socket);
  const std::string log = variable("V3DEMU_LOG");
  const bool log_to_stderr = log == "-";
  // Opened behind the change of folder.
  if (!log.empty() && !log_to_stderr) v3d::log_to(std::filesystem::absolute(log));
  if (!options.capture.empty()) options.capture = std::filesystem::absolute(options.capture);
  const std::string folder = std::filesystem::path(path).parent_path();
  if (options.socket.empty()) make_private_folder(folder);
  const UniqueFd lock = take_lock(path);
  // Before anybody is told that there is a daemon; behind the lock, so that it is nobody else's file.
  std::unique_ptr<v3d::daemon::CaptureWriter> capture = open_capture(options.capture, profile->name);
  UniqueFd listener = make_listener(path);
  // In the background the log tells lives apart: one that begins and does not end was cut short.
  const bool tell_life = !options.foreground && !log_to_stderr;
  if (!options.foreground) go_to_background(folder + "/v3demud.log", log_to_stderr);
  if (tell_life) v3d::log_line("start", absl::StrFormat("v3demud %s, pid %d", V3DEMU_VERSION, getpid()));

  bound_heap();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // the write's errno says it
  options.server.run_after_exit *= std::min(options.reset_after, 1.0);
  try {
    serve(*profile, options, std::move(capture), std::move(listener), path);
  } catch (const std::exception& error) {  // no threads or no memory to begin with
    v3d::log_error("v3demud cannot go on: %s", error.what());
    unlink(path.c_str());
    return 1;
  }
  if (tell_life) v3d::log_line("end", absl::StrFormat("pid %d", getpid()));
  return 0;
}
