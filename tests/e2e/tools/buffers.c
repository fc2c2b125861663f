/// What a program does with the driver, for tools that run programs: buffers from two threads, often enough
/// that requests take every path of the preload library.
#include <drm.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct create_bo {
  uint32_t size, flags, handle, offset;
};
struct mmap_bo {
  uint32_t handle, flags;
  uint64_t offset;
};

static void die(const char* what) {
  perror(what);
  exit(1);
}

static void* use_buffers(void* node) {
  const int fd = *(const int*)node;
  for (unsigned i = 0; i < 40; ++i) {
    struct create_bo bo = {.size = 8192};
    if (ioctl(fd, _IOWR('d', 0x42, struct create_bo), &bo) != 0) die("CREATE_BO");
    struct mmap_bo place = {.handle = bo.handle};
    if (ioctl(fd, _IOWR('d', 0x43, struct mmap_bo), &place) != 0) die("MMAP_BO");
    unsigned char* memory = mmap(NULL, bo.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)place.offset);
    if (memory == MAP_FAILED) die("mmap");
    memset(memory, (int)i, bo.size);
    if (memory[bo.size - 1] != i) die("what was written");
    munmap(memory, bo.size);
    struct drm_gem_close close_bo = {.handle = bo.handle};
    if (ioctl(fd, DRM_IOCTL_GEM_CLOSE, &close_bo) != 0) die("GEM_CLOSE");
  }
  return NULL;
}

int main(void) {
  struct stat node;
  if (stat("/dev/dri/renderD128", &node) != 0 || !S_ISCHR(node.st_mode)) die("the node");
  int fd = open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
  if (fd < 0) die("open");
  pthread_t thread;
  if (pthread_create(&thread, NULL, use_buffers, &fd) != 0) die("pthread_create");
  use_buffers(&fd);
  pthread_join(thread, NULL);
  close(fd);
  puts("fine");
  return 0;
}
