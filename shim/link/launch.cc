#include "shim/link/launch.h"

#include <dlfcn.h>
#include <poll.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <cstdlib>

#include "ioctl/link/wire.h"
#include "shim/link/connect.h"
#include "shim/process/config.h"
#include "shim/process/raw.h"

namespace v3d::shim {
namespace {

constexpr uint64_t kPatienceNs = 10'000'000'000u;
constexpr char kIdleSeconds[] = "5";
constexpr int kReportFd = 3;

/// The file from which this library was mapped, absolute even if LD_PRELOAD named it relative to a folder
/// that the program has left since.
bool own_file(Path* out) {
  const auto here = reinterpret_cast<uintptr_t>(&own_file);
  int fd = raw::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  Text<PATH_MAX + 256> line;
  bool found = false;
  char chunk[512];
  for (long got; fd >= 0 && !found && (got = raw::read(fd, chunk, sizeof(chunk))) > 0;) {
    for (long i = 0; i < got && !found; ++i) {
      if (chunk[i] != '\n') {
        line.add(chunk[i]);
        continue;
      }
      // "start-end perms offset dev inode   path"
      char* end;
      uintptr_t first = strtoul(line.c_str(), &end, 16);
      uintptr_t last = *end == '-' ? strtoul(end + 1, &end, 16) : 0;
      const char* path = strchr(end, '/');
      if (here >= first && here < last && path) {
        out->add(path);
        found = true;
      }
      line.clear();
    }
  }
  if (fd >= 0) raw::close(fd);
  Dl_info info;
  if (!found && dladdr(reinterpret_cast<void*>(&own_file), &info) && info.dli_fname) {
    out->add(info.dli_fname);
    found = true;
  }
  return found;
}

/// $V3DEMU_DAEMON, or bin/v3demud beside the lib/ that holds this library, which may be lib/<triplet>/ or
/// lib/<triplet>/v3demu/.
bool find_daemon(Path* out) {
  if (const char* named = environment_variable("V3DEMU_DAEMON"); named && *named) {
    out->add(named);
    return raw::access(named, X_OK) == 0;
  }
  Path folder;
  if (!own_file(&folder)) return false;
  for (int up = 0; up < 4; ++up) {
    const char* slash = strrchr(folder.c_str(), '/');
    if (!slash || slash == folder.c_str()) break;
    folder.truncate(static_cast<size_t>(slash - folder.c_str()));
    out->clear();
    out->add(folder.c_str()).add("/bin/v3demud");
    if (raw::access(out->c_str(), X_OK) == 0) return true;
  }
  out->clear();
  out->add("v3demud (beside libv3demu.so, or $V3DEMU_DAEMON)");
  return false;
}

/// Bytes of the log; 0 if there is none.
off_t size_of(const char* log) {
  struct stat st;
  return *log && raw::fstatat(AT_FDCWD, log, &st, 0) == 0 ? st.st_size : 0;
}

/// The first line that the log has from `start` on.
void read_line(const char* log, off_t start, Text<512>* out) {
  char chunk[512];
  const int fd = *log ? raw::open(log, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
  const long got = fd >= 0 ? raw::pread(fd, chunk, sizeof(chunk) - 1, static_cast<uint64_t>(start)) : 0;
  for (long i = 0; i < got && chunk[i] != '\n'; ++i) out->add(chunk[i]);
  if (fd >= 0) raw::close(fd);
}

/// Of the program's environment the daemon gets what is meant for it; the rest (where libraries lie, how
/// memory is allocated) is the program's own affair.
bool is_for_daemon(const char* entry) {
  for (const char* prefix : {"V3DEMU_", "ASAN_OPTIONS=", "LSAN_OPTIONS=", "TSAN_OPTIONS=", "UBSAN_OPTIONS="})
    if (starts_with(entry, prefix)) return true;
  return false;
}

/// That environment, with the socket on which to listen. nullptr: no memory.
char** daemon_environment(char* socket_entry, size_t* bytes) {
  size_t count = 0;
  while (environ && environ[count]) ++count;
  *bytes = (count + 2) * sizeof(char*);
  auto** copy = static_cast<char**>(raw::map_memory(*bytes));
  if (!copy) return nullptr;
  size_t used = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!is_for_daemon(environ[i])) continue;
    if (starts_with(environ[i], wire::kSocketVariable) &&
        environ[i][sizeof(wire::kSocketVariable) - 1] == '=') {
      continue;
    }
    copy[used++] = environ[i];
  }
  copy[used++] = socket_entry;
  copy[used] = nullptr;
  return copy;
}

struct Image {
  const char* path;
  char* const* arguments;
  char* const* environment;
  const char* log;
  int report;  ///< pipe: an errno if exec fails, end-of-file when the daemon ends
};

/// In the grandchild, a copy of one thread of a foreign process: system calls only.
[[noreturn]] void become_daemon(const Image& image) {
  struct {  // the kernel's sigaction
    void* handler;
    unsigned long flags;
    void* restorer;
    uint64_t mask;
  } by_default{};
  for (int signal = 1; signal <= 64; ++signal) {
    raw::call(SYS_rt_sigaction, signal, raw::word(&by_default), 0, sizeof(uint64_t));
  }
  uint64_t none = 0;
  raw::call(SYS_rt_sigprocmask, SIG_SETMASK, raw::word(&none), 0, sizeof(none));
  raw::call(SYS_personality, 0);  // a debugger, say, has switched off that addresses are random
  // The pipe may have one of the numbers 0 to 3, if the application runs without them.
  int report = raw::fcntl(image.report, F_DUPFD, kReportFd + 1);
  int log = *image.log ? raw::open(image.log, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
  int null = raw::open("/dev/null", O_RDWR);
  raw::call(SYS_dup3, null, 0, 0);
  raw::call(SYS_dup3, null, 1, 0);
  if (log >= 0) raw::call(SYS_dup3, log, 2, 0);
  if (report >= 0) raw::call(SYS_dup3, report, kReportFd, 0);
  if (raw::call(SYS_close_range, kReportFd + 1, ~0u, 0) < 0) {
    for (int fd = kReportFd + 1; fd < 1024; ++fd) raw::close(fd);
  }
  int error = static_cast<int>(-raw::call(SYS_execve, raw::word(image.path), raw::word(image.arguments),
                                          raw::word(image.environment)));
  raw::write(kReportFd, &error, sizeof(error));
  for (;;) raw::call(SYS_exit_group, 127);
}

/// A child without exit signal, which the application's waits and SIGCHLD do not see, and no debugger of it:
/// gdb takes what has no exit signal for a thread, and strace would wait for the daemon. Emulators of another
/// architecture know only the ordinary fork (qemu-user: EINVAL); there the application sees one SIGCHLD.
long fork_quietly() {
  long child = raw::call(SYS_clone, CLONE_UNTRACED, 0, 0, 0, 0);
  return child == -EINVAL ? raw::call(SYS_clone, SIGCHLD, 0, 0, 0, 0) : child;
}

/// Forks twice, so that the daemon is nobody's child. No handlers of the application run.
int spawn(const Image& image) {
  uint64_t all = ~uint64_t{0}, before = 0;
  raw::call(SYS_rt_sigprocmask, SIG_SETMASK, raw::word(&all), raw::word(&before), sizeof(all));
  long child = fork_quietly();
  if (child == 0) {
    raw::call(SYS_setsid);
    long grandchild = fork_quietly();
    if (grandchild == 0) become_daemon(image);
    for (;;) raw::call(SYS_exit_group, grandchild < 0 ? 1 : 0);
  }
  int status = 0;
  if (child > 0) raw::call(SYS_wait4, child, raw::word(&status), __WALL, 0);
  raw::call(SYS_rt_sigprocmask, SIG_SETMASK, raw::word(&before), 0, sizeof(before));
  if (child < 0) return static_cast<int>(-child);
  return status ? EAGAIN : 0;
}

void report_failure(const char* what, const char* detail, const char* more) {
  static std::atomic<bool> told{false};
  if (!told.exchange(true)) complain(what, detail, more);
}

bool somebody_listens() {
  int fd = connect_socket();
  if (fd >= 0) raw::close(fd);
  return fd >= 0;
}

/// Where a daemon listens that this process starts.
void add_own_socket(Path* out) {
  Text<108> limited;
  limited_socket(place(), &limited);
  out->add(limited.size() ? limited.c_str() : place().socket.c_str());
}

/// When the daemon that was just started has inherited a limit that will soon be felt, and could not lift it.
void tell_of_few_descriptors() {
  constexpr rlim_t kFew = 512;
  ucred daemon{};
  socklen_t size = sizeof(daemon);
  rlimit limit{};
  const int fd = connect_socket();
  if (fd < 0) return;
  const bool known = raw::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &daemon, &size) == 0 &&
                     raw::call(SYS_prlimit64, daemon.pid, RLIMIT_NOFILE, 0, raw::word(&limit)) == 0;
  raw::close(fd);
  if (!known || limit.rlim_cur >= kFew) return;
  Text<32> number;
  number.add(uint64_t{limit.rlim_cur});
  complain(
      "the daemon may open no more than ", number.c_str(),
      " files, the hard limit of this program (ulimit -Hn): threads, nodes and large buffers will be few");
}

/// The start lock is ours: runs the daemon until it listens.
int launch(uint64_t deadline) {
  Path daemon, log;
  if (!find_daemon(&daemon)) {
    report_failure("cannot start the daemon: no program ", daemon.c_str(), "");
    return ENOENT;
  }
  tell_of_other_folder();
  log_file(&log);
  Path socket;
  socket.add(wire::kSocketVariable).add('=');
  add_own_socket(&socket);
  size_t environment_bytes;
  char** environment = daemon_environment(socket.data(), &environment_bytes);
  if (!environment) return ENOMEM;
  char name[] = "v3demud", shed[] = "--shed", option[] = "--exit-when-idle", seconds[sizeof(kIdleSeconds)];
  memcpy(seconds, kIdleSeconds, sizeof(seconds));
  char* arguments[] = {name, shed, option, seconds, nullptr};
  const off_t log_size = size_of(log.c_str());
  int pipe[2] = {-1, -1};
  int error = static_cast<int>(-raw::call(SYS_pipe2, raw::word(pipe), O_CLOEXEC));
  if (!error) error = spawn({daemon.c_str(), arguments, environment, log.c_str(), pipe[1]});
  raw::unmap_memory(environment, environment_bytes);
  raw::close(pipe[1]);
  bool ended = false;
  while (!error && !somebody_listens()) {
    pollfd ready{pipe[0], POLLIN, 0};
    timespec pause{0, 2'000'000};
    long events = raw::call(SYS_ppoll, raw::word(&ready), 1, raw::word(&pause), 0, 0);
    if (events > 0) {
      int reported = 0;
      error = raw::read(pipe[0], &reported, sizeof(reported)) == sizeof(reported) ? reported : EIO;
      ended = error == EIO;
    } else if (raw::monotonic_ns() > deadline) {
      error = ETIMEDOUT;
    }
  }
  raw::close(pipe[0]);
  if (!error) {
    tell_of_few_descriptors();
    return 0;
  }
  Path reason;
  reason.add(ended ? " ended at once" : error == ETIMEDOUT ? " does not answer" : " cannot be run");
  if (!ended && error != ETIMEDOUT) reason.add(" (errno ").add(static_cast<uint64_t>(error)).add(')');
  Text<512> said;
  read_line(log.c_str(), log_size, &said);
  if (said.size()) reason.add(": ").add(said.c_str());
  if (log.size()) reason.add("; its messages: ").add(log.c_str());
  report_failure("the daemon ", daemon.c_str(), reason.c_str());
  return error;
}

}  // namespace

void log_file(Path* out) {
  const char* named = environment_variable("V3DEMU_LOG");
  if (named && strcmp(named, "-") == 0) return;
  if (named && *named) {
    out->add(named);
  } else {
    out->add(place().runtime_dir.c_str()).add("/v3demud.log");
  }
}

int start_daemon() {
  int error = make_runtime_dir();
  if (error) {
    report_failure("cannot use the folder of the daemon's socket, ", place().runtime_dir.c_str(),
                   error == EPERM    ? ": it belongs to somebody else or is open to others"
                   : error == ENOENT ? ": the folder above it does not exist"
                                     : "");
    return error;
  }
  Path lock_path;
  add_own_socket(&lock_path);
  lock_path.add(".start");
  int lock = raw::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock < 0) {
    report_failure("cannot lock ", lock_path.c_str(), "");
    return -lock;
  }
  const uint64_t deadline = raw::monotonic_ns() + kPatienceNs;
  error = ETIMEDOUT;
  for (;;) {
    if (somebody_listens()) {
      error = 0;
      break;
    }
    if (raw::call(SYS_flock, lock, LOCK_EX | LOCK_NB) == 0) {
      error = somebody_listens() ? 0 : launch(deadline);
      break;
    }
    if (raw::monotonic_ns() > deadline) {
      report_failure("the daemon does not answer: ", place().socket.c_str(), "");
      break;
    }
    raw::sleep_ms(2);
  }
  raw::call(SYS_flock, lock, LOCK_UN);  // a child forked meanwhile holds the same lock
  raw::close(lock);
  return error;
}

}  // namespace v3d::shim
