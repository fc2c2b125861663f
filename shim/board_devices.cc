#include "shim/board_devices.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "ioctl/wire.h"
#include "shim/drm_ioctl.h"
#include "shim/files.h"
#include "shim/paths.h"
#include "shim/raw.h"
#include "shim/user_descriptors.h"
#include "shim/user_memory.h"

namespace v3d::shim {
namespace {

constexpr char kHeapName[] = "v3demu-dma-heap";

/// [K] include/uapi/linux/dma-heap.h
constexpr uint32_t kHeapAlloc = 0xc0184800;
struct HeapAllocation {
  uint64_t len;
  uint32_t fd, fd_flags;
  uint64_t heap_flags;
};

constexpr uint32_t kCreateBo = 0xc0106442, kHandleToFd = 0xc00c642d, kGemClose = 0x40086409;
constexpr uint64_t kPage = 4096, kMostBytes = 0xfffff000;

/// An exported BO, which lives on when the file is closed that made it. A descriptor or a negative errno.
int export_bo(const File& file, uint64_t bytes, uint32_t fd_flags) {
  struct {
    uint32_t size, flags, handle, offset;
  } create = {static_cast<uint32_t>(bytes), 0, 0, 0};
  int error = forward_ioctl(file, kCreateBo, reinterpret_cast<uint64_t>(&create));
  if (error) return error;
  struct {
    uint32_t handle, flags;
    int32_t fd;
  } give = {create.handle, fd_flags & uint32_t{O_CLOEXEC | O_RDWR}, -1};
  error = forward_ioctl(file, kHandleToFd, reinterpret_cast<uint64_t>(&give));
  uint32_t close[2] = {create.handle, 0};
  forward_ioctl(file, kGemClose, reinterpret_cast<uint64_t>(close));
  return error ? error : give.fd;
}

/// [K] drivers/dma-buf/dma-heap.c, dma_heap_ioctl_allocate: 0 or a negative errno.
int allocate(HeapAllocation* a) {
  if (a->fd || a->fd_flags & ~uint32_t{O_CLOEXEC | O_ACCMODE} || a->heap_flags) return -EINVAL;
  if (a->len == 0) return -EINVAL;
  if (a->len > kMostBytes) return -ENOMEM;
  const int node = open_file(wire::kFirstRenderMinor, O_RDWR | O_CLOEXEC);
  if (node < 0) return node;
  File file;
  int fd =
      find_file(node, &file) ? export_bo(file, (a->len + kPage - 1) / kPage * kPage, a->fd_flags) : -ENODEV;
  raw::close(node);
  if (fd < 0) return fd;
  a->fd = static_cast<uint32_t>(fd);
  return 0;
}

bool is_heap(int fd) {
  Path name;
  descriptor_path(fd, &name);
  constexpr char kMemory[] = "/memfd:";
  return starts_with(name.c_str(), kMemory) && starts_with(name.c_str() + sizeof(kMemory) - 1, kHeapName);
}

}  // namespace

int open_board_device(const char* path, int flags) {
  if (!is_beneath(path, kHeapFolder)) return -ENXIO;
  const char* name = path + sizeof(kHeapFolder) - 1;
  for (const char* heap : kHeaps) {
    if (*name != '/' || strcmp(name + 1, heap) != 0) continue;
    if (flags & O_DIRECTORY) return -ENOTDIR;
    if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL)) return -EEXIST;
    return static_cast<int>(
        raw::call(SYS_memfd_create, raw::word(kHeapName), flags & O_CLOEXEC ? MFD_CLOEXEC : 0));
  }
  return -ENXIO;
}

bool heap_ioctl(int fd, uint32_t request, uint64_t argument, int* result) {
  if (request != kHeapAlloc || !is_heap(fd)) return false;
  HeapAllocation allocation;
  if (!copy_from_user(&allocation, argument, sizeof(allocation))) {
    *result = -EFAULT;
    return true;
  }
  *result = allocate(&allocation);
  if (*result == 0 && !copy_to_user(argument, &allocation, sizeof(allocation))) {
    withdraw_descriptor(static_cast<int>(allocation.fd));
    *result = -EFAULT;
  }
  return true;
}

}  // namespace v3d::shim
