/* What 32-bit programs do: built with short offsets, with long ones, and with long times as well, as libc has
 * functions and structures for each. Ends with the number of the line that expected something else. */
#include <dirent.h>
#include <drm/drm.h>
#include <drm/v3d_drm.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <linux/fb.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define RENDER "/dev/dri/renderD128"
#define EXPECT(condition)                                                       \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "line %d: %s (errno %d)\n", __LINE__, #condition, errno); \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

static const unsigned kBytes = 8192;

static int is_render_node(const struct stat* st) {
  return S_ISCHR(st->st_mode) && major(st->st_rdev) == 226 && minor(st->st_rdev) == 128 && st->st_size == 0;
}

/* Not with short offsets, which the positions in some file systems' folders exceed: libc's answer is
 * EOVERFLOW under qemu. */
#if defined(_FILE_OFFSET_BITS)
static unsigned visited;
static int visit(const char* path, const struct stat* st, int kind, struct FTW* place) {
  visited += strcmp(path, RENDER) == 0 && is_render_node(st) && kind == FTW_F && place->base == 9;
  return 0;
}

static int is_node(const struct dirent* entry) { return entry->d_type == DT_CHR; }

static void list_folders(ino_t inode) {
  struct dirent** list = NULL;
  const int count = scandir("/dev/dri", &list, is_node, alphasort);
  EXPECT(count >= 2 && strcmp(list[count - 1]->d_name, "renderD128") == 0 && list[count - 1]->d_ino == inode);
  for (int i = 0; i < count; ++i) free(list[i]);
  free(list);
  DIR* folder = opendir("/dev/dri");
  EXPECT(folder);
  int nodes = 0;
  for (const struct dirent* entry; (entry = readdir(folder)) != NULL;) nodes += is_node(entry);
  closedir(folder);
  EXPECT(nodes == count);

  EXPECT(nftw("/dev/dri", visit, 4, FTW_PHYS) == 0 && visited == 1);
  glob_t found = {0};
  EXPECT(glob("/dev/dri/render*", 0, NULL, &found) == 0 && found.gl_pathc == 1);
  EXPECT(strcmp(found.gl_pathv[0], RENDER) == 0);
  globfree(&found);
}
#else
static void list_folders(ino_t inode) { EXPECT(inode != 0); }
#endif

static void look_at_files(int fd) {
  struct stat st;
  EXPECT(stat(RENDER, &st) == 0 && is_render_node(&st));
  const ino_t inode = st.st_ino;
  EXPECT(lstat(RENDER, &st) == 0 && is_render_node(&st) && st.st_ino == inode);
  EXPECT(fstatat(AT_FDCWD, RENDER, &st, 0) == 0 && is_render_node(&st));
  EXPECT(fstat(fd, &st) == 0 && is_render_node(&st));
  list_folders(inode);
  /* A plain file keeps what is its own. */
  EXPECT(stat("/proc/self/exe", &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 1000 &&
         st.st_mtime > 1600000000);

  struct statfs system;
  EXPECT(statfs("/sys/class/drm", &system) == 0 && system.f_type == 0x62656572); /* SYSFS_MAGIC */
  FILE* text = fopen("/sys/class/drm/renderD128/uevent", "r");
  char line[80] = "";
  EXPECT(text && fgets(line, sizeof line, text) && strcmp(line, "MAJOR=226\n") == 0);
  fclose(text);
}

/* Arguments with a size, a pointer or a long in them are shorter than those of 64-bit programs. */
static void make_short_calls(int fd) {
  char name[8] = "", date[32];
  struct drm_version version = {.name_len = sizeof name, .name = name, .date_len = sizeof date, .date = date};
  EXPECT(ioctl(fd, DRM_IOCTL_VERSION, &version) == 0 && version.name_len == 3 && strcmp(name, "v3d") == 0);
  EXPECT(version.desc_len > 3 && version.desc == NULL && version.version_major == 1);

  const int card = open("/dev/dri/card0", O_RDWR | O_CLOEXEC);
  EXPECT(card >= 0);
  char unique[64] = "";
  struct drm_unique bus = {sizeof unique, unique};
  EXPECT(ioctl(card, DRM_IOCTL_GET_UNIQUE, &bus) == 0 && bus.unique_len < sizeof unique);
  struct drm_client client = {.idx = 0};
  EXPECT(ioctl(card, DRM_IOCTL_GET_CLIENT, &client) == 0 && client.uid == 65534 && client.magic == 0);
  struct drm_stats stats;
  memset(&stats, 0x55, sizeof stats);
  EXPECT(ioctl(card, DRM_IOCTL_GET_STATS, &stats) == 0 && stats.count == 0 && stats.data[14].value == 0);
  close(card);
  const int display = open("/dev/dri/card1", O_RDWR | O_CLOEXEC);
  EXPECT(display >= 0);
  union drm_wait_vblank vblank = {.request = {.type = _DRM_VBLANK_RELATIVE, .sequence = 1}};
  if (ioctl(display, DRM_IOCTL_WAIT_VBLANK, &vblank) == 0) /* else nothing is shown */
    EXPECT(vblank.reply.tval_sec > 0 && vblank.reply.tval_usec < 1000000);
  else
    EXPECT(errno == EINVAL);
  close(display);

  const int screen = open("/dev/fb0", O_RDWR | O_CLOEXEC);
  EXPECT(screen >= 0);
  struct fb_fix_screeninfo fixed;
  memset(&fixed, 0x55, sizeof fixed);
  struct fb_var_screeninfo varying;
  EXPECT(ioctl(screen, FBIOGET_FSCREENINFO, &fixed) == 0 &&
         ioctl(screen, FBIOGET_VSCREENINFO, &varying) == 0);
  EXPECT(fixed.line_length >= varying.xres * varying.bits_per_pixel / 8 && fixed.mmio_len == 0);
  EXPECT(fixed.smem_len >= fixed.line_length * varying.yres);
  uint16_t red[4] = {1, 2, 3, 4}, green[4] = {0}, blue[4] = {0};
  struct fb_cmap colors = {0, 4, red, green, blue, NULL};
  EXPECT(ioctl(screen, FBIOGETCMAP, &colors) == 0 || errno == EINVAL);
  close(screen);

  const int mailbox = open("/dev/vcio", O_RDWR | O_CLOEXEC);
  EXPECT(mailbox >= 0);
  uint32_t revision[] = {28, 0, 0x10002, 4, 0, 0, 0};
  EXPECT(ioctl(mailbox, _IOWR(100, 0, char*), revision) == 0 && revision[1] == 0x80000000u &&
         revision[5] != 0);
  close(mailbox);
}

static void* map_bo(int fd, uint64_t offset) {
#if defined(_FILE_OFFSET_BITS)
  return mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
#else
  return mmap64(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off64_t)offset);
#endif
}

static void use_memory(int fd) {
  struct drm_v3d_create_bo create = {.size = kBytes};
  EXPECT(ioctl(fd, DRM_IOCTL_V3D_CREATE_BO, &create) == 0 && create.handle != 0);
  struct drm_v3d_mmap_bo place = {.handle = create.handle};
  EXPECT(syscall(SYS_ioctl, fd, DRM_IOCTL_V3D_MMAP_BO, &place) == 0 && place.offset >= 1ull << 32);
  uint32_t* words = map_bo(fd, place.offset);
  EXPECT(words != MAP_FAILED);
  memset(words, 0x5a, kBytes);
  const long second =
      syscall(SYS_mmap2, NULL, kBytes / 2, PROT_READ, MAP_SHARED, fd, (uint32_t)(place.offset / 4096));
  EXPECT(second != -1 && memcmp((const void*)second, words, kBytes / 2) == 0);
  words[5] = 7;
  EXPECT(((const volatile uint32_t*)second)[5] == 7);
  EXPECT(munmap((void*)second, kBytes / 2) == 0 && munmap(words, kBytes) == 0);
  EXPECT(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EINVAL);

  struct drm_prime_handle shared = {.handle = create.handle, .flags = DRM_CLOEXEC | DRM_RDWR};
  EXPECT(ioctl(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &shared) == 0);
  struct pollfd ready = {shared.fd, POLLIN | POLLOUT, 0};
  const struct timespec patience = {5, 0};
  EXPECT(ppoll(&ready, 1, &patience, NULL) == 1 && ready.revents == (POLLIN | POLLOUT));
  EXPECT(lseek(shared.fd, 0, SEEK_END) == (off_t)kBytes && close(shared.fd) == 0);

  struct drm_gem_close done = {.handle = create.handle};
  EXPECT(ioctl(fd, DRM_IOCTL_GEM_CLOSE, &done) == 0);
  EXPECT(ioctl(fd, DRM_IOCTL_GEM_CLOSE, &done) == -1 && errno == EINVAL);
}

static void wait_for_nothing(int fd) {
  uint32_t handle = 1;
  struct drm_syncobj_create create = {.flags = DRM_SYNCOBJ_CREATE_SIGNALED};
  EXPECT(ioctl(fd, DRM_IOCTL_SYNCOBJ_CREATE, &create) == 0);
  handle = create.handle;
  struct drm_syncobj_wait wait = {.handles = (uintptr_t)&handle, .count_handles = 1};
  EXPECT(ioctl(fd, DRM_IOCTL_SYNCOBJ_WAIT, &wait) == 0);
  /* No address of this program. */
  wait.handles |= 1ull << 32;
  EXPECT(ioctl(fd, DRM_IOCTL_SYNCOBJ_WAIT, &wait) == -1 && errno == EFAULT);
  struct drm_v3d_get_param param = {.param = DRM_V3D_PARAM_SUPPORTS_CSD};
  EXPECT(ioctl(fd, DRM_IOCTL_V3D_GET_PARAM, &param) == 0 && param.value == 1);
}

int main(void) {
  EXPECT(syscall(SYS_getpid) == getpid() && syscall(SYS_close, -1) == -1 && errno == EBADF);
  const int fd = open(RENDER, O_RDWR | O_CLOEXEC);
  EXPECT(fd >= 0);
  look_at_files(fd);
  make_short_calls(fd);
  use_memory(fd);
  wait_for_nothing(fd);
  printf("all as expected\n");
  return 0;
}
