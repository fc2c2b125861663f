/// A buffer object is shared memory with its fences and its place in a client's GPU address space.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "ioctl/base/account.h"
#include "ioctl/base/driver_slot.h"
#include "ioctl/base/gpu.h"
#include "ioctl/base/unique_fd.h"
#include "ioctl/memory/memory_file.h"
#include "ioctl/memory/slab.h"
#include "ioctl/memory/va_allocator.h"
#include "ioctl/sync/fence.h"

namespace v3d::ioctl {

/// The fences of the jobs that use a piece of memory (the kernel's dma_resv). Thread safe.
class Reservation {
 public:
  /// Replaces an earlier fence of the same context; drops signalled ones.
  void add(FencePtr fence, bool write);
  /// Of a job that writes, and waits for all that are here.
  void add_last(const FencePtr& fence);
  /// Fences of different contexts from elsewhere than a job, of which there may be many.
  /// @param paid  kept until the last of them is dropped
  void add_all(const std::vector<FencePtr>& fences, bool write, const std::shared_ptr<const Charge>& paid);
  /// The unsignalled ones. @param reads_too  also fences of jobs that only read
  std::vector<FencePtr> fences(bool reads_too);
  /// Whether there are any.
  bool is_busy() const;

  /// Clients read in the status whether there are any, under the handle. Of several files the first one's.
  void show_in(const std::shared_ptr<FileStatus>& status, uint32_t handle);
  /// Not any more, where it was that one.
  void hide_from(const FileStatus& status, uint32_t handle);

 private:
  friend class HeldReservations;
  void add_locked(FencePtr fence, bool write);
  void hold();
  void let_go();

  struct Entry {
    FencePtr fence;
    bool write;
    std::shared_ptr<const Charge> paid = nullptr;
  };
  mutable std::mutex mutex_;  // protects all below but held_
  std::vector<Entry> entries_;
  std::shared_ptr<FileStatus> status_;  // null: shown nowhere
  uint32_t handle_ = 0;                 // there
  std::atomic<uint32_t> held_{0};       // 1: a submission has it to itself
};

/// The reservations of BOs that several files know, as long as a submission is one step for those files: from
/// its look at their fences until its own stand there. As the kernel's locks of BOs they concern those alone
/// who name one of these BOs, too.
class HeldReservations {
 public:
  /// @param reservations  any order, perhaps repeated. Throws nothing
  explicit HeldReservations(std::vector<Reservation*> reservations);
  ~HeldReservations();
  HeldReservations(const HeldReservations&) = delete;
  HeldReservations& operator=(const HeldReservations&) = delete;

 private:
  std::vector<Reservation*> reservations_;
};

class BufferTable;

/// What a buffer costs whoever made it, or brought its memfd; in a slab it takes no descriptor.
struct BufferCharges {
  Charge bytes, descriptor;
};
/// What an address space costs: a window with its guards, a page table, what it holds back for faults, and a
/// few scratch pages, which faults map in some places.
struct BoSpaceCharges {
  Charge space, mappings, descriptor;
};
inline constexpr uint64_t kRoomMappings = mmu::AddressSpace::kFixedMappings + 8, kRoomDescriptors = 1;
/// Of a BO with memory of its own in an address space: itself, and the gap after it.
inline constexpr uint64_t kBoMappings = 2;

/// Memory that daemon and clients map. It has a memfd of its own, which is what a dma-buf descriptor names:
/// all GEM objects made from it, by any client and on either node, share it and its reservation. Or it lies
/// in a slab: then one object has it alone, until that is shared for the first time.
class Buffer {
 public:
  /// @param table  in which it stands, or will when it leaves its slab; outlives it
  /// @param in_slab  the file is a slab's
  Buffer(std::shared_ptr<MemoryFile> file, uint64_t offset, uint64_t size, bool in_slab, BufferTable* table,
         BufferCharges charges = {})
      : size_(size),
        table_(table),
        charges_(std::move(charges)),
        backing_{std::move(file), offset},
        in_slab_(in_slab) {}
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  /// Where the bytes of a buffer are.
  struct Backing {
    std::shared_ptr<MemoryFile> file;
    uint64_t offset;  ///< bytes; 0 in a file of its own
  };
  Backing backing() const;
  /// For a client that is about to map it.
  Backing backing_for_client();
  uint64_t size() const { return size_; }  ///< bytes, whole pages
  bool in_slab() const;
  /// Whether a client may have a mapping of the slab's memory.
  bool client_mapped() const;
  Reservation& reservation() { return reservation_; }
  /// What the driver knows of the object, which all its files share.
  DriverSlot& driver() { return driver_; }

 private:
  friend class BoSpace;
  friend class BufferTable;

  const uint64_t size_;
  BufferTable* const table_;
  Reservation reservation_;
  BufferCharges charges_;     // under BoSpace's lock while in a slab
  mutable std::mutex mutex_;  // protects all below
  Backing backing_;
  bool in_slab_;
  bool client_mapped_ = false;
  DriverSlot driver_;  // gone before all else is
};

/// All living buffers by identity. Thread safe.
class BufferTable {
 public:
  /// @param size  bytes, a multiple of the page size, > 0
  /// @return null when the host has no memory or no descriptors left
  /// @param charges  taken when it succeeds
  /// @param name  as of MemoryFile::create
  std::shared_ptr<Buffer> create(uint64_t size, BufferCharges* charges, const char* name = "v3demu-bo");
  /// Enters a buffer that left its slab.
  void add(const std::shared_ptr<Buffer>& buffer);
  /// The buffer that a descriptor names. Takes the descriptor.
  /// @param account  whom a buffer is charged to that was not known yet; null for one that is just looked at
  /// @return 0, EINVAL when it is not the memfd of a buffer, or ENOMEM
  int import(UniqueFd fd, Account* account, std::shared_ptr<Buffer>* buffer);

 private:
  friend class Buffer;
  void forget(InodeKey key);

  std::mutex mutex_;  // protects buffers_
  std::map<InodeKey, std::weak_ptr<Buffer>> buffers_;
};

/// What one drm_file owns of memory.
struct MemoryUse {
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> objects{0};
  /// Of closed BOs that stays taken because a client may still have it mapped (slab.h).
  std::atomic<uint64_t> retired_bytes{0};
};

/// Where a BO is in its address space.
struct Placement {
  uint32_t address = 0;  ///< GPU virtual, 0 on vc4
  SlabPiece piece;       ///< that it has, or whose address it has
};

/// Memory of a slab that is elsewhere now: a client has to map that instead.
struct MovedMemory {
  InodeKey slab = {};
  uint64_t offset = 0, size = 0;  ///< where it was in the slab
  UniqueFd memfd;                 ///< where it is, from its start; empty when no client had mapped it
};

/// The GPU address space of one drm_file. Lives until the last BO and job that use it are gone.
class BoSpace {
 public:
  explicit BoSpace(std::unique_ptr<GpuContext> gpu, const BoAlignment& alignment = default_abi().bo_alignment,
                   std::shared_ptr<MemoryUse> use = std::make_shared<MemoryUse>(),
                   BoSpaceCharges charges = {});
  GpuContext& gpu() { return *gpu_; }

  /// Places a buffer with memory of its own and maps it. 0, ENOSPC (no addresses left) or ENOMEM (the host
  /// refuses).
  int map(const Buffer& buffer, Placement* placement);
  void unmap(Buffer& buffer, const Placement& placement);
  /// SlabPool::settle(), before jobs come.
  void settle();

  /// A buffer of zeros in a slab, mapped. Null when there is none to be had.
  /// @param account  pays for a slab that it takes
  /// @param bytes  as many as the buffer is to have, at most kMaxSlabBo; taken when it succeeds
  /// @param in_need  as of SlabPool::allocate
  std::shared_ptr<Buffer> create_small(BufferTable& table, Account& account, Charge* bytes, bool in_need,
                                       Placement* placement);
  /// Gives a buffer that lies in a slab memory of its own, with the same contents at the same address. No job
  /// may use it now. What a thread of a client writes meanwhile can be lost: what the kernel would see at the
  /// one object may have been written to the old memory when that was copied already.
  /// @return 0 (also when it is in no slab), or ENOMEM and nothing has changed
  /// @param account  pays for it
  /// @param mappings  of the object, which become its own
  int move_out(Account& account, const std::shared_ptr<Buffer>& buffer, const Placement& placement,
               Charge* mappings, MovedMemory* moved);

  /// What it takes of the host for BOs in slabs, and to map all BOs.
  struct HostUse {
    uint64_t mappings, descriptors;
  };
  HostUse host_use() const;

 private:
  void note_use();

  const BoSpaceCharges charges_;  // released after the context
  const std::unique_ptr<GpuContext> gpu_;
  const std::shared_ptr<MemoryUse> use_;
  mutable std::mutex mutex_;  // protects all below, and what is mapped
  VaAllocator va_;
  std::optional<SlabPool> slabs_;
};

/// A GEM object: a buffer as one drm_file sees it.
class Bo {
 public:
  /// @param space  where it is mapped; null on the vc4 node
  Bo(std::shared_ptr<Buffer> buffer, std::shared_ptr<BoSpace> space, const Placement& placement,
     uint64_t mmap_offset, bool imported, std::shared_ptr<MemoryUse> use, Charge mappings = {});
  ~Bo();
  Bo(const Bo&) = delete;
  Bo& operator=(const Bo&) = delete;

  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }
  uint64_t size() const { return buffer_->size(); }
  uint32_t address() const { return placement_.address; }  ///< GPU virtual, 0 on vc4
  uint64_t mmap_offset() const { return mmap_offset_; }    ///< fake offset, >= 4 GiB
  bool imported() const { return imported_; }
  Reservation& reservation() const { return buffer_->reservation(); }

  /// Host address of [offset, offset + bytes), or null when that is not inside the object.
  uint8_t* host(uint64_t offset, uint64_t bytes) const;

  /// BoSpace::move_out(), for an object that is to be shared. One thread at a time.
  int leave_slab(Account& account, MovedMemory* moved);

 private:
  const std::shared_ptr<Buffer> buffer_;
  const std::shared_ptr<BoSpace> space_;
  const Placement placement_;
  const uint64_t mmap_offset_;
  const bool imported_;
  const std::shared_ptr<MemoryUse> use_;
  Charge mappings_;
};

}  // namespace v3d::ioctl
