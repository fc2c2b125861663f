/// A statically linked client of a render node that makes system calls by number: what `v3demu run --seccomp`
/// is for. Each test prints its name when it holds; the first that does not ends the program.
///
/// usage: raw_client NODE TEST...

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <linux/fb.h>
#include <linux/ioctl.h>
#include <linux/stat.h>
#include <linux/udmabuf.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

// Linux include/uapi/drm/v3d_drm.h and drm.h.
struct create_bo {
  uint32_t size, flags, handle, offset;
};
struct mmap_bo {
  uint32_t handle, flags;
  uint64_t offset;
};
struct get_param {
  uint32_t param, pad;
  uint64_t value;
};
struct gem_close {
  uint32_t handle, pad;
};
struct prime {
  uint32_t handle, flags;
  int32_t fd;
};
struct syncobj {
  uint32_t handle, flags;
};
struct syncobj_array {
  uint64_t handles;
  uint32_t count, flags;
};
struct syncobj_wait {
  uint64_t handles;
  int64_t timeout;
  uint32_t count, flags, first, pad;
};
#define CREATE_BO _IOWR('d', 0x42, struct create_bo)
#define MMAP_BO _IOWR('d', 0x43, struct mmap_bo)
#define GET_PARAM _IOWR('d', 0x44, struct get_param)
#define GEM_CLOSE _IOW('d', 0x09, struct gem_close)
#define HANDLE_TO_FD _IOWR('d', 0x2d, struct prime)
#define FD_TO_HANDLE _IOWR('d', 0x2e, struct prime)
#define SYNCOBJ_CREATE _IOWR('d', 0xbf, struct syncobj)
#define SYNCOBJ_WAIT _IOWR('d', 0xc3, struct syncobj_wait)
#define SYNCOBJ_SIGNAL _IOWR('d', 0xc5, struct syncobj_array)
enum { WAIT_FOR_SUBMIT = 2, CHIP_PARAM = 4 };

static const char* node;

#define REQUIRE(condition)                                                                  \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, strerror(errno)); \
      _exit(1);                                                                             \
    }                                                                                       \
  } while (0)

static int call(int fd, unsigned long request, void* argument) {
  long result;
  do result = syscall(SYS_ioctl, fd, request, argument);
  while (result < 0 && errno == EINTR);
  return (int)result;
}

static int open_node(void) {
  int fd = (int)syscall(SYS_openat, AT_FDCWD, node, O_RDWR | O_CLOEXEC, 0);
  REQUIRE(fd >= 0);
  return fd;
}

static uint32_t make_bo(int fd, uint32_t size) {
  struct create_bo bo = {.size = size};
  REQUIRE(call(fd, CREATE_BO, &bo) == 0);
  return bo.handle;
}

static uint32_t* map_bo(int fd, uint32_t handle, size_t size) {
  struct mmap_bo bo = {.handle = handle};
  REQUIRE(call(fd, MMAP_BO, &bo) == 0);
  void* memory = (void*)syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, bo.offset);
  REQUIRE(memory != MAP_FAILED);
  return memory;
}

static void close_bo(int fd, uint32_t handle) {
  struct gem_close bo = {.handle = handle};
  REQUIRE(call(fd, GEM_CLOSE, &bo) == 0);
}

static bool is_v3d(int fd) {
  struct get_param param = {.param = CHIP_PARAM};
  return call(fd, GET_PARAM, &param) == 0 && (param.value & 0xffffff) == 0x443356;  // "V3D"
}

/// Through duplicates and in children the file is what it is, and looks like its node.
static void test_identity(void) {
  int fd = open_node(), other = dup(fd);
  struct stat st;
  REQUIRE(syscall(SYS_fstat, other, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(226, 128));
  REQUIRE(syscall(SYS_newfstatat, other, "", &st, AT_EMPTY_PATH) == 0 && major(st.st_rdev) == 226);
  struct statx extended;
  REQUIRE(syscall(SYS_statx, other, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &extended) == 0);
  REQUIRE(extended.stx_rdev_major == 226 && extended.stx_rdev_minor == 128);
  REQUIRE(is_v3d(fd) && is_v3d(other));
  pid_t child = fork();
  if (child == 0) _exit(is_v3d(other) ? 0 : 1);
  int status;
  REQUIRE(waitpid(child, &status, 0) == child && status == 0);
  REQUIRE(syscall(SYS_fstat, 0, &st) == 0);  // whatever it is
  REQUIRE(close(fd) == 0 && is_v3d(other) && close(other) == 0);
}

/// What is opened there is what stands there, and nothing of another root.
static void require_own(const char* path) {
  struct stat named, opened;
  REQUIRE(stat(path, &named) == 0);
  int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  REQUIRE(fd >= 0 && fstat(fd, &opened) == 0);
  REQUIRE(opened.st_ino == named.st_ino && opened.st_dev == named.st_dev);
  REQUIRE(close(fd) == 0);
}

/// Runs it in a child, perhaps in a user namespace in which it has the rights.
static void in_child(void (*run)(void)) {
  pid_t child = fork();
  if (child == 0) {
    REQUIRE(geteuid() == 0 || unshare(CLONE_NEWUSER) == 0);
    run();
    _exit(0);
  }
  int status;
  REQUIRE(waitpid(child, &status, 0) == child && status == 0);
}

static char jail[] = "/tmp/v3demu-box-XXXXXX";

static void in_jail(void) {
  REQUIRE(chroot(jail) == 0);
  // Also from a folder that lies outside.
  for (int outside = 1; outside >= 0; --outside) {
    require_own("/dev");
    require_own("/sys/class");
    REQUIRE(syscall(SYS_openat, AT_FDCWD, node, O_RDWR, 0) < 0 && errno == ENOENT);
    REQUIRE(syscall(SYS_openat, AT_FDCWD, "/proc/cpuinfo", O_RDONLY, 0) < 0 && errno == ENOENT);
    REQUIRE(syscall(SYS_openat, AT_FDCWD, "/proc/device-tree", O_RDONLY, 0) < 0 && errno == ENOENT);
    REQUIRE(chdir("/") == 0);
  }
}

static void in_other_mounts(void) {
  REQUIRE(unshare(CLONE_NEWNS) == 0);
  require_own("/dev");
  require_own("/sys/class");
}

static void as_somebody_else(void) {
  if (getuid() != 0 || setgid(65534) != 0 || setuid(65534) != 0)
    return;  // who may not cannot be somebody else
  require_own("/dev");
  require_own("/sys/class");
  REQUIRE(syscall(SYS_openat, AT_FDCWD, node, O_RDWR, 0) < 0);
}

/// The supervisor opens nothing for those who could not: beneath another root, in other mounts, as another
/// user.
static void test_other_roots(void) {
  REQUIRE(mkdtemp(jail) && chdir(jail) == 0);
  REQUIRE(mkdir("dev", 0755) == 0 && mkdir("sys", 0755) == 0 && mkdir("sys/class", 0755) == 0);
  REQUIRE(chdir("/tmp") == 0);
  in_child(in_jail);
  in_child(in_other_mounts);
  in_child(as_somebody_else);
  REQUIRE(chdir(jail) == 0 && rmdir("sys/class") == 0 && rmdir("sys") == 0 && rmdir("dev") == 0);
  REQUIRE(chdir("/") == 0 && rmdir(jail) == 0);
}

/// A bad pointer is an error, not the end of anything.
static void test_faults(void) {
  int fd = open_node();
  REQUIRE(call(fd, GET_PARAM, NULL) < 0 && errno == EFAULT);
  void* unwritable = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(call(fd, GET_PARAM, unwritable) < 0 && errno == EFAULT);
  struct syncobj_array array = {.handles = 8, .count = 1};
  REQUIRE(call(fd, SYNCOBJ_SIGNAL, &array) < 0 && errno == EFAULT);
  REQUIRE(syscall(SYS_openat, AT_FDCWD, NULL, O_RDWR, 0) < 0 && errno == EFAULT);
  REQUIRE(syscall(SYS_openat, AT_FDCWD, "", O_RDWR, 0) < 0 && errno == ENOENT);
  REQUIRE(syscall(SYS_mmap, NULL, 4096, PROT_READ, MAP_SHARED, fd, (off_t)1 << 40) == -1 && errno == EINVAL);
  REQUIRE(is_v3d(fd) && close(fd) == 0);
}

enum { THREADS = 8, ROUNDS = 40, WORDS = 1 << 14 };
static volatile sig_atomic_t alarms;
static void count_alarm(int number) { (void)number, ++alarms; }

static void* make_and_check(void* argument) {
  const int fd = *(int*)argument;
  for (uint32_t round = 0; round < ROUNDS; ++round) {
    const uint32_t handle = make_bo(fd, WORDS * 4), mark = handle * 1000 + round;
    uint32_t* words = map_bo(fd, handle, WORDS * 4);
    REQUIRE(words[0] == 0 && words[WORDS - 1] == 0);
    for (uint32_t i = 0; i < WORDS; ++i) words[i] = mark + i;
    uint32_t* again = map_bo(fd, handle, WORDS * 4);
    for (uint32_t i = 0; i < WORDS; i += 97) REQUIRE(again[i] == mark + i);
    REQUIRE(munmap(words, WORDS * 4) == 0 && munmap(again, WORDS * 4) == 0);
    close_bo(fd, handle);
  }
  return NULL;
}

/// Threads of a process beside each other, under a rain of signals: each call is made once.
static void test_threads(void) {
  int fd = open_node();
  signal(SIGALRM, count_alarm);
  struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &often, NULL);
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i) REQUIRE(pthread_create(&threads[i], NULL, make_and_check, &fd) == 0);
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  setitimer(ITIMER_REAL, &never, NULL);
  REQUIRE(alarms > 0);
  // A BO that a repeated call left behind would have this handle.
  REQUIRE(make_bo(fd, 4096) == 1);
  int highest = open("/dev/null", O_RDONLY);
  REQUIRE(highest == fd + 1);  // nor descriptors
  REQUIRE(close(highest) == 0 && close(fd) == 0);
}

/// A signal ends a wait; a process that waits can be killed.
static void test_wait_ends(void) {
  int fd = open_node();
  struct syncobj empty = {0, 0};
  REQUIRE(call(fd, SYNCOBJ_CREATE, &empty) == 0);
  struct syncobj_wait wait = {
      .handles = (uintptr_t)&empty.handle, .timeout = INT64_MAX, .count = 1, .flags = WAIT_FOR_SUBMIT};
  struct sigaction action = {.sa_handler = count_alarm};
  sigaction(SIGALRM, &action, NULL);
  alarms = 0;
  ualarm(100000, 100000);  // again and again: the first may come before the wait
  REQUIRE(syscall(SYS_ioctl, fd, SYNCOBJ_WAIT, &wait) < 0 && errno == EINTR && alarms > 0);
  ualarm(0, 0);
  pid_t child = fork();
  if (child == 0) {
    syscall(SYS_ioctl, fd, SYNCOBJ_WAIT, &wait);
    _exit(0);
  }
  usleep(100000);
  int status;
  REQUIRE(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status));
  REQUIRE(is_v3d(fd) && close(fd) == 0);
}

enum { WAITERS = 120 };
static struct {
  int fd;
  uint32_t handle;
} awaited;

static void* await(void* argument) {
  (void)argument;
  struct syncobj_wait wait = {
      .handles = (uintptr_t)&awaited.handle, .timeout = INT64_MAX, .count = 1, .flags = WAIT_FOR_SUBMIT};
  REQUIRE(call(awaited.fd, SYNCOBJ_WAIT, &wait) == 0);
  return NULL;
}

/// More threads wait than are answered at one time, and what they wait for can still be done.
static void test_many_wait(void) {
  awaited.fd = open_node();
  struct syncobj made = {0, 0};
  REQUIRE(call(awaited.fd, SYNCOBJ_CREATE, &made) == 0);
  awaited.handle = made.handle;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 << 10);
  pthread_t threads[WAITERS];
  for (int i = 0; i < WAITERS; ++i) REQUIRE(pthread_create(&threads[i], &attributes, await, NULL) == 0);
  usleep(200000);
  struct syncobj_array array = {.handles = (uintptr_t)&awaited.handle, .count = 1};
  REQUIRE(call(awaited.fd, SYNCOBJ_SIGNAL, &array) == 0);
  for (int i = 0; i < WAITERS; ++i) pthread_join(threads[i], NULL);
  REQUIRE(close(awaited.fd) == 0);
}

/// A small BO that is mapped and then shared is the same memory to both files, and to the dma-buf.
static void test_sharing(void) {
  int fd = open_node(), other = open_node();
  uint32_t handle = make_bo(fd, 4096);
  uint32_t* mine = map_bo(fd, handle, 4096);
  mine[0] = 1;
  struct prime out = {.handle = handle, .flags = O_CLOEXEC | O_RDWR, .fd = -1};
  REQUIRE(call(fd, HANDLE_TO_FD, &out) == 0 && fcntl(out.fd, F_GETFD) == FD_CLOEXEC);
  struct prime in = {.fd = out.fd};
  REQUIRE(call(other, FD_TO_HANDLE, &in) == 0);
  uint32_t* theirs = map_bo(other, in.handle, 4096);
  uint32_t* shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, out.fd, 0);
  REQUIRE(shared != MAP_FAILED && theirs[0] == 1 && shared[0] == 1);
  mine[1] = 2;
  theirs[2] = 3;
  REQUIRE(shared[1] == 2 && shared[2] == 3 && mine[2] == 3);
  REQUIRE(close(out.fd) == 0 && close(other) == 0 && close(fd) == 0);
}

/// What the file says, up to a size.
static const char* read_file(const char* path, int flags) {
  static char text[65536];
  int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | flags);
  REQUIRE(fd >= 0);
  ssize_t size = read(fd, text, sizeof text - 1);
  REQUIRE(size >= 0 && close(fd) == 0);
  text[size] = 0;
  return text;
}

/// The board's files in /proc, and its devices beside the GPU.
static void test_board(void) {
  REQUIRE(strcmp(read_file("/proc/device-tree/model", O_CLOEXEC), "Raspberry Pi 5 Model B Rev 1.0") == 0);
  REQUIRE(strcmp(read_file("/sys/firmware/devicetree/base/model", 0), "Raspberry Pi 5 Model B Rev 1.0") == 0);
  REQUIRE(strstr(read_file("/proc/cpuinfo", 0), "\nRevision\t: c04170\n"));
  int fd = open_node();
  make_bo(fd, 12288);
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
  REQUIRE(strstr(read_file(path, 0), "drm-driver:\tv3d\n") &&
          strstr(read_file(path, 0), "drm-total-memory:\t12 KiB\n"));
  snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", getpid(), fd);
  REQUIRE(strstr(read_file(path, 0), "drm-driver:\tv3d\n"));
  REQUIRE(!strstr(read_file("/proc/self/fdinfo/0", 0), "drm-"));

  struct stat st;
  int firmware = (int)syscall(SYS_openat, AT_FDCWD, "/dev/vcio", O_RDWR);
  REQUIRE(firmware >= 0 && syscall(SYS_fstat, firmware, &st) == 0 && S_ISCHR(st.st_mode) &&
          major(st.st_rdev) == 10);
  uint32_t words[7] = {28, 0, 0x10002, 4, 0, 0, 0};
  REQUIRE(call(firmware, _IOWR(100, 0, char*), words) == 0 && words[1] == 0x80000000 && words[5] == 0xc04170);
  words[2] = 0x12345;
  REQUIRE(call(firmware, _IOWR(100, 0, char*), words) < 0 && errno == EINVAL);

  int heap = (int)syscall(SYS_openat, AT_FDCWD, "/dev/dma_heap/linux,cma", O_RDWR);
  struct dma_heap_allocation_data allocation = {.len = 5000, .fd_flags = O_RDWR | O_CLOEXEC};
  REQUIRE(heap >= 0 && call(heap, DMA_HEAP_IOCTL_ALLOC, &allocation) == 0);
  struct prime in = {.fd = (int32_t)allocation.fd};
  REQUIRE(call(fd, FD_TO_HANDLE, &in) == 0 && in.handle);

  int memory = memfd_create("client", MFD_ALLOW_SEALING),
      udmabuf = (int)syscall(SYS_openat, AT_FDCWD, "/dev/udmabuf", O_RDWR);
  REQUIRE(ftruncate(memory, 8192) == 0 && fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
  struct udmabuf_create create = {.memfd = (uint32_t)memory, .size = 8192};
  in.fd = (int)syscall(SYS_ioctl, udmabuf, UDMABUF_CREATE, &create);
  REQUIRE(in.fd >= 0 && call(fd, FD_TO_HANDLE, &in) == 0);
  map_bo(fd, in.handle, 8192)[1024] = 7;
  uint32_t word = 0;
  REQUIRE(pread(memory, &word, sizeof word, 4096) == sizeof word && word == 7);
  REQUIRE(close(in.fd) == 0 && close(fd) == 0 && close(heap) == 0 && close(firmware) == 0 &&
          close(udmabuf) == 0);
}

static volatile bool racing = true;
static struct syncobj_array raced;
static uint32_t raced_handles[16];

static void* change_memory(void* argument) {
  (void)argument;
  for (uint32_t i = 0; racing; ++i) {
    *(volatile uint64_t*)&raced.handles = i % 3 ? (uintptr_t)raced_handles : 4096 * (uint64_t)i;
    *(volatile uint32_t*)&raced.count = i % 5 ? i % 16 : ~i;
    *(volatile uint32_t*)&raced_handles[i % 16] = i % 7;
  }
  return NULL;
}

/// Memory that changes while it is read gives an error or none.
static void test_race(void) {
  int fd = open_node();
  for (int i = 0; i < 4; ++i) {
    struct syncobj made = {0, 0};
    REQUIRE(call(fd, SYNCOBJ_CREATE, &made) == 0);
  }
  pthread_t thread;
  REQUIRE(pthread_create(&thread, NULL, change_memory, NULL) == 0);
  for (int i = 0; i < 2000; ++i) call(fd, SYNCOBJ_SIGNAL, &raced);
  racing = false;
  pthread_join(thread, NULL);
  REQUIRE(is_v3d(fd) && close(fd) == 0);
}

static void* ask_often(void* argument) {
  (void)argument;
  for (int i = 0; i < 100; ++i) {
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    char byte;
    REQUIRE(fd >= 0 && read(fd, &byte, 1) == 1 && close(fd) == 0);
  }
  return NULL;
}

/// Many more calls at one time than there are threads to answer them.
static void test_flood(void) {
  pthread_t threads[200];
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 << 10);
  for (int i = 0; i < 200; ++i) REQUIRE(pthread_create(&threads[i], &attributes, ask_often, NULL) == 0);
  for (int i = 0; i < 200; ++i) pthread_join(threads[i], NULL);
}

/// Who has no descriptor left gets none, and nobody else does without one.
static void test_descriptors(void) {
  int fd = open_node();
  const struct rlimit none_more = {(rlim_t)fd + 1, (rlim_t)fd + 1};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none_more) == 0);
  REQUIRE(syscall(SYS_openat, AT_FDCWD, node, O_RDWR, 0) < 0 && errno == EMFILE);
  REQUIRE(is_v3d(fd));
  struct mmap_bo bo = {.handle = make_bo(fd, 4096)};
  REQUIRE(call(fd, MMAP_BO, &bo) == 0);
  // Mapping takes one for a moment.
  REQUIRE(syscall(SYS_mmap, NULL, 4096, PROT_READ, MAP_SHARED, fd, bo.offset) == -1 && errno == EMFILE);
  REQUIRE(close(fd) == 0);
}

/// A process that another one traces maps nothing, and is told so.
static void test_traced(void) {
  int fd = open_node();
  struct mmap_bo bo = {.handle = make_bo(fd, 4096)};
  REQUIRE(call(fd, MMAP_BO, &bo) == 0);
  pid_t child = fork();
  if (child == 0) {
    REQUIRE(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
    const long result = syscall(SYS_mmap, NULL, 4096, PROT_READ, MAP_SHARED, fd, bo.offset);
    _exit(result == -1 && errno == EPERM && is_v3d(fd) ? 0 : 1);
  }
  int status;
  REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  REQUIRE(close(fd) == 0);
}

/// Maps until a signal ends the program.
static void test_dies_mapping(void) {
  int fd = open_node();
  uint32_t handle = make_bo(fd, 4096);
  signal(SIGALRM, SIG_DFL);
  ualarm(200000, 0);
  for (;;) REQUIRE(munmap(map_bo(fd, handle, 4096), 4096) == 0);
}

/// Opens files until that fails, and prints with what.
static void test_until_alone(void) {
  puts("asking");
  fflush(stdout);
  for (;;) {
    int fd = open("/proc/self/status", O_RDONLY);
    if (fd < 0) {
      printf("alone: %s\n", strerror(errno));
      return;
    }
    close(fd);
    usleep(1000);
  }
}

/// The console's framebuffer: a device that answers, with the board's numbers, and memory that can be mapped.
static void test_framebuffer(void) {
  int fd = open("/dev/fb0", O_RDWR);
  REQUIRE(fd >= 0);
  struct stat st;
  REQUIRE(fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(29, 0));
  struct fb_var_screeninfo screen;
  struct fb_fix_screeninfo fixed;
  REQUIRE(ioctl(fd, FBIOGET_VSCREENINFO, &screen) == 0 && screen.xres == 1920 && screen.bits_per_pixel == 16);
  REQUIRE(ioctl(fd, FBIOGET_FSCREENINFO, &fixed) == 0 && strcmp(fixed.id, "vc4drmfb") == 0);
  REQUIRE(ioctl(fd, FBIOGET_VSCREENINFO, (void*)8) == -1 && errno == EFAULT);
  REQUIRE(ioctl(fd, FBIO_WAITFORVSYNC, 0) == 0);
  uint16_t* pixels = mmap(NULL, fixed.smem_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  REQUIRE(pixels != MAP_FAILED);
  pixels[7] = 0x1234;
  uint16_t pixel = 0;
  REQUIRE(pread(fd, &pixel, sizeof pixel, 14) == sizeof pixel && pixel == 0x1234);
  REQUIRE(ioctl(0, FBIOGET_VSCREENINFO, &screen) == -1 && errno == ENOTTY);
  munmap(pixels, fixed.smem_len);
  close(fd);
}

static const struct {
  const char* name;
  void (*run)(void);
} kTests[] = {
    {"framebuffer", test_framebuffer},
    {"identity", test_identity},
    {"faults", test_faults},
    {"threads", test_threads},
    {"wait_ends", test_wait_ends},
    {"many_wait", test_many_wait},
    {"sharing", test_sharing},
    {"board", test_board},
    {"race", test_race},
    {"flood", test_flood},
    {"descriptors", test_descriptors},
    {"traced", test_traced},
    {"other_roots", test_other_roots},
    {"dies_mapping", test_dies_mapping},
    {"until_alone", test_until_alone},
};

int main(int argc, char** argv) {
  node = argv[1];
  for (int i = 2; i < argc; ++i) {
    bool known = false;
    for (size_t n = 0; n < sizeof(kTests) / sizeof(*kTests); ++n) {
      if (strcmp(kTests[n].name, argv[i]) != 0) continue;
      known = true;
      kTests[n].run();
      puts(argv[i]);
      fflush(stdout);
    }
    REQUIRE(known);
  }
  return argc < 3;
}
