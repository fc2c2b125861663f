/// Where BOs lie in the 4 GiB GPU address space of a client.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace v3d::ioctl {

/// Lowest address first, in units of 128 KiB (the GMP's granularity, to which Linux 6.12 aligns every BO).
/// The space between a BO's end and the next unit stays unmapped, so that read-ahead hits no neighbour
/// (drm-abi.md 4.2). Not synchronised.
class VaAllocator {
 public:
  static constexpr uint64_t kGranule = 128 << 10;

  VaAllocator() { free_[1] = (uint64_t{1} << 32) / kGranule - 1; }  // the first granule is never handed out

  /// @param size  bytes, > 0
  std::optional<uint32_t> allocate(uint64_t size) {
    const uint64_t granules = (size + kGranule - 1) / kGranule;
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      if (it->second < granules) continue;
      const uint64_t start = it->first, left = it->second - granules;
      it = free_.erase(it);
      if (left) free_.emplace_hint(it, start + granules, left);
      return static_cast<uint32_t>(start * kGranule);
    }
    return std::nullopt;
  }

  /// Both as at allocate().
  void release(uint32_t address, uint64_t size) {
    uint64_t start = address / kGranule, granules = (size + kGranule - 1) / kGranule;
    auto next = free_.lower_bound(start);
    if (next != free_.begin()) {
      const auto previous = std::prev(next);
      if (previous->first + previous->second == start) {
        start = previous->first;
        granules += previous->second;
        free_.erase(previous);
      }
    }
    if (next != free_.end() && start + granules == next->first) {
      granules += next->second;
      next = free_.erase(next);
    }
    free_.emplace_hint(next, start, granules);
  }

 private:
  std::map<uint64_t, uint64_t> free_;  // first granule -> count, no two adjacent
};

}  // namespace v3d::ioctl
