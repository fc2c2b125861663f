/// Which QPU and which of its threads a batch gets: software sees it as TIDX (compute-and-timing.md 3).
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "gpu/device/profile.h"

namespace v3d::csd {

/// TIDX = QPU << 2 | thread; threads are 0 and 2 of a QPU in two-thread mode. Always below 64.
class QpuSlots {
 public:
  static constexpr int kMaxThreads = 64;

  QpuSlots(const device::Profile& profile, bool four_threads)
      : qpu_count_(static_cast<uint32_t>(profile.qpu_count())), threads_(four_threads ? 0xf : 0x5) {
    // 7.1 fills QPUs in order. 4.2 leaves gaps when there are fewer batches than QPUs: slices take turns.
    const uint32_t per_slice = static_cast<uint32_t>(profile.qpus_per_slice);
    const uint32_t slices = static_cast<uint32_t>(profile.slices);
    for (uint32_t i = 0; i < qpu_count_; ++i)
      order_[i] = static_cast<uint8_t>(profile.version >= 71 ? i : i % slices * per_slice + i / slices);
  }

  uint32_t capacity() const { return qpu_count_ * static_cast<uint32_t>(std::popcount(threads_)); }
  uint32_t occupied() const { return occupied_; }

  /// The QPU with the fewest threads, the first of the order among equals. Not when all are occupied.
  uint32_t take() {
    uint32_t best = 0;
    int fewest = 5;
    for (uint32_t i = 0; i < qpu_count_; ++i) {
      const int count = std::popcount(busy_[order_[i]]);
      if (count < fewest) {
        fewest = count;
        best = order_[i];
      }
    }
    const uint32_t thread =
        static_cast<uint32_t>(std::countr_zero(static_cast<uint8_t>(threads_ & ~busy_[best])));
    busy_[best] = static_cast<uint8_t>(busy_[best] | 1u << thread);
    ++occupied_;
    return best << 2 | thread;
  }

  void give_back(uint32_t tidx) {
    busy_[tidx >> 2] = static_cast<uint8_t>(busy_[tidx >> 2] & ~(1u << (tidx & 3)));
    --occupied_;
  }

 private:
  uint32_t qpu_count_;  // 1..16
  uint8_t threads_;     // those that the mode uses
  uint32_t occupied_ = 0;
  std::array<uint8_t, 16> order_{};
  std::array<uint8_t, 16> busy_{};  // threads of each QPU
};

}  // namespace v3d::csd
