/// The allocator decides where BOs lie in the 4 GiB GPU address space of a client.
#pragma once

#include <cstdint>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <utility>

#include "ioctl/abi/versions.h"

namespace v3d::ioctl {

/// The smallest hole that is large enough, the lowest of several, as drm_mm does: it stays fast however many
/// small holes there are. Between BOs that are aligned to more than their size stays unmapped space, so that
/// read-ahead hits no neighbour (drm-abi.md 4.2). Not synchronised.
class VaAllocator {
 public:
  static constexpr uint64_t kPage = 4096;

  explicit VaAllocator(const BoAlignment& alignment) : alignment_(alignment) {
    add(1, (uint64_t{1} << 32) / kPage);  // the first page is never handed out
  }

  /// @param size  bytes, > 0
  std::optional<uint32_t> allocate(uint64_t size) {
    const uint64_t pages = pages_of(size), step = alignment(size) / kPage;
    for (auto it = by_size_.lower_bound({pages, 0}); it != by_size_.end(); ++it) {
      const uint64_t begin = it->second, end = begin + it->first;
      const uint64_t start = (begin + step - 1) / step * step;
      if (start + pages > end) continue;
      // What may fail comes first: a hole is either taken or as it was.
      if (start + pages < end) add(start + pages, end);
      if (begin < start) {
        try {
          by_size_.emplace(start - begin, begin);
        } catch (...) {
          if (start + pages < end) remove(holes_.find(start + pages));
          throw;
        }
        holes_[begin] = start;
      } else {
        holes_.erase(begin);
      }
      by_size_.erase(it);
      return static_cast<uint32_t>(start * kPage);
    }
    return std::nullopt;
  }

  struct Range {
    uint32_t address;
    uint64_t size;
  };
  /// A range of that many bytes that starts at a multiple of what a BO of that size does, or what the first
  /// page leaves of the lowest one.
  /// @param size  a power of two
  std::optional<Range> allocate_slab(uint64_t size) {
    const uint64_t end = pages_of(size);
    const auto first = holes_.begin();
    if (first != holes_.end() && first->first == 1 && first->second >= end) {
      const uint64_t rest = first->second;
      remove(first);
      if (end < rest) add(end, rest);
      return Range{kPage, size - kPage};
    }
    const auto address = allocate(size);
    if (!address) return std::nullopt;
    return Range{*address, size};
  }

  /// Both as at allocate().
  void release(uint32_t address, uint64_t size) {
    uint64_t begin = address / kPage, end = begin + pages_of(size);
    auto next = holes_.lower_bound(begin);
    if (next != holes_.begin()) {
      const auto previous = std::prev(next);
      if (previous->second == begin) {
        begin = previous->first;
        remove(previous);
      }
    }
    if (next != holes_.end() && next->first == end) {
      end = next->second;
      remove(next);
    }
    add(begin, end);
  }

  /// The same where there may be no memory to note it; then the range is lost.
  void try_release(uint32_t address, uint64_t size) {
    try {
      release(address, size);
    } catch (const std::bad_alloc&) {
    }
  }

  /// Of the address of a BO of so many bytes.
  uint64_t alignment(uint64_t size) const { return alignment_[(size >= 64 << 10) + (size >= 1 << 20)]; }

 private:
  using Holes = std::map<uint64_t, uint64_t>;

  static uint64_t pages_of(uint64_t size) { return (size + kPage - 1) / kPage; }
  void add(uint64_t begin, uint64_t end) {
    const auto size = by_size_.emplace(end - begin, begin).first;
    try {
      holes_[begin] = end;
    } catch (...) {
      by_size_.erase(size);
      throw;
    }
  }
  void remove(Holes::iterator hole) {
    by_size_.erase({hole->second - hole->first, hole->first});
    holes_.erase(hole);
  }

  const BoAlignment alignment_;
  Holes holes_;                                      // pages: first -> end, no two adjacent
  std::set<std::pair<uint64_t, uint64_t>> by_size_;  // {pages, first} of each hole
};

}  // namespace v3d::ioctl
