/// The memory behind BOs: memfds of which nobody can change the size, and their identity.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>

#include "ioctl/unique_fd.h"

namespace v3d::ioctl {

/// Identity of a file: two descriptors with equal keys share their memory.
struct InodeKey {
  uint64_t device, inode;
  auto operator<=>(const InodeKey&) const = default;
};

struct MemoryFile {
  UniqueFd memfd;
  InodeKey key;

  /// @param name  as /proc shows it, behind "/memfd:"; the shim knows slabs by theirs
  /// @param size  bytes, a multiple of the page size, > 0
  /// @return null when the host has no memory or no descriptors left
  static std::shared_ptr<MemoryFile> create(const char* name, uint64_t size);
};

}  // namespace v3d::ioctl
