#include "tools/cli/run/x_display.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "ioctl/base/unique_fd.h"
#include "shim/process/presentation.h"
#include "tools/cli/files/files.h"
#include "tools/cli/files/list_path.h"

namespace v3d::tools {
namespace {

/// Becomes the proxy for a program. Between fork() and here only one thread runs.
[[noreturn]] void become_proxy(const std::string& proxy, const std::string& preload, pid_t program,
                               int output) {
  setsid();                   // what a terminal sends to its programs is not for it
  if (fork() != 0) _exit(0);  // and a program that waits for its children finds none that it does not know
  dup2(output, STDOUT_FILENO);
  close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);  // somebody may wait for their other ends
  setenv("LD_PRELOAD", preload.c_str(), 1);
  const std::string pid = std::to_string(program);
  execl(proxy.c_str(), proxy.c_str(), "--program", pid.c_str(), nullptr);
  _exit(127);
}

/// What the proxy says when it listens: its number. Empty: it does not.
std::string start_proxy(const std::string& proxy, const std::string& preload) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  const ioctl::UniqueFd input(ends[0]);
  ioctl::UniqueFd output(ends[1]);
  const pid_t program = getpid();
  const pid_t child = fork();
  if (child == 0) become_proxy(proxy, preload, program, output.get());
  output.reset();
  std::array<char, 16> text{};
  size_t size = 0;
  while (child > 0 && size < text.size() - 1) {
    const ssize_t got = read(input.get(), text.data() + size, text.size() - 1 - size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  while (child > 0 && waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  const std::string line(text.data(), size);
  return line.ends_with('\n') ? line.substr(0, size - 1) : std::string();
}

/// ".1" of ":0.1"; empty: none is named.
std::string screen_of(const std::string& display) {
  const size_t dot = display.find('.', std::min(display.rfind(':'), display.size()));
  return dot == std::string::npos ? std::string() : display.substr(dot);
}

}  // namespace

void add_dri3() {
  if (!shim::x_display_lacks_dri3()) return;
  const std::string proxy = find_x11_proxy();
  // Of the proxy's own architecture, whatever the program's is.
  const auto preload = list_path(find_shim());
  if (!exists(proxy) || !preload.ok()) {
    fprintf(stderr, "v3demu run: no OpenGL windows: v3demu-x11 or its preload library not found\n");
    return;
  }
  const std::string number = start_proxy(proxy, *preload);
  if (!number.empty()) setenv("DISPLAY", (":" + number + screen_of(variable("DISPLAY"))).c_str(), 1);
}

}  // namespace v3d::tools
