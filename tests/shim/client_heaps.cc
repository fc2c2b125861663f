/// dma-bufs of heaps and of udmabuf.

#include <dirent.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xf86drm.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <string>
#include <vector>

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

constexpr char kUdmabuf[] = "/dev/udmabuf";
constexpr uint64_t kPage = 4096;

/// A memfd of that many pages. @param seals  0: it takes none
int memfd_of(uint64_t pages, int seals) {
  const int fd = memfd_create("client", MFD_CLOEXEC | (seals ? MFD_ALLOW_SEALING : 0));
  CHECK_EQ(ftruncate(fd, static_cast<off_t>(pages * kPage)), 0);
  if (seals) CHECK_EQ(fcntl(fd, F_ADD_SEALS, seals), 0);
  return fd;
}

/// A descriptor or a negative errno.
int udmabuf_of(int memfd, uint64_t offset, uint64_t size, uint32_t flags = UDMABUF_FLAGS_CLOEXEC) {
  const int node = open(kUdmabuf, O_RDWR | O_CLOEXEC);
  udmabuf_create create = {static_cast<uint32_t>(memfd), flags, offset, size};
  const int fd = ioctl(node, UDMABUF_CREATE, &create), error = errno;
  close(node);
  return fd < 0 ? -error : fd;
}

int udmabuf_of(const std::vector<udmabuf_create_item>& items) {
  const int node = open(kUdmabuf, O_RDWR | O_CLOEXEC);
  std::vector<uint8_t> list(sizeof(udmabuf_create_list) + items.size() * sizeof(udmabuf_create_item));
  const udmabuf_create_list head = {0, static_cast<uint32_t>(items.size())};
  memcpy(list.data(), &head, sizeof(udmabuf_create_list));
  if (!items.empty())
    memcpy(list.data() + sizeof(udmabuf_create_list), items.data(), items.size() * sizeof(items[0]));
  const int fd = ioctl(node, UDMABUF_CREATE_LIST, list.data()), error = errno;
  close(node);
  return fd < 0 ? -error : fd;
}

}  // namespace

/// What the client writes to its memfd the GPU's BO has, and the other way round.
SCENARIO(udmabufs) {
  const int memfd = memfd_of(2, F_SEAL_SHRINK);
  const int fd = udmabuf_of(memfd, 0, 2 * kPage);
  CHECK(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
  CHECK_EQ(lseek(fd, 0, SEEK_END), off_t{8192});
  CHECK_EQ(lseek(memfd, 0, SEEK_CUR), off_t{0});  // a file of its own
  const int render = open("/dev/dri/renderD128", O_RDWR);
  uint32_t handle = 0;
  CHECK_EQ(drmPrimeFDToHandle(render, fd, &handle), 0);
  auto* bo = static_cast<char*>(map_bo(render, handle, 8192));
  CHECK(bo != MAP_FAILED);
  CHECK_EQ(pwrite(memfd, "from the client", 16, 4096), ssize_t{16});
  CHECK_EQ(std::string(bo + 4096), "from the client");
  strcpy(bo, "from the GPU");
  char text[16] = {};
  CHECK_EQ(pread(memfd, text, 13, 0), ssize_t{13});
  CHECK_EQ(std::string(text), "from the GPU");
  dma_buf_sync sync = {.flags = DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ};
  CHECK_EQ(ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync), 0);
  const int open_in_children = udmabuf_of(memfd, 0, 2 * kPage, 0);
  CHECK_EQ(fcntl(open_in_children, F_GETFD), 0);
  const auto number = static_cast<uint32_t>(memfd);
  CHECK(udmabuf_of({{number, 0, 0, kPage}, {number, 0, kPage, kPage}}) >= 0);  // all of it in two pieces
}

/// The kernel's checks, in its order.
SCENARIO(udmabuf_errors) {
  const int memfd = memfd_of(4, F_SEAL_SHRINK);
  CHECK_EQ(udmabuf_of(-1, 1, kPage), -EINVAL);
  CHECK_EQ(udmabuf_of(-1, 0, kPage + 1), -EINVAL);
  CHECK_EQ(udmabuf_of(-1, 0, 0), -EINVAL);
  CHECK_EQ(udmabuf_of(-1, 0, (64u << 20) + kPage), -EINVAL);
  CHECK_EQ(udmabuf_of(-1, 0, kPage), -EBADFD);
  CHECK_EQ(udmabuf_of(open("/dev/null", O_RDWR), 0, kPage), -EBADFD);
  CHECK_EQ(udmabuf_of(memfd_of(1, 0), 0, kPage), -EINVAL);
  CHECK_EQ(udmabuf_of(memfd_of(1, F_SEAL_GROW), 0, kPage), -EINVAL);
  CHECK_EQ(udmabuf_of(memfd_of(1, F_SEAL_SHRINK | F_SEAL_WRITE), 0, kPage), -EINVAL);
  CHECK_EQ(udmabuf_of(memfd, 0, 5 * kPage), -EINVAL);
  CHECK_EQ(udmabuf_of(std::vector<udmabuf_create_item>{}), -EINVAL);
  CHECK_EQ(udmabuf_of(std::vector<udmabuf_create_item>(1025)), -EINVAL);
  const int node = open(kUdmabuf, O_RDWR);
  CHECK_ERRNO(ioctl(node, UDMABUF_CREATE, nullptr), EFAULT);
  CHECK_ERRNO(ioctl(node, DMA_HEAP_IOCTL_ALLOC, nullptr), ENOTTY);
  CHECK_ERRNO(ioctl(memfd, UDMABUF_CREATE, nullptr), ENOTTY);

  // What a board can do and this cannot; it says so in a line.
  CHECK_EQ(udmabuf_of(memfd, kPage, kPage), -EOPNOTSUPP);
  CHECK_EQ(udmabuf_of(memfd_of(1, F_SEAL_SHRINK | F_SEAL_SEAL), 0, kPage), -EOPNOTSUPP);
}

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
    dma_buf_sync sync = {.flags = DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW};
    CHECK_EQ(ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync), 0);
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
