#include "tools/box/supervisor.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <thread>

#include "shim/board/firmware_calls.h"
#include "shim/process/config.h"
#include "tools/box/box.h"
#include "tools/box/calls.h"
#include "tools/box/filter.h"
#include "tools/box/injection.h"

namespace v3d::box {
namespace {

constexpr int kCannotRun = 127;
/// Calls answered at one time; the kernel keeps further ones. One thread each, which is made when needed.
constexpr size_t kMostWorkers = 96;
/// Of these so many may be waits; more end with EINTR, which Linux' programs answer by asking again.
constexpr size_t kMostWaits = 80;
/// So often is looked whether who waits for the GPU has got a signal or is gone.
constexpr int kWatchMs = 50;

/// What a worker is at, for whoever watches it.
struct Worker {
  std::atomic<uint64_t> waits{0};  ///< id of a call that may wait; 0: none
  std::atomic<pid_t> caller{0};
  std::atomic<pthread_t> thread{};
};

/// A signal that the thread would take, if it did not wait for the supervisor.
bool has_signal(pid_t thread) {
  std::ifstream status("/proc/" + std::to_string(thread) + "/status");
  uint64_t pending = 0, blocked = 0;
  for (std::string name; status >> name;) {
    uint64_t set = 0;
    if (name == "SigPnd:" || name == "ShdPnd:") {
      status >> std::hex >> set;
      pending |= set;
    } else if (name == "SigBlk:") {
      status >> std::hex >> blocked;
    }
    status.ignore(1 << 12, '\n');
  }
  return pending & ~blocked;
}

/// Threads that take turns in listening: who hears a call answers it, and another one listens.
class Workers {
 public:
  Workers(int listener, bool mounted) : listener_(listener), mounted_(mounted) {}
  /// Until no process is left that could call.
  void run() {
    add();
    ended_.wait(false);
  }
  bool ended() const { return ended_; }

 private:
  void add() {
    const size_t number = count_.fetch_add(1);
    if (number >= kMostWorkers) {
      --count_;
      return;
    }
    try {
      std::thread([this, number] { work(workers_[number]); }).detach();
    } catch (const std::exception&) {  // no more threads: those there are have to do
      --count_;
    }
  }

  void work(Worker& self) {
    self.thread = pthread_self();
    seccomp_notif call;
    while (hear(&call)) {
      Caller caller(listener_, call);
      if (may_wait(call.data))
        handle_wait(caller, self);
      else
        handle_call(caller, mounted_);
    }
  }

  void handle_wait(Caller& caller, Worker& self) {
    if (waits_.fetch_add(1) < kMostWaits) {
      self.caller = caller.thread();
      self.waits = caller.id();
      handle_call(caller, mounted_);
      self.waits = 0;
    } else {
      caller.answer(-EINTR);
    }
    --waits_;
  }

  /// False: there will be no more.
  bool hear(seccomp_notif* call) {
    ++idle_;
    const std::lock_guard lock(turn_);
    bool heard = false;
    while (!heard && !ended_) heard = listen(call);
    if (--idle_ == 0 && heard) add();
    return heard;
  }

  bool listen(seccomp_notif* call) {
    pollfd ready{listener_, POLLIN, 0};
    const int events = poll(&ready, 1, kWatchMs);
    if (events == 0) watch();
    if (events <= 0) return false;
    if (!(ready.revents & POLLIN)) {
      ended_ = true;
      ended_.notify_all();
      return false;
    }
    memset(call, 0, sizeof *call);
    return ioctl(listener_, SECCOMP_IOCTL_NOTIF_RECV, call) == 0;
  }

  /// Ends the waits of those who have to see to something else.
  void watch() {
    for (Worker& worker : workers_) {
      const uint64_t id = worker.waits;
      if (id == 0) continue;
      uint64_t asked = id;
      if (ioctl(listener_, SECCOMP_IOCTL_NOTIF_ID_VALID, &asked) != 0 || has_signal(worker.caller))
        pthread_kill(worker.thread, SIGUSR1);
    }
  }

  const int listener_;
  const bool mounted_;
  std::mutex turn_;
  std::atomic<size_t> count_{0}, idle_{0}, waits_{0};
  std::atomic<bool> ended_{false};
  std::array<Worker, kMostWorkers> workers_;
};

/// Over a socket between processes that come from each other.
bool send_descriptor(int socket, int fd, int error) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  iovec piece{&error, sizeof error};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    *header = {CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL) == sizeof error;
}

int receive_descriptor(int socket) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  int error = 0, fd = -1;
  iovec piece{&error, sizeof error};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != sizeof error) return -1;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header && header->cmsg_type == SCM_RIGHTS) memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return fd;
}

/// What the process in the foreground is told: who the program is, then how it ended.
struct Report {
  pid_t program;
  int status;
  bool ended;
};

[[noreturn]] void become_program(const std::vector<std::string>& words, int socket, const sigset_t& mask) {
  bool unstoppable = true;
  const int listener = install_filter(shim::has_user_programs() && !shim::config().no_board, &unstoppable);
  if (listener < 0) {
    errno = -listener;
    say(because("system calls cannot be supervised"));
  } else if (!unstoppable) {
    say("before Linux 5.19 a signal may have the program make a call to the GPU twice");
  }
  send_descriptor(socket, listener, 0);
  if (listener >= 0) close(listener);
  close(socket);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execvp(words[0].c_str(), exec_words(words).data());
  say(because(words[0]));
  _exit(kCannotRun);
}

/// Children of this process, also those that others left to it.
class Children {
 public:
  Children(pid_t program, int report) : program_(program), report_(report) {}

  /// Takes note of those that ended. False: there are none.
  bool reap() {
    const std::lock_guard lock(g_tracing);
    int status;
    pid_t child;
    while ((child = waitpid(-1, &status, WNOHANG | __WNOTHREAD)) > 0) {
      if (child != program_ || (!WIFEXITED(status) && !WIFSIGNALED(status))) continue;
      const Report report{program_, status, true};
      if (write(report_, &report, sizeof report) < 0) return false;
    }
    return child == 0;
  }

 private:
  pid_t program_;
  int report_;
};

void raise_limit_of_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void ignore_call(int) {}

/// Signals to the whole foreground group are the program's affair.
void keep_out_of_signals() {
  for (const int number : {SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGPIPE}) signal(number, SIG_IGN);
  struct sigaction interrupt = {};
  interrupt.sa_handler = ignore_call;  // and without SA_RESTART
  sigaction(SIGUSR1, &interrupt, nullptr);
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
}

[[noreturn]] void be_supervisor(const std::vector<std::string>& words, bool mounted, int report,
                                const sigset_t& mask) {
  // Ptrace and process_vm_readv may be for descendants alone (Yama), whose parents have perhaps ended.
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) _exit(kCannotRun);
  const pid_t program = fork();
  if (program == 0) {
    close(sockets[0]);
    close(report);
    become_program(words, sockets[1], mask);
  }
  close(sockets[1]);
  g_program = program;
  keep_out_of_signals();
  raise_limit_of_files();
  const Report started{program, 0, false};
  if (program < 0 || write(report, &started, sizeof started) < 0) _exit(kCannotRun);
  const int listener = receive_descriptor(sockets[0]);
  close(sockets[0]);
  // Whoever reads what the program writes must not wait for this process.
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 2; ++fd) dup2(null, fd);
  auto workers = listener < 0 ? nullptr : std::make_unique<Workers>(listener, mounted);
  if (workers) std::thread([&] { workers->run(); }).detach();
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  const int signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  Children children(program, report);
  for (bool any = true; any || (workers && !workers->ended());) {
    signalfd_siginfo happened;
    pollfd ready{signals, POLLIN, 0};
    poll(&ready, 1, kWatchMs * 4);
    while (read(signals, &happened, sizeof happened) > 0) continue;
    any = children.reap();
  }
  _exit(0);
}

[[noreturn]] void end_as(int status) {
  if (WIFSIGNALED(status)) {
    signal(WTERMSIG(status), SIG_DFL);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, WTERMSIG(status));
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);  // the program has left one
    kill(getpid(), WTERMSIG(status));
    sigprocmask(SIG_UNBLOCK, &one, nullptr);
    _exit(128 + WTERMSIG(status));
  }
  _exit(WEXITSTATUS(status));
}

/// Hands signals on until the program has ended.
[[noreturn]] void stay_in_front(pid_t supervisor, int report, const sigset_t& handed_on) {
  const int signals = signalfd(-1, &handed_on, SFD_CLOEXEC);
  Report said{0, 0, false};
  for (;;) {
    pollfd ready[2] = {{report, POLLIN, 0}, {signals, POLLIN, 0}};
    if (poll(ready, 2, -1) < 0) continue;
    signalfd_siginfo happened;
    if (ready[1].revents && read(signals, &happened, sizeof happened) == sizeof happened && said.program)
      kill(said.program, static_cast<int>(happened.ssi_signo));
    if (!ready[0].revents) continue;
    if (read(report, &said, sizeof said) == sizeof said) {
      if (said.ended) end_as(said.status);
      continue;
    }
    // Without its supervisor the program goes on. It becomes a child of this process while the
    // supervisor ends, after its files were closed.
    say("the supervisor has ended: opening files fails from now on (ENOSYS)");
    waitpid(supervisor, nullptr, __WALL);
    int status = kCannotRun << 8;
    if (said.program) waitpid(said.program, &status, __WALL);
    end_as(status);
  }
}

}  // namespace

int supervise(const std::vector<std::string>& words, bool mounted) {
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return kCannotRun;
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  sigset_t handed_on, mask;
  sigemptyset(&handed_on);
  for (const int number : {SIGHUP, SIGTERM, SIGUSR1, SIGUSR2}) sigaddset(&handed_on, number);
  sigprocmask(SIG_BLOCK, &handed_on, &mask);
  const pid_t supervisor = fork();
  if (supervisor == 0) {
    close(report[0]);
    be_supervisor(words, mounted, report[1], mask);
  }
  close(report[1]);
  if (supervisor < 0) return kCannotRun;
  for (const int number : {SIGINT, SIGQUIT}) signal(number, SIG_IGN);
  stay_in_front(supervisor, report[0], handed_on);
}

}  // namespace v3d::box
