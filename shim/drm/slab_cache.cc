#include "shim/drm/slab_cache.h"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>

#include "shim/drm/moved_memory.h"
#include "shim/drm/parked_mappings.h"
#include "shim/process/raw.h"

namespace v3d::shim {
namespace {

/// Whoever changes a place makes the number odd first. Its memory is never unmapped: a thread that still
/// looks at it must find memory.
struct SlabSlot {
  std::atomic<uint32_t> number;
  std::atomic<uint64_t> inode;
  std::atomic<uint64_t> memory, bytes;
};
SlabSlot places[wire::kKnownSlabs];
std::atomic<uint32_t> next_place{0};

}  // namespace

// The emulator that runs arm64 programs does not know that mremap() can double a mapping.
#if defined(__x86_64__)

void list_slabs(uint64_t (&inodes)[wire::kKnownSlabs]) {
  for (uint32_t i = 0; i < wire::kKnownSlabs; ++i) inodes[i] = places[i].inode.load();
}

void remember_slab(uint64_t inode, uint64_t bytes, int memfd) {
  for (const SlabSlot& place : places)
    if (place.inode.load() == inode) return;
  SlabSlot& place = places[next_place.fetch_add(1) % wire::kKnownSlabs];
  uint32_t number = place.number.load();
  if (number % 2 || !place.number.compare_exchange_strong(number, number + 1)) return;
  place.inode.store(0);
  const uint64_t known = place.memory.load();
  const bool reused = known && place.bytes.load() == bytes;
  const void* memory = raw::mmap(reused ? raw::pointer(known) : nullptr, bytes, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | (reused ? MAP_FIXED : 0), memfd, 0);
  if (memory) {
    place.memory.store(raw::address_of(memory));
    place.bytes.store(bytes);
    place.inode.store(inode);
  }
  place.number.store(number + 2);
}

long map_from_slab(uint64_t inode, uint64_t offset, void* address, size_t length, int prot, int flags) {
  constexpr int kReadWrite = PROT_READ | PROT_WRITE;
  const SlabRange range{inode, offset, raw::whole_pages(length), mappings_epoch()};
  const bool fixed = flags & MAP_FIXED, may_stay = !fixed && prot == kReadWrite;
  if (may_stay)
    if (const uint64_t parked = take_parked(range)) return static_cast<long>(parked);
  for (const SlabSlot& place : places) {
    const uint32_t number = place.number.load();
    if (place.inode.load() != inode || number % 2) continue;
    const uint64_t memory = place.memory.load();
    const uint64_t bytes = place.bytes.load();
    if (offset > bytes || length > bytes - offset) continue;
    // Of no bytes: a second mapping of what is mapped there.
    const long result =
        raw::call(SYS_mremap, static_cast<long>(memory + offset), 0, static_cast<long>(length),
                  MREMAP_MAYMOVE | (fixed ? MREMAP_FIXED : 0), raw::word(address));
    if (raw::is_error(result)) return -ENOENT;
    const bool right = place.number.load() == number;
    if (right && prot != kReadWrite) raw::call(SYS_mprotect, result, static_cast<long>(length), prot);
    if (right && may_stay) note_mapping(static_cast<uint64_t>(result), range);
    if (right) return result;
    // What is mapped over a fixed address will be mapped over once more.
    if (!fixed) raw::unmap_memory(raw::pointer(static_cast<uint64_t>(result)), length);
  }
  return -ENOENT;
}

#else

void list_slabs(uint64_t (&inodes)[wire::kKnownSlabs]) {
  for (uint64_t& inode : inodes) inode = 0;
}
void remember_slab(uint64_t, uint64_t, int) {}
long map_from_slab(uint64_t, uint64_t, void*, size_t, int, int) { return -ENOENT; }

#endif

bool is_kept_slab(uint64_t start) {
  for (const SlabSlot& place : places) {
    const uint64_t memory = place.memory.load();
    if (memory && start >= memory && start - memory < place.bytes.load()) return true;
  }
  return false;
}

}  // namespace v3d::shim
