#include "ioctl/firmware/heap.h"

#include <algorithm>

namespace v3d::ioctl::firmware {
namespace {

/// Of what the firmware has, its own part lies at the top: on boards with 1 GiB behind the peripherals, where
/// the ARM does not reach it.
constexpr uint32_t kOwn = 16u << 20;

}  // namespace

Heap Heap::of(const chip::Board& board, uint32_t memory_mib) {
  const uint32_t top = std::min(board.memory_mib(), 1024u) << 20;
  const uint32_t all = std::clamp(memory_mib << 20, kOwn, top / 2);
  return {top - all, top - kOwn};
}

Heap Heap::below(const Heap& firmware, uint64_t bytes) {
  const auto size = static_cast<uint32_t>(std::min<uint64_t>(bytes, firmware.begin() / 2));
  return {firmware.begin() - size, firmware.begin()};
}

std::optional<uint32_t> Heap::take(uint32_t bytes, uint32_t alignment) {
  uint32_t end = end_;
  for (auto it = used_.rbegin();; ++it) {
    const uint32_t begin = it == used_.rend() ? begin_ : it->first + it->second;
    if (end - begin >= bytes) {
      const uint32_t address = (end - bytes) & ~(alignment - 1);
      if (address >= begin) {
        used_[address] = bytes;
        return address;
      }
    }
    if (it == used_.rend()) return std::nullopt;
    end = it->first;
  }
}

}  // namespace v3d::ioctl::firmware
