#include "daemon/deadline.h"

#include <cerrno>
#include <ctime>
#include <utility>

namespace v3d::daemon {

Deadline::Deadline(std::chrono::milliseconds time, std::function<void()> abandon)
    : time_(time), abandon_(std::move(abandon)) {
  sem_init(&started_, 0, 0);
  sem_init(&over_, 0, 0);
  thread_ = std::thread([this] { wait(); });
}

Deadline::~Deadline() {
  sem_post(&over_);
  sem_post(&started_);
  thread_.join();
  sem_destroy(&over_);
  sem_destroy(&started_);
}

void Deadline::wait() {
  while (sem_wait(&started_) != 0) {
  }
  timespec end;
  clock_gettime(CLOCK_REALTIME, &end);  // sem_timedwait() knows no other clock
  const auto ns = std::chrono::nanoseconds(time_).count() + end.tv_nsec;
  end.tv_sec += ns / 1'000'000'000;
  end.tv_nsec = ns % 1'000'000'000;
  int result;
  while ((result = sem_timedwait(&over_, &end)) != 0 && errno == EINTR) {
  }
  if (result != 0) abandon_();
}

}  // namespace v3d::daemon
