/// v3demu-x11 --program PID: a display with DRI3 and Present in front of $DISPLAY, for as long as that
/// process runs, and whoever has connected. Prints the number of the display, then closes its standard
/// output.
///
/// Not for users: `v3demu run` starts it, with the preload library, through which it has the GPU's node.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "tools/xproxy/proxy.h"

namespace v3d::xproxy {
namespace {

constexpr double kUsualHz = 60, kMostHz = 1000;

std::string variable(const char* name) {
  const char* value = getenv(name);
  return value ? value : "";
}

/// As of the display that the daemon models.
double vblank_hz() {
  const std::string text = variable("V3DEMU_VBLANK_HZ");
  char* end = nullptr;
  const double hz = strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' && hz >= 0 && hz <= kMostHz ? hz : kUsualHz;
}

/// Readable when the process is told to end; one that a terminal sends is the program's affair.
ioctl::UniqueFd make_stop() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, number);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  return ioctl::UniqueFd(signalfd(-1, &set, SFD_CLOEXEC));
}

/// Each buffer takes a descriptor, each client two.
void raise_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int fail(const std::string& what) {
  fprintf(stderr, "v3demu run: no OpenGL windows: %s\n", what.c_str());
  return 1;
}

/// Nobody is to wait for the proxy's output, or be kept from unmounting its folder. Messages go where the
/// program's go.
void detach() {
  const ioctl::UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  fflush(stdout);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO}) dup2(null.get(), fd);
  if (chdir("/") != 0) perror("v3demu-x11: /");
}

int run(int argc, char** argv) {
  if (argc != 3 || strcmp(argv[1], "--program") != 0) {
    fputs("v3demu-x11 is a part of v3demu run; see v3demu run --help\n", stderr);
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  raise_limit();
  const auto program = static_cast<pid_t>(strtol(argv[2], nullptr, 10));
  ioctl::UniqueFd end(static_cast<int>(syscall(SYS_pidfd_open, program, 0)));
  if (!end) return fail(std::string("the program cannot be watched: ") + strerror(errno));
  Proxy proxy(std::move(end), make_stop(), vblank_hz());
  if (const std::string error = proxy.open(variable("DISPLAY")); !error.empty()) return fail(error);
  printf("%d\n", proxy.number());
  detach();
  proxy.run();
  return 0;
}

}  // namespace
}  // namespace v3d::xproxy

int main(int argc, char** argv) {
  try {
    return v3d::xproxy::run(argc, argv);
  } catch (const std::exception& e) {
    return v3d::xproxy::fail(e.what());
  }
}
