/// The firmware has a part of the board's memory, from which it gives to programs (board-environment.md 6.2).
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "gpu/chip/board.h"

namespace v3d::ioctl::firmware {

/// Physical addresses.
class Heap {
 public:
  Heap(uint32_t begin, uint32_t end) : begin_(begin), end_(end) {}
  /// Of a board.
  /// @param memory_mib  what the firmware keeps of the board's memory (gpu_mem in config.txt)
  static Heap of(const chip::Board& board, uint32_t memory_mib);
  /// What Linux has set aside below that for the same board (CMA).
  static Heap below(const Heap& firmware, uint64_t bytes);

  uint32_t begin() const { return begin_; }
  uint32_t end() const { return end_; }

  /// From the top, as the firmware does. Nothing when there is no such stretch.
  /// @param bytes  > 0, of whole pages  @param alignment  a power of two
  std::optional<uint32_t> take(uint32_t bytes, uint32_t alignment);
  void give_back(uint32_t address) { used_.erase(address); }

 private:
  uint32_t begin_, end_;
  std::map<uint32_t, uint32_t> used_;  ///< by address, bytes
};

}  // namespace v3d::ioctl::firmware
