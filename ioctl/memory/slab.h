/// A slab holds the memory of small BOs. It is one memfd of up to 1 MiB and as much of a client's GPU
/// addresses; a BO in it lies as far from the start of the one as from that of the other, so that neighbours
/// are one mapping of the host, and none costs a descriptor. Pages that belong to no BO are invalid: an
/// access of a job that is submitted afterwards is an MMU fault.
///
/// A client may go on using a mapping of a BO that it has closed, and the memory is that mapping's then, as
/// it is the kernel's object's. So what a client has mapped is retired when its BO goes: used for no other
/// BO, until no BO is left in the slab, whose memfd is dropped then (a mapping that is still there keeps it).
/// What was never mapped loses its contents and is used again at once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "gpu/mmu/address_space.h"
#include "ioctl/base/account.h"
#include "ioctl/memory/memory_file.h"
#include "ioctl/memory/va_allocator.h"

namespace v3d::ioctl {

/// BOs of at most that many bytes lie in slabs.
inline constexpr uint64_t kMaxSlabBo = 128 << 10;
inline constexpr uint32_t kSlabPages = 256;
inline constexpr uint64_t kSlabSize = kSlabPages * uint64_t{mmu::kPageSize};
/// BOs get memfds of their own while what is retired exceeds this and the BOs in slabs: the slabs of a file
/// never hold more than twice what its small BOs took at their most, and this.
inline constexpr uint64_t kMaxRetired = 4 << 20;
/// When a space takes so many mappings of the host, or its client gets no more, a slab is mapped as a whole:
/// an access to pages that belong to no BO is no fault then. Nothing but the client's own small BOs was ever
/// there.
inline constexpr uint64_t kExactMappings = 4096;
/// What each slab is charged for at least: mapped as a whole, it takes as many.
inline constexpr uint64_t kSlabMappings = 2;

struct Slab;
/// A piece of a slab that a BO has.
struct SlabPiece {
  Slab* slab = nullptr;  ///< null: none
  uint32_t address = 0;  ///< GPU virtual
  uint64_t size = 0;     ///< bytes, whole pages
};

/// The slabs of one address space. Not synchronised.
class SlabPool {
 public:
  /// @param va  where their addresses come from; both outlive it
  SlabPool(mmu::AddressSpace& space, VaAllocator& va);
  ~SlabPool();
  SlabPool(const SlabPool&) = delete;
  SlabPool& operator=(const SlabPool&) = delete;

  /// A piece of zeros, mapped. Nothing when there is none to be had: the BO may still get memory of its own.
  /// @param account  pays for a slab that it takes
  /// @param size  whole pages, at most kMaxSlabBo
  /// @param in_need  there is no such memory: also while too much is retired
  std::optional<SlabPiece> allocate(Account& account, uint64_t size, bool in_need);
  /// @param was_mapped  a client had a mapping of it
  /// @param bytes  its charge, kept as long as the memory
  void release(const SlabPiece& piece, bool was_mapped, Charge bytes);
  /// Has the host unmap what was released, before jobs that are to find it so. Neighbours go at once.
  void settle();
  /// The BO stays at its address, where something else is mapped by now; its memory is as if released.
  void move_out(const SlabPiece& piece, bool was_mapped, Charge bytes);
  /// At the end of a BO that was moved out, whose address is unmapped by now.
  void release_address(const SlabPiece& piece);
  /// Gives up what is held for BOs to come. False when that was nothing.
  bool trim();

  static const std::shared_ptr<MemoryFile>& file(const SlabPiece& piece);
  static uint64_t offset(const SlabPiece& piece);

  uint64_t live_bytes() const { return live_pages_ * mmu::kPageSize; }        ///< of BOs in slabs
  uint64_t retired_bytes() const { return retired_pages_ * mmu::kPageSize; }  ///< that no BO can have
  size_t slabs() const { return slabs_.size(); }

 private:
  bool make_file(Account& account, Slab& slab);
  Slab* make_slab();
  Slab* find_slab(uint32_t pages, uint64_t alignment, uint32_t* page);
  bool map(Slab& slab, uint32_t page, uint32_t pages);
  bool map_whole(Slab& slab);
  void forget(Slab& slab, uint32_t page, uint32_t pages, bool was_mapped, Charge bytes);
  void tidy(Slab& slab);
  void erase(Slab& slab);

  mmu::AddressSpace& space_;
  VaAllocator& va_;
  std::map<uint32_t, std::unique_ptr<Slab>> slabs_;  // by address
  Slab* current_ = nullptr;                          // where room is looked for first
  Slab* spare_ = nullptr;                            // empty, but kept
  bool any_stale_ = false;
  uint64_t live_pages_ = 0, retired_pages_ = 0;
};

}  // namespace v3d::ioctl
