/// A trigger, which is a signal or a key, has a capture begin and end while its program runs.
#pragma once

#include <csignal>
#include <string>
#include <thread>

#include "ioctl/base/unique_fd.h"

namespace v3d::tools {

/// From now on SIGUSR1 is for this, and where the standard input is a terminal, its lines are: each tells the
/// daemon at that socket to begin or to end. Until this is destroyed.
class CaptureTrigger {
 public:
  explicit CaptureTrigger(std::string socket);
  ~CaptureTrigger();
  CaptureTrigger(const CaptureTrigger&) = delete;
  CaptureTrigger& operator=(const CaptureTrigger&) = delete;

  /// In a child that becomes the program: gives it the signal back, and an input that is empty where this
  /// process reads it.
  void leave_to_program() const;
  /// In this process, once the child has been made.
  void listen();

 private:
  void work();
  void toggle();

  const std::string socket_;
  bool reads_keys_;
  sigset_t mask_;
  ioctl::UniqueFd signals_, end_;
  std::thread thread_;
};

}  // namespace v3d::tools
