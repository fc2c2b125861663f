/// Some signals to this process are meant for the program that it started, and are passed on.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <array>

namespace v3d::tools {

/// While it exists, what would end this process ends the program, whose end this process waits for. One at a
/// time. A terminal sends to both, and the program needs it but once.
class PassedSignals {
 public:
  explicit PassedSignals(pid_t program);
  ~PassedSignals();
  PassedSignals(const PassedSignals&) = delete;
  PassedSignals& operator=(const PassedSignals&) = delete;

 private:
  static constexpr std::array kSignals = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
  struct sigaction before_[kSignals.size()];
};

}  // namespace v3d::tools
