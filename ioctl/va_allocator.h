/// Where BOs lie in the 4 GiB GPU address space of a client.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "ioctl/abi.h"

namespace v3d::ioctl {

/// Lowest address first. Between BOs that are aligned to more than their size stays unmapped space, so that
/// read-ahead hits no neighbour (drm-abi.md 4.2). Not synchronised.
class VaAllocator {
 public:
  static constexpr uint64_t kPage = 4096;

  explicit VaAllocator(const BoAlignment& alignment) : alignment_(alignment) {
    free_[1] = (uint64_t{1} << 32) / kPage;  // the first page is never handed out
  }

  /// @param size  bytes, > 0
  std::optional<uint32_t> allocate(uint64_t size) {
    const uint64_t pages = pages_of(size), step = alignment(size) / kPage;
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      const auto [begin, end] = *it;
      const uint64_t start = (begin + step - 1) / step * step;
      if (start >= end || end - start < pages) continue;
      if (start == begin)
        it = free_.erase(it);
      else
        (it++)->second = start;
      if (start + pages < end) free_.emplace_hint(it, start + pages, end);
      return static_cast<uint32_t>(start * kPage);
    }
    return std::nullopt;
  }

  /// Both as at allocate().
  void release(uint32_t address, uint64_t size) {
    uint64_t begin = address / kPage, end = begin + pages_of(size);
    auto next = free_.lower_bound(begin);
    if (next != free_.begin()) {
      const auto previous = std::prev(next);
      if (previous->second == begin) {
        begin = previous->first;
        free_.erase(previous);
      }
    }
    if (next != free_.end() && next->first == end) {
      end = next->second;
      next = free_.erase(next);
    }
    free_.emplace_hint(next, begin, end);
  }

  /// Of the address of a BO of so many bytes.
  uint64_t alignment(uint64_t size) const { return alignment_[(size >= 64 << 10) + (size >= 1 << 20)]; }

 private:
  static uint64_t pages_of(uint64_t size) { return (size + kPage - 1) / kPage; }

  const BoAlignment alignment_;
  std::map<uint64_t, uint64_t> free_;  // pages: first -> end, no two adjacent
};

}  // namespace v3d::ioctl
