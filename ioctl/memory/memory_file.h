/// A MemoryFile is the memory of BOs: a memfd of which nobody can change the size, with its identity.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>

#include "gpu/base/memory.h"
#include "ioctl/base/unique_fd.h"

namespace v3d::mmu {
class AddressSpace;
}

namespace v3d::ioctl {

/// Identity of a file: two descriptors with equal keys share their memory.
struct InodeKey {
  uint64_t device, inode;
  auto operator<=>(const InodeKey&) const = default;
};

struct MemoryFile {
  UniqueFd memfd;
  InodeKey key;
  uint64_t slab_bytes = 0;  ///< of a slab, which several BOs share; 0 in a file of one BO

  /// @param name  as /proc shows it, after "/memfd:"; the shim knows slabs by theirs
  /// @param size  bytes, a multiple of the page size, > 0
  /// @return null when the host has no memory or no descriptors left
  static std::shared_ptr<MemoryFile> create(const char* name, uint64_t size);

  /// Maps bytes [offset, offset + size), whole pages, at a GPU address. False when the host refuses.
  /// @param frame  as of AddressSpace::map
  bool map(mmu::AddressSpace& space, GpuAddr address, uint64_t offset, uint64_t size,
           std::optional<uint32_t> frame = {}) const;
};

}  // namespace v3d::ioctl
