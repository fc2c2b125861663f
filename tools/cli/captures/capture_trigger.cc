#include "tools/cli/captures/capture_trigger.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "tools/cli/run/control.h"

namespace v3d::tools {

CaptureTrigger::CaptureTrigger(std::string socket)
    : socket_(std::move(socket)), reads_keys_(isatty(STDIN_FILENO) != 0) {
  sigset_t trigger;
  sigemptyset(&trigger);
  sigaddset(&trigger, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &trigger, &mask_);
  signals_.reset(signalfd(-1, &trigger, SFD_CLOEXEC));
  end_.reset(eventfd(0, EFD_CLOEXEC));
}

CaptureTrigger::~CaptureTrigger() {
  const uint64_t one = 1;
  if (thread_.joinable() && write(end_.get(), &one, sizeof one) == sizeof one) thread_.join();
  pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
}

void CaptureTrigger::leave_to_program() const {
  pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  if (!reads_keys_) return;
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  close(nothing);
}

void CaptureTrigger::listen() {
  fprintf(stderr, "v3demu capture: %skill -USR1 %d begins the capture, and ends it\n",
          reads_keys_ ? "Enter, or " : "", getpid());
  thread_ = std::thread([this] { work(); });
}

void CaptureTrigger::work() {
  while (true) {
    pollfd fds[] = {
        {end_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}, {reads_keys_ ? STDIN_FILENO : -1, POLLIN, 0}};
    if (poll(fds, 3, -1) < 0) continue;
    if (fds[0].revents) return;
    signalfd_siginfo signal;
    char line[256];
    if (fds[1].revents && read(signals_.get(), &signal, sizeof signal) > 0) toggle();
    if (fds[2].revents == 0) continue;
    if (read(STDIN_FILENO, line, sizeof line) > 0)
      toggle();
    else
      reads_keys_ = false;  // its end
  }
}

void CaptureTrigger::toggle() {
  const auto answer = ask_daemon_at(socket_, "capture toggle");
  if (answer.ok())
    fprintf(stderr, "v3demu capture: %s\n", *answer == "on" ? "begins" : "ends");
  else
    fprintf(stderr, "v3demu capture: %s%s\n", std::string(answer.status().message()).c_str(),
            absl::IsNotFound(answer.status()) ? " yet: the program has not used the GPU" : "");
}

}  // namespace v3d::tools
