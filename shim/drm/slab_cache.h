/// The cache keeps slabs (ioctl/memory/slab.h) mapped as a whole: another BO of one is then mapped without a
/// descriptor of it, and so without a message over the socket. At most wire::kKnownSlabs of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ioctl/link/wire.h"

namespace v3d::shim {

/// @param inodes  of the slabs that are there; 0: none
void list_slabs(uint64_t (&inodes)[wire::kKnownSlabs]);
/// Maps a slab as a whole, over the one that has been there longest if need be.
void remember_slab(uint64_t inode, uint64_t bytes, int memfd);
/// As mmap(2) with MAP_SHARED of the slab's memfd. -ENOENT when the slab is not there (any more).
long map_from_slab(uint64_t inode, uint64_t offset, void* address, size_t length, int prot, int flags);
/// Whether memory that starts there is a slab that is kept here, no BO's mapping.
bool is_kept_slab(uint64_t start);

}  // namespace v3d::shim
