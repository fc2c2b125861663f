/// Snapshots are what was on the screen a moment ago.
#pragma once

#include <array>
#include <chrono>

#include "tools/cli/screen/output.h"

namespace v3d::tools {

/// Keeps pictures of the last half second: a window that another program draws has gone when its program is
/// seen to have ended.
class Snapshots : public Output {
 public:
  bool is_due() override { return Clock::now() - kept_[1].time >= kPeriod; }
  uint32_t patience_ms() override { return 100; }
  absl::Status show(const ioctl::kms::Image& image, uint64_t) override {
    std::swap(kept_[0], kept_[1]);
    kept_[1].image = image;
    kept_[1].time = Clock::now();
    return absl::OkStatus();
  }
  /// The newest one that is old enough, else the oldest. Empty when there is none.
  const ioctl::kms::Image& before_end() const {
    const bool is_old = Clock::now() - kept_[1].time >= kPeriod;
    return is_old || kept_[0].image.empty() ? kept_[1].image : kept_[0].image;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kPeriod{250};
  struct Snapshot {
    ioctl::kms::Image image;
    Clock::time_point time;
  };
  std::array<Snapshot, 2> kept_;  // the older one first
};

}  // namespace v3d::tools
