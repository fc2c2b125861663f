#include "tools/cli/screen/seat.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace v3d::tools {
namespace {

// weston-launch.h of weston 10: what weston asks for, and what it is told.
constexpr int32_t kOpen = 0, kOpenReply = 3;
struct OpenRequest {
  int32_t opcode, flags;
  char path[4096];
};
struct OpenReply {
  int32_t event, result;
};

/// How long weston may take to end.
constexpr std::chrono::seconds kPatience{10};

void send_reply(int socket, int device) {
  OpenReply reply = {kOpenReply, device < 0 ? -1 : 0};
  iovec part = {&reply, sizeof reply};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (device >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof device);
    std::memcpy(CMSG_DATA(c), &device, sizeof device);
  }
  sendmsg(socket, &message, MSG_NOSIGNAL);
}

}  // namespace

pid_t spawn(const std::vector<std::string>& command, const std::vector<int>& keep) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t pid = fork();
  if (pid != 0) return pid;
  for (const int fd : keep) fcntl(fd, F_SETFD, 0);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) signal(number, SIG_DFL);
  execvp(arguments[0], arguments.data());
  const std::string why = absl::StrCat("v3demu: ", command[0], ": ", strerror(errno), "\n");
  [[maybe_unused]] const ssize_t told = write(STDERR_FILENO, why.data(), why.size());
  _exit(127);
}

absl::Status WestonLauncher::start(const std::vector<std::string>& command) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return absl::UnavailableError(strerror(errno));
  launcher_.reset(ends[0]);
  const ioctl::UniqueFd theirs(ends[1]), terminal(open("/dev/null", O_RDWR | O_CLOEXEC));
  setenv("WESTON_LAUNCHER_SOCK", std::to_string(theirs.get()).c_str(), 1);
  setenv("WESTON_TTY_FD", std::to_string(terminal.get()).c_str(), 1);
  weston_ = spawn(command, {theirs.get(), terminal.get()});
  const int error = errno;
  unsetenv("WESTON_LAUNCHER_SOCK");
  unsetenv("WESTON_TTY_FD");
  if (weston_ < 0) return absl::UnavailableError(strerror(error));
  thread_ = std::thread([this] { serve(); });
  return absl::OkStatus();
}

/// Until weston is gone.
void WestonLauncher::serve() const {
  OpenRequest request;
  while (true) {
    const ssize_t got = recv(launcher_.get(), &request, sizeof request - 1, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    if (request.opcode != kOpen || static_cast<size_t>(got) <= offsetof(OpenRequest, path)) continue;
    reinterpret_cast<char*>(&request)[got] = 0;
    const ioctl::UniqueFd device(open(request.path, request.flags | O_CLOEXEC));
    send_reply(launcher_.get(), device.get());
  }
}

bool WestonLauncher::is_alive() {
  if (weston_ > 0 && waitpid(weston_, nullptr, WNOHANG) == weston_) weston_ = -1;
  return weston_ > 0;
}

WestonLauncher::~WestonLauncher() {
  if (is_alive()) kill(weston_, SIGTERM);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (is_alive()) {
    if (std::chrono::steady_clock::now() > deadline) kill(weston_, SIGKILL);
    usleep(10'000);
  }
  if (thread_.joinable()) {
    shutdown(launcher_.get(), SHUT_RDWR);
    thread_.join();
  }
}

}  // namespace v3d::tools
