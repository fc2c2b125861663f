/// QpuSlots say which QPU and which of its threads a batch gets: software sees it as TIDX
/// (compute-and-timing.md 3).
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "gpu/chip/profile.h"

namespace v3d::csd {

/// TIDX = QPU << 2 | thread; threads are 0 and 2 of a QPU in two-thread mode. Always below 64.
class QpuSlots {
 public:
  static constexpr int kMaxThreads = 64;

  QpuSlots(const chip::Profile& profile, bool four_threads)
      : qpu_count_(static_cast<uint32_t>(profile.qpu_count())), threads_(four_threads ? 0xf : 0x5) {
    const uint32_t per_slice = static_cast<uint32_t>(profile.qpus_per_slice);
    const uint32_t slices = static_cast<uint32_t>(profile.slices);
    for (uint32_t i = 0; i < qpu_count_; ++i) {
      const uint32_t qpu = profile.csd_fills_in_order() ? i : i % slices * per_slice + i / slices;
      order_[i] = static_cast<uint8_t>(qpu);
      rank_[qpu] = static_cast<uint8_t>(i);
    }
    by_threads_[0] = (1u << qpu_count_) - 1;
  }

  uint32_t capacity() const { return qpu_count_ * static_cast<uint32_t>(std::popcount(threads_)); }
  uint32_t occupied() const { return occupied_; }

  /// The QPU with the fewest threads, the first of the order among equals. Not when all are occupied.
  uint32_t take() {
    size_t fewest = 0;
    while (by_threads_[fewest] == 0) ++fewest;
    const uint32_t qpu = order_[static_cast<size_t>(std::countr_zero(by_threads_[fewest]))];
    const uint32_t thread =
        static_cast<uint32_t>(std::countr_zero(static_cast<uint32_t>(threads_ & ~busy_[qpu])));
    change(qpu, 1u << thread);
    ++occupied_;
    return qpu << 2 | thread;
  }

  /// What the call of take() number n gives when all threads are free. @param n  below capacity()
  uint32_t nth(uint32_t n) const {
    uint32_t threads = threads_;
    for (uint32_t round = n / qpu_count_; round > 0; --round) threads &= threads - 1;
    return uint32_t{order_[n % qpu_count_]} << 2 | static_cast<uint32_t>(std::countr_zero(threads));
  }

  /// A free thread of the caller's choice.
  void take(uint32_t tidx) {
    change(tidx >> 2, 1u << (tidx & 3));
    ++occupied_;
  }

  void give_back(uint32_t tidx) {
    change(tidx >> 2, 1u << (tidx & 3));
    --occupied_;
  }

 private:
  void change(uint32_t qpu, uint32_t threads) {
    const uint32_t bit = 1u << rank_[qpu];
    by_threads_[static_cast<size_t>(std::popcount(busy_[qpu]))] &= ~bit;
    busy_[qpu] = static_cast<uint8_t>(busy_[qpu] ^ threads);
    by_threads_[static_cast<size_t>(std::popcount(busy_[qpu]))] |= bit;
  }

  uint32_t qpu_count_;  // 1..16
  uint8_t threads_;     // those that the mode uses
  uint32_t occupied_ = 0;
  std::array<uint8_t, 16> order_{}, rank_{};  // QPU at a place of the order, and back
  std::array<uint8_t, 16> busy_{};            // threads of each QPU
  std::array<uint32_t, 5> by_threads_{};      // places of the QPUs with 0, 1, ... 4 busy threads
};

}  // namespace v3d::csd
