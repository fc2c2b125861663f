/// This is the kernel's interface to V3D as far as v3dprobe needs it. The structures are those of Linux
/// include/uapi/drm/drm.h and v3d_drm.h, written out because boards often lack these headers;
/// tests/tools/board_layout.c compares them.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct version_args {
  int major, minor, patch;
  size_t name_length;
  char* name;
  size_t date_length;
  char* date;
  size_t description_length;
  char* description;
};
struct submit_cl_args {
  uint32_t bcl_start, bcl_end, rcl_start, rcl_end, in_sync_bcl, in_sync_rcl, out_sync;
  uint32_t qma, qms, qts;
  uint64_t bo_handles;
  uint32_t bo_handle_count, flags, perfmon_id, pad;
  uint64_t extensions;
};
struct wait_bo_args {
  uint32_t handle, pad;
  uint64_t timeout_ns;
};
struct create_bo_args {
  uint32_t size, flags, handle, offset;
};
struct mmap_bo_args {
  uint32_t handle, flags;
  uint64_t offset;
};
struct get_param_args {
  uint32_t param, pad;
  uint64_t value;
};
struct submit_tfu_args {
  uint32_t icfg, iia, iis, ica, iua, ioa, ios, coef[4], bo_handles[4], in_sync, out_sync, flags;
  uint64_t extensions;
  uint32_t ioc, pad;
};
struct submit_csd_args {
  uint32_t cfg[7], coef[4];
  uint64_t bo_handles;
  uint32_t bo_handle_count, in_sync, out_sync, perfmon_id;
  uint64_t extensions;
  uint32_t flags, pad;
};

#define IOCTL_VERSION _IOWR('d', 0x00, struct version_args)
#define IOCTL_SUBMIT_CL _IOWR('d', 0x40, struct submit_cl_args)
#define IOCTL_WAIT_BO _IOWR('d', 0x41, struct wait_bo_args)
#define IOCTL_CREATE_BO _IOWR('d', 0x42, struct create_bo_args)
#define IOCTL_MMAP_BO _IOWR('d', 0x43, struct mmap_bo_args)
#define IOCTL_GET_PARAM _IOWR('d', 0x44, struct get_param_args)
#define IOCTL_SUBMIT_TFU _IOW('d', 0x46, struct submit_tfu_args)
#define IOCTL_SUBMIT_CSD _IOW('d', 0x47, struct submit_csd_args)

/// Of GET_PARAM: UIFCFG, HUB_IDENT1 to 3, CORE0_IDENT0 to 2.
enum { UIFCFG, HUB_IDENT1, HUB_IDENT2, HUB_IDENT3, CORE0_IDENT0, CORE0_IDENT1, CORE0_IDENT2, NUM_IDENTS };

struct device {
  int fd;
  char node[64];
  uint32_t idents[NUM_IDENTS];
  uint32_t version, revision;  ///< 71 or 42
  uint32_t slices, qpus;
};

struct bo {
  uint32_t handle, address, size;
  uint8_t* map;
};

/// Ends the program with a message.
static inline _Noreturn void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("v3dprobe: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(1);
}

static inline int call(int fd, unsigned long request, void* argument) {
  int result;
  do result = ioctl(fd, request, argument);
  while (result != 0 && (errno == EINTR || errno == EAGAIN));
  return result;
}

static inline double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/// Whether the node is of V3D.
static inline bool open_node(const char* node, struct device* d) {
  d->fd = open(node, O_RDWR | O_CLOEXEC);
  if (d->fd < 0) return false;
  char name[16] = "";
  struct version_args version = {.name_length = sizeof name - 1, .name = name};
  if (call(d->fd, IOCTL_VERSION, &version) == 0 && strcmp(name, "v3d") == 0) {
    snprintf(d->node, sizeof d->node, "%s", node);
    return true;
  }
  close(d->fd);
  return false;
}

/// @param node  null: the first that is of V3D
static inline struct device open_device(const char* node) {
  struct device d = {.fd = -1};
  bool found = node && open_node(node, &d);
  for (int number = 128; !node && !found && number < 192; ++number) {
    char path[64];
    snprintf(path, sizeof path, "/dev/dri/renderD%d", number);
    found = open_node(path, &d);
  }
  if (!found) fail("%s a V3D that you may open", node ? "this node is not" : "none of /dev/dri/renderD* is");
  for (uint32_t i = 0; i < NUM_IDENTS; ++i) {
    struct get_param_args get = {.param = i};
    if (call(d.fd, IOCTL_GET_PARAM, &get) != 0) fail("GET_PARAM %u: %s", i, strerror(errno));
    d.idents[i] = (uint32_t)get.value;
  }
  const uint32_t ident1 = d.idents[CORE0_IDENT1];
  d.version = (d.idents[CORE0_IDENT0] >> 24) * 10 + (ident1 & 15);
  d.revision = d.idents[HUB_IDENT3] >> 8 & 255;
  d.slices = ident1 >> 4 & 15;
  d.qpus = d.slices * (ident1 >> 8 & 15);
  if (d.version != 71 && d.version != 42) fail("V3D %u.%u is not known", d.version / 10, d.version % 10);
  if (d.qpus == 0 || d.qpus > 16) fail("%u QPUs are not expected", d.qpus);
  return d;
}

static inline struct bo make_bo(const struct device* d, uint32_t size) {
  struct create_bo_args create = {.size = size};
  if (call(d->fd, IOCTL_CREATE_BO, &create) != 0) fail("a buffer of %u bytes: %s", size, strerror(errno));
  struct mmap_bo_args mapping = {.handle = create.handle};
  if (call(d->fd, IOCTL_MMAP_BO, &mapping) != 0) fail("MMAP_BO: %s", strerror(errno));
  void* map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, d->fd, (off_t)mapping.offset);
  if (map == MAP_FAILED) fail("mmap: %s", strerror(errno));
  return (struct bo){create.handle, create.offset, size, map};
}

static inline void wait_bo(const struct device* d, const struct bo* bo) {
  struct wait_bo_args wait = {.handle = bo->handle, .timeout_ns = 600000000000u};
  if (call(d->fd, IOCTL_WAIT_BO, &wait) != 0) fail("a job does not end: %s", strerror(errno));
}
