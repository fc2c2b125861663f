/// Memory of dma-buf heaps.

#include <dirent.h>
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xf86drm.h>

#include <cerrno>
#include <set>
#include <string>

#include "tests/shim/client.h"

using namespace client;

namespace {

constexpr uint64_t kBytes = 5000;
constexpr char kSystem[] = "/dev/dma_heap/system";

std::set<std::string> entries(const char* path) {
  std::set<std::string> names;
  DIR* folder = opendir(path);
  CHECK(folder);
  while (const dirent* entry = readdir(folder)) names.insert(entry->d_name);
  closedir(folder);
  return names;
}

/// A descriptor or a negative errno.
int allocate(const char* heap, dma_heap_allocation_data a) {
  const int node = open(heap, O_RDWR | O_CLOEXEC);
  CHECK(node >= 0);
  const int result = ioctl(node, DMA_HEAP_IOCTL_ALLOC, &a) < 0 ? -errno : static_cast<int>(a.fd);
  close(node);
  return result;
}

}  // namespace

SCENARIO(dma_heaps) {
  CHECK(entries("/dev/dma_heap") ==
        (std::set<std::string>{".", "..", "system", "linux,cma", "vidbuf_cached"}));
  const int render = open("/dev/dri/renderD128", O_RDWR);
  for (const char* heap : {kSystem, "/dev/dma_heap/linux,cma", "/dev/dma_heap/vidbuf_cached"}) {
    const int fd = allocate(heap, {.len = kBytes, .fd = 0, .fd_flags = O_RDWR | O_CLOEXEC, .heap_flags = 0});
    CHECK(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
    CHECK_EQ(lseek(fd, 0, SEEK_END), off_t{8192});
    auto* memory = static_cast<char*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    CHECK(memory != MAP_FAILED && memory[8191] == 0);
    uint32_t handle = 0;
    CHECK_EQ(drmPrimeFDToHandle(render, fd, &handle), 0);
    CHECK(handle != 0);
    close(fd);
  }
  CHECK_EQ(allocate(kSystem, {.len = 0, .fd = 0, .fd_flags = O_RDWR, .heap_flags = 0}), -EINVAL);
  CHECK_EQ(allocate(kSystem, {.len = kBytes, .fd = 0, .fd_flags = O_RDWR | O_NONBLOCK, .heap_flags = 0}),
           -EINVAL);
  CHECK_EQ(allocate(kSystem, {.len = kBytes, .fd = 0, .fd_flags = O_RDWR, .heap_flags = 1}), -EINVAL);
  CHECK_EQ(allocate(kSystem, {.len = kBytes, .fd = 1, .fd_flags = O_RDWR, .heap_flags = 0}), -EINVAL);
  CHECK_EQ(allocate(kSystem, {.len = uint64_t{1} << 40, .fd = 0, .fd_flags = O_RDWR, .heap_flags = 0}),
           -ENOMEM);
  const int node = open(kSystem, O_RDWR);
  CHECK_ERRNO(ioctl(node, DMA_HEAP_IOCTL_ALLOC, nullptr), EFAULT);
  CHECK_ERRNO(ioctl(node, DRM_IOCTL_VERSION, nullptr), ENOTTY);
  CHECK_ERRNO(ioctl(render, DMA_HEAP_IOCTL_ALLOC, nullptr), ENOTTY);
  CHECK_ERRNO(open("/dev/dma_heap/reserved", O_RDWR), ENOENT);
}
