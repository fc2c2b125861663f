/// A CountingControl counts how often it is looked at, and what memory it is asked for.
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

  bool take_memory(uint64_t bytes) override {
    if (taken_ + bytes > room) return false;
    taken_ += bytes;
    most_ = most_ < taken_ ? taken_.load() : most_.load();
    return true;
  }
  void return_memory(uint64_t bytes) override { taken_ -= bytes; }
  uint64_t taken() const { return taken_; }
  uint64_t most_taken() const { return most_; }
  uint64_t room = UINT64_MAX;

 private:
  bool attend() override {
    consider();
    return false;
  }
  void consider() override {
    if (++looks_ == cancel_at_) cancel();
  }

  std::atomic<uint64_t> looks_{0}, taken_{0}, most_{0};
  uint64_t cancel_at_ = 0;
};

}  // namespace v3d
