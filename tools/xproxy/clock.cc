#include "tools/xproxy/clock.h"

#include <cmath>
#include <ctime>

namespace v3d::xproxy {

constexpr double kSecond = 1e9;

int64_t monotonic_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

uint64_t Clock::msc(int64_t now_ns) const {
  if (is_free()) return shown_;
  return now_ns <= start_ ? 0 : static_cast<uint64_t>(static_cast<double>(now_ns - start_) * hz_ / kSecond);
}

int64_t Clock::when_ns(uint64_t msc, int64_t now_ns) const {
  // Beyond a century nobody waits, and no number overflows.
  constexpr double kLongest = 3e18;
  if (is_free()) return now_ns;
  const double after = std::ceil(static_cast<double>(msc) * kSecond / hz_);
  return start_ + static_cast<int64_t>(after < kLongest ? after : kLongest);
}

uint64_t Clock::choose(uint64_t now, uint64_t target, uint64_t divisor, uint64_t remainder, bool async) {
  if (target > now) return target;
  if (divisor == 0) return async ? now : now + 1;
  uint64_t next = now - now % divisor + remainder % divisor;
  if (async ? next < now : next <= now) next += divisor;
  return next;
}

}  // namespace v3d::xproxy
