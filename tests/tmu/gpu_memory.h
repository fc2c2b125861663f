/// This is GPU memory for tests: an address space with memory at one place.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>

#include "gpu/mmu/address_space.h"

namespace v3d::tmu {

class GpuMemory {
 public:
  static constexpr GpuAddr kBase = 0x100000;
  static constexpr uint32_t kSize = 16 << 20;

  GpuMemory() : space_(mmu::AddressSpace::create().value()) {
    EXPECT_TRUE(space_->map_zeros(kBase, kSize).ok());
  }

  Memory memory() const { return space_->memory(); }
  uint64_t take_faults() { return space_->take_faults().count; }

  void randomize(uint32_t bytes, uint32_t seed) {
    std::mt19937 random(seed);
    for (uint32_t i = 0; i < bytes; i += 4)
      memory().store<uint32_t>(kBase + i, static_cast<uint32_t>(random()));
  }

 private:
  std::unique_ptr<mmu::AddressSpace> space_;
};

}  // namespace v3d::tmu
