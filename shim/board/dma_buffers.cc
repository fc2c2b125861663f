#include "shim/board/dma_buffers.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <atomic>

#include "shim/link/connection.h"
#include "shim/process/config.h"
#include "shim/process/raw.h"
#include "shim/process/user_descriptors.h"
#include "shim/process/user_memory.h"

#ifndef F_SEAL_FUTURE_WRITE  // glibc 2.28
#define F_SEAL_FUTURE_WRITE 0x10
#endif

namespace v3d::shim {
namespace {

/// [K] include/uapi/linux/dma-heap.h
constexpr uint32_t kHeapAlloc = 0xc0184800;
struct HeapAllocation {
  uint64_t len;
  uint32_t fd, fd_flags;
  uint64_t heap_flags;
};
constexpr uint64_t kMostBytes = 0xfffff000;

/// By which the daemon knows a buffer (ioctl/memory/buffer.cc).
constexpr long kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

/// Another open file of the same memory: dma-bufs have a position, and an access mode, of their own.
int open_again(int fd, int flags) {
  Text<32> self;
  self.add("/proc/self/fd/").add(static_cast<uint64_t>(static_cast<unsigned>(fd)));
  return raw::open(self.c_str(), flags | O_CLOEXEC);
}

/// A daemon that is there from now on answers the ioctls of dma-bufs.
int find_daemon() {
  Call call(wire::kCommand, kStartDaemon | kCloseOnExec);
  return -call.open();
}

/// A dma-buf of zeros, or a negative errno.
int make_buffer(uint64_t bytes, uint32_t access) {
  const auto memory = static_cast<int>(
      raw::call(SYS_memfd_create, raw::word("v3demu-dma-heap"), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (memory < 0) return memory;
  long error = raw::ftruncate(memory, bytes);
  if (error == 0) error = raw::fcntl(memory, F_ADD_SEALS, kSeals);
  const int fd = error < 0 ? -ENOMEM : open_again(memory, static_cast<int>(access));
  raw::close(memory);
  return fd;
}

/// [K] drivers/dma-buf/dma-heap.c, dma_heap_ioctl_allocate.
int allocate(HeapAllocation* a) {
  if (a->fd || a->fd_flags & ~uint32_t{O_CLOEXEC | O_ACCMODE} || a->heap_flags) return -EINVAL;
  if (a->len == 0) return -EINVAL;
  if (a->len > kMostBytes) return -ENOMEM;
  if (const int error = find_daemon(); error < 0) return error;
  const int own = make_buffer(raw::whole_pages(a->len), a->fd_flags & O_ACCMODE);
  const int fd = own < 0 ? own : give_descriptor(own, a->fd_flags & O_CLOEXEC);
  if (fd < 0) return fd;
  a->fd = static_cast<uint32_t>(fd);
  return 0;
}

/// [K] include/uapi/linux/udmabuf.h
constexpr uint32_t kUdmabufCreate = 0x40187542, kUdmabufCreateList = 0x40087543;
constexpr uint32_t kCloseOnExecFlag = 1;
struct UdmabufCreate {
  uint32_t memfd, flags;
  uint64_t offset, size;
};
struct UdmabufCreateList {
  uint32_t flags, count;
};
struct UdmabufItem {
  uint32_t memfd, pad;
  uint64_t offset, size;
};
constexpr uint32_t kMostItems = 1024;                  // the module's list_limit
constexpr uint64_t kMostUdmabuf = uint64_t{64} << 20;  // and its size_limit_mb

/// The items of an ioctl, read one by one: there may be 24 KiB of them.
struct Items {
  uint32_t count;
  uint64_t address;  ///< of the list in the caller's memory; 0: the one below
  UdmabufItem single;

  bool read(uint32_t i, UdmabufItem* out) const {
    if (address) return copy_from_user(out, address + i * sizeof(*out), sizeof(*out));
    *out = single;
    return true;
  }
};

/// [K] drivers/dma-buf/udmabuf.c, udmabuf_create: what is checked before any memfd is looked at.
int check_sizes(const Items& items) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < items.count; ++i) {
    UdmabufItem item;
    if (!items.read(i, &item)) return -EFAULT;
    if (item.offset % raw::kPage || item.size % raw::kPage) return -EINVAL;
    if (item.size > kMostUdmabuf || (bytes += item.size) > kMostUdmabuf) return -EINVAL;
  }
  return bytes ? 0 : -EINVAL;
}

/// The same file's check_memfd_seals, and memfd_pin_folios. @param st  of the memfd
int check_memfd(int memfd, const UdmabufItem& item, struct stat* st, long* seals) {
  if (memfd < 0 || raw::fstat(memfd, st) < 0) return -EBADFD;
  *seals = raw::fcntl(memfd, F_GET_SEALS, 0);
  if (*seals < 0) return -EBADFD;
  if (!(*seals & F_SEAL_SHRINK) || *seals & F_SEAL_WRITE) return -EINVAL;
  const auto size = static_cast<uint64_t>(st->st_size);
  return item.offset > size || item.size > size - item.offset ? -EINVAL : 0;
}

int refuse(const char* what) {
  static std::atomic<bool> told{false};
  if (!told.exchange(true)) complain("/dev/udmabuf: not implemented: ", what);
  return -EOPNOTSUPP;
}

/// What was checked, if it is memory as the daemon takes it: a memfd from its start to its end, which keeps
/// its size from now on.
int share_memfd(int memfd, bool whole, long seals, bool close_on_exec) {
  if (!whole) return refuse("a part of a memfd, or several of them, as one buffer");
  struct statfs system;
  if (raw::fstatfs(memfd, &system) < 0 || system.f_type != TMPFS_MAGIC) return refuse("memory of huge pages");
  if (seals & F_SEAL_FUTURE_WRITE)
    return refuse("a memfd that is sealed against writing (F_SEAL_FUTURE_WRITE)");
  if ((seals & kSeals) != kSeals && raw::fcntl(memfd, F_ADD_SEALS, kSeals) < 0)
    return refuse("a memfd that may grow and takes no further seals");
  if (const int error = find_daemon(); error < 0) return error;
  const int fd = open_again(memfd, O_RDWR);
  return fd < 0 ? refuse("a memfd that cannot be opened for writing") : give_descriptor(fd, close_on_exec);
}

int create(const Items& items, uint32_t flags) {
  if (const int error = check_sizes(items); error < 0) return error;
  struct stat first = {}, st;
  uint64_t end = 0;
  bool whole = true;
  int memfd = -1;
  long seals = 0;
  for (uint32_t i = 0; i < items.count; ++i) {
    UdmabufItem item;
    if (!items.read(i, &item)) return -EFAULT;
    memfd = find_descriptor(static_cast<int>(item.memfd));
    if (const int error = check_memfd(memfd, item, &st, &seals); error < 0) return error;
    if (i == 0) first = st;
    whole &= item.offset == end && st.st_ino == first.st_ino && st.st_dev == first.st_dev;
    end += item.size;
  }
  whole &= end == static_cast<uint64_t>(first.st_size);
  return share_memfd(memfd, whole, seals, flags & kCloseOnExecFlag);
}

}  // namespace

int heap_ioctl(uint32_t request, uint64_t argument) {
  if (request != kHeapAlloc) return -ENOTTY;
  HeapAllocation allocation;
  if (!copy_from_user(&allocation, argument, sizeof(allocation))) return -EFAULT;
  const int error = allocate(&allocation);
  if (error == 0 && !copy_to_user(argument, &allocation, sizeof(allocation))) {
    withdraw_descriptor(static_cast<int>(allocation.fd));
    return -EFAULT;
  }
  return error;
}

int udmabuf_ioctl(uint32_t request, uint64_t argument) {
  if (request == kUdmabufCreate) {
    UdmabufCreate one;
    if (!copy_from_user(&one, argument, sizeof(one))) return -EFAULT;
    return create({1, 0, {one.memfd, 0, one.offset, one.size}}, one.flags);
  }
  if (request != kUdmabufCreateList) return -ENOTTY;
  UdmabufCreateList list;
  if (!copy_from_user(&list, argument, sizeof(list))) return -EFAULT;
  if (list.count > kMostItems) return -EINVAL;
  return create({list.count, argument + sizeof(list), {}}, list.flags);
}

}  // namespace v3d::shim
