/// A TestJob is a job over an address space of its own, for tests.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/base/job_context.h"
#include "gpu/chip/profile.h"
#include "gpu/mmu/address_space.h"
#include "gpu/perf/counters.h"

namespace v3d {

inline const chip::Profile& profile_42() { return *chip::find_profile("rpi4"); }

class TestJob {
 public:
  explicit TestJob(const chip::Profile& profile = chip::default_profile(), int workers = 0)
      : space_(mmu::AddressSpace::create().value()), pool_(workers) {
    EXPECT_TRUE(space_->map_zeros(kBase, kSize).ok());
    job_.memory = space_->memory();
    job_.profile = &profile;
    job_.pool = &pool_;
    job_.programs = nullptr;
    job_.counts = &counts_;
    job_.error = &error_;
    job_.cancel = &cancel_;
  }

  JobContext& job() { return job_; }
  Memory memory() const { return job_.memory; }
  std::string error() const { return error_.message(); }
  bool hangs() const { return error_.failed() && error_.kind() == JobError::Kind::kHang; }
  perf::Counts counts() const { return counts_.total(); }
  std::atomic<bool>& cancel() { return cancel_; }
  mmu::AddressSpace& space() { return *space_; }
  /// First unmapped address after the memory of the job.
  static constexpr GpuAddr end() { return kBase + kSize; }

  GpuAddr allocate(uint32_t bytes, uint32_t align = 64) {
    next_ = (next_ + align - 1) / align * align;
    const GpuAddr address = next_;
    next_ += bytes;
    EXPECT_LE(next_, end());
    return address;
  }
  template <typename T>
  GpuAddr put(const std::vector<T>& data, uint32_t align = 64) {
    const GpuAddr address = allocate(static_cast<uint32_t>(data.size() * sizeof(T)), align);
    memory().write(address, data.data(), data.size() * sizeof(T));
    return address;
  }

 private:
  static constexpr GpuAddr kBase = 0x100000;
  static constexpr uint32_t kSize = 32 << 20;

  std::unique_ptr<mmu::AddressSpace> space_;
  ThreadPool pool_;
  perf::JobCounts counts_;
  JobError error_;
  std::atomic<bool> cancel_{false};
  JobContext job_;
  GpuAddr next_ = kBase;
};

}  // namespace v3d
