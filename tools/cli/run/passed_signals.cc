#include "tools/cli/run/passed_signals.h"

#include <cerrno>

namespace v3d::tools {
namespace {

volatile sig_atomic_t g_program = 0;

void pass_on(int number, siginfo_t* info, void*) {
  const int saved_errno = errno;  // of the code that was interrupted
  if (info->si_code != SI_KERNEL && g_program > 0) kill(g_program, number);
  errno = saved_errno;
}

}  // namespace

PassedSignals::PassedSignals(pid_t program) {
  g_program = program;
  struct sigaction action = {};
  action.sa_sigaction = pass_on;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

PassedSignals::~PassedSignals() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  g_program = 0;
}

}  // namespace v3d::tools
