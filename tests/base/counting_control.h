/// A JobControl that counts how often it is looked at.
#pragma once

#include <atomic>
#include <cstdint>

#include "gpu/base/job_control.h"

namespace v3d {

class CountingControl : public JobControl {
 public:
  /// Others want the GPU all the time, and never get it.
  CountingControl() { attention_ = true; }

  uint64_t looks() const { return looks_; }
  /// The job is cancelled at that look.
  void cancel_at(uint64_t look) { cancel_at_ = look; }

 private:
  bool attend() override {
    consider();
    return false;
  }
  void consider() override {
    if (++looks_ == cancel_at_) cancel();
  }

  std::atomic<uint64_t> looks_{0};
  uint64_t cancel_at_ = 0;
};

}  // namespace v3d
