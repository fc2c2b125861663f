/// Buffer objects: the shared memory, its fences, and its place in a client's GPU address space.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "ioctl/account.h"
#include "ioctl/fence.h"
#include "ioctl/gpu.h"
#include "ioctl/unique_fd.h"
#include "ioctl/va_allocator.h"

namespace v3d::ioctl {

/// The fences of the jobs that use a piece of memory (the kernel's dma_resv). Thread safe.
class Reservation {
 public:
  /// Replaces an earlier fence of the same context; drops signalled ones.
  void add(FencePtr fence, bool write);
  /// The unsignalled ones. @param reads_too  also fences of jobs that only read
  std::vector<FencePtr> fences(bool reads_too);

 private:
  struct Entry {
    FencePtr fence;
    bool write;
  };
  std::mutex mutex_;  // protects entries_
  std::vector<Entry> entries_;
};

/// Identity of a file: two descriptors with equal keys share their memory.
struct InodeKey {
  uint64_t device, inode;
  auto operator<=>(const InodeKey&) const = default;
};

class BufferTable;

/// What a buffer costs whoever made it, or brought its memfd.
struct BufferCharges {
  Charge bytes, descriptor;
};
/// What an address space costs: a window, a page table and a scratch page, which faults map in some places.
struct RoomCharges {
  Charge space, mappings, descriptor;
};
inline constexpr uint64_t kRoomMappings = 4, kRoomDescriptors = 1;
/// Of a BO in an address space: itself, and the gap behind it.
inline constexpr uint64_t kBoMappings = 2;

/// A memfd that daemon and clients map; what a dma-buf descriptor names. All GEM objects made from it, by any
/// client and on either node, share it and its reservation.
class Buffer {
 public:
  /// @param table  in which it stands; outlives it
  Buffer(UniqueFd memfd, uint64_t size, InodeKey key, BufferTable* table, BufferCharges charges = {})
      : memfd_(std::move(memfd)), size_(size), key_(key), table_(table), charges_(std::move(charges)) {}
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  int memfd() const { return memfd_.get(); }
  uint64_t size() const { return size_; }  ///< bytes, whole pages
  InodeKey key() const { return key_; }
  Reservation& reservation() { return reservation_; }

 private:
  const UniqueFd memfd_;
  const uint64_t size_;
  const InodeKey key_;
  BufferTable* const table_;
  const BufferCharges charges_;
  Reservation reservation_;
};

/// All living buffers by identity. Thread safe.
class BufferTable {
 public:
  /// @param size  bytes, a multiple of the page size, > 0
  /// @return null when the host has no memory or no descriptors left
  std::shared_ptr<Buffer> create(uint64_t size, BufferCharges charges = {});
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

/// The GPU address space of one drm_file. Lives until the last BO and job that use it are gone.
class AddressRoom {
 public:
  explicit AddressRoom(std::unique_ptr<GpuContext> gpu,
                       const BoAlignment& alignment = default_abi().bo_alignment, RoomCharges charges = {})
      : charges_(std::move(charges)), gpu_(std::move(gpu)), va_(alignment) {}
  GpuContext& gpu() { return *gpu_; }

  /// Places a buffer and maps it. 0, ENOSPC (no addresses left) or ENOMEM (the host refuses).
  int map(const Buffer& buffer, uint32_t* address);
  void unmap(const Buffer& buffer, uint32_t address);

 private:
  const RoomCharges charges_;  // released behind the context
  const std::unique_ptr<GpuContext> gpu_;
  std::mutex mutex_;  // protects va_
  VaAllocator va_;
};

/// What one drm_file owns of memory.
struct MemoryUse {
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> objects{0};
};

/// A GEM object: a buffer as one drm_file sees it.
class Bo {
 public:
  /// @param room  where it is mapped; null on the vc4 node
  Bo(std::shared_ptr<Buffer> buffer, std::shared_ptr<AddressRoom> room, uint32_t address,
     uint64_t mmap_offset, bool imported, std::shared_ptr<MemoryUse> use, Charge mappings = {});
  ~Bo();
  Bo(const Bo&) = delete;
  Bo& operator=(const Bo&) = delete;

  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }
  uint64_t size() const { return buffer_->size(); }
  uint32_t address() const { return address_; }          ///< GPU virtual, 0 on vc4
  uint64_t mmap_offset() const { return mmap_offset_; }  ///< fake offset, >= 4 GiB
  bool imported() const { return imported_; }
  Reservation& reservation() const { return buffer_->reservation(); }

  /// Host address of [offset, offset + bytes), or null when that is not inside the object.
  uint8_t* host(uint64_t offset, uint64_t bytes) const;

 private:
  const std::shared_ptr<Buffer> buffer_;
  const std::shared_ptr<AddressRoom> room_;
  const uint32_t address_;
  const uint64_t mmap_offset_;
  const bool imported_;
  const std::shared_ptr<MemoryUse> use_;
  const Charge mappings_;
};

}  // namespace v3d::ioctl
