/// A CaptureFile reads the records of a capture one after the other, and pages where somebody asks for them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/page_chunk.h"
#include "gpu/mmu/address_space.h"
#include "ioctl/base/unique_fd.h"

namespace v3d::daemon {

/// Where pages lie, by their numbers from 1: in runs of equal distances.
class PageIndex {
 public:
  /// Where pages are that were compressed: in memory, by their place there.
  static constexpr uint32_t kDecompressed = 1;
  struct Place {
    uint64_t offset;
    bool in_file;
  };

  /// Pages that follow the last one. @param distance  bytes from one to the next, or kDecompressed
  /// @return  false: too many
  bool add(uint64_t offset, uint32_t count, uint32_t distance);
  uint32_t count() const { return count_; }
  /// @param number  1..count()
  Place find(uint32_t number) const;

 private:
  struct Run {
    uint32_t first, count, distance;
    uint64_t offset;
  };
  std::vector<Run> runs_;
  uint32_t count_ = 0;
};

class CaptureFile {
 public:
  using Page = std::span<const uint8_t, mmu::kPageSize>;

  /// NotFound where it cannot be opened; InvalidArgument if it is no regular file.
  static absl::StatusOr<std::unique_ptr<CaptureFile>> open(const std::string& path);

  /// Bytes at the position, which moves behind them. @return  how many there were
  size_t read(void* data, size_t bytes);
  /// The same without reading them. False, and nothing moves: the file ends before.
  bool skip(uint64_t bytes);
  /// A payload. Its size is only a claim: memory is taken as bytes arrive. False: the file ends before.
  bool read_payload(uint32_t size, std::vector<uint32_t>* words);
  uint64_t position() const { return position_; }
  void seek(uint64_t position) { position_ = position; }
  bool at_end() const { return position_ >= size_; }

  /// Pages are at the position, which moves behind them. False: there are too many, or the file ends before.
  bool take_pages(uint32_t count, uint32_t distance);
  /// Pages of a chunk (page_chunk.h) follow, which stay in memory. InvalidArgument if it is none.
  absl::Status take_chunk(std::span<const uint8_t> chunk);
  uint32_t pages() const { return index_.count(); }
  /// Forgets which pages there are, and what it read of them.
  void forget_pages();
  /// @param number  0: zeros; up to pages(). Zeros also where the file became shorter. Stays up to
  /// keep_pages().
  Page page(uint32_t number);
  /// Pages that nobody is going to need are forgotten, once there are many of them.
  /// @param needed  numbers, as many as `count`
  template <typename ForEach>
  void keep_pages(size_t count, const ForEach& needed) {
    if (loaded_.size() <= 2 * count + kSpare) return;
    std::unordered_set<uint32_t> kept;
    needed([&kept](uint32_t number) { kept.insert(number); });
    std::erase_if(loaded_, [&kept](const auto& one) { return !kept.contains(one.first); });
  }

 private:
  static constexpr size_t kSpare = 4096;

  CaptureFile(ioctl::UniqueFd fd, uint64_t size) : fd_(std::move(fd)), size_(size) {}
  size_t read_at(uint64_t offset, void* data, size_t bytes) const;

  const ioctl::UniqueFd fd_;
  const uint64_t size_;
  uint64_t position_ = 0;
  PageIndex index_;
  std::vector<CapturedPage> decompressed_;
  std::unordered_map<uint32_t, std::unique_ptr<CapturedPage>> loaded_;
};

}  // namespace v3d::daemon
