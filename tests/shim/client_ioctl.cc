/// ioctl and mmap: what goes over, what comes back, waiting, signals, bad pointers.

#include <drm.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "tests/shim/client.h"

using namespace client;

namespace {

struct Pair {
  uint64_t key, value;
};
constexpr unsigned long kGetParam = _IOWR('d', 0x44, Pair);

std::atomic<int> signals{0};
int signal_fd = -1;

void on_signal(int) { ++signals; }

/// An ioctl in a signal handler, over whatever the thread was doing.
void on_signal_ioctl(int) {
  int saved = errno;
  ++signals;
  if (map_offset(signal_fd, 1) == 0) fail(__FILE__, __LINE__, "ioctl in a signal handler");
  errno = saved;
}

void handle(int number, void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(number, &action, nullptr);
}

/// Sends SIGUSR1 to this thread a while from now.
std::thread poke_later(useconds_t delay) {
  return std::thread([self = pthread_self(), delay] {
    usleep(delay);
    pthread_kill(self, SIGUSR1);
  });
}

}  // namespace

SCENARIO(dma_bufs) {
  int fd = open_render(), other = open_render();
  uint32_t bo = create_bo(fd, 8192);
  drm_prime_handle prime{bo, DRM_CLOEXEC | DRM_RDWR, -1};
  CHECK_EQ(ioctl(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime), 0);
  int shared = prime.fd;
  CHECK(shared >= 0 && shared < 512);
  CHECK_EQ(fcntl(shared, F_GETFD), FD_CLOEXEC);
  CHECK_EQ(lseek(shared, 0, SEEK_END), off_t{8192});
  prime = {bo, DRM_RDWR, -1};
  CHECK_EQ(ioctl(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime), 0);
  CHECK_EQ(fcntl(prime.fd, F_GETFD), 0);
  struct stat a, b;
  CHECK(fstat(shared, &a) == 0 && fstat(prime.fd, &b) == 0 && a.st_ino == b.st_ino);
  close(prime.fd);
  drm_prime_handle import{0, 0, shared};
  CHECK_EQ(ioctl(other, DRM_IOCTL_PRIME_FD_TO_HANDLE, &import), 0);
  auto* first = static_cast<uint8_t*>(map_bo(fd, bo, 8192));
  auto* second = static_cast<uint8_t*>(map_bo(other, import.handle, 8192));
  auto* third = static_cast<uint8_t*>(mmap(nullptr, 8192, PROT_READ, MAP_SHARED, shared, 0));
  CHECK(first != MAP_FAILED && second != MAP_FAILED && third != MAP_FAILED);
  first[5000] = 17;
  CHECK(second[5000] == 17 && third[5000] == 17);
  uint64_t sync = 3;
  CHECK_EQ(ioctl(shared, _IOW('b', 0, uint64_t), &sync), 0);  // DMA_BUF_IOCTL_SYNC
  // Descriptors that are nothing of the kind.
  import = {0, 0, 1000};
  CHECK_ERRNO(ioctl(other, DRM_IOCTL_PRIME_FD_TO_HANDLE, &import), EBADF);
  int zero = open("/dev/zero", O_RDONLY), memory = memfd_create("other", 0);
  import = {0, 0, zero};
  CHECK_ERRNO(ioctl(other, DRM_IOCTL_PRIME_FD_TO_HANDLE, &import), EINVAL);
  CHECK_ERRNO(ioctl(memory, _IOW('b', 0, uint64_t), &sync), ENOTTY);
  CHECK_ERRNO(ioctl(memory, _IOW('b', 0, uint64_t), &sync), ENOTTY);
  CHECK_ERRNO(ioctl(zero, _IOW('b', 0, uint64_t), &sync), ENOTTY);
}

SCENARIO(sync_files) {
  int fd = open_render();
  drm_syncobj_create create{0, DRM_SYNCOBJ_CREATE_SIGNALED};
  CHECK_EQ(ioctl(fd, DRM_IOCTL_SYNCOBJ_CREATE, &create), 0);
  drm_syncobj_handle handle{};
  handle.handle = create.handle;
  handle.flags = DRM_SYNCOBJ_HANDLE_TO_FD_FLAGS_EXPORT_SYNC_FILE;
  CHECK_EQ(ioctl(fd, DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, &handle), 0);
  int fence = handle.fd;
  CHECK_EQ(fcntl(fence, F_GETFD), FD_CLOEXEC);
  struct Info {
    char name[32];
    int32_t status;
    uint32_t flags, num_fences, pad;
    uint64_t records;
  } info{};
  CHECK_EQ(ioctl(fence, _IOWR('>', 4, Info), &info), 0);
  CHECK_EQ(info.status, 1);
  struct Merge {
    char name[32];
    int32_t other;
    int32_t fence;
    uint32_t flags, pad;
  } merge{"merged", fence, -1, 0, 0};
  CHECK_EQ(ioctl(fence, _IOWR('>', 3, Merge), &merge), 0);
  CHECK(merge.fence >= 0 && merge.fence != fence);
  struct Record {
    char object[32], driver[32];
    int32_t status;
    uint32_t flags;
    uint64_t time;
  } records[4] = {};
  info = {};
  info.num_fences = 4;
  info.records = reinterpret_cast<uint64_t>(records);
  CHECK_EQ(ioctl(merge.fence, _IOWR('>', 4, Info), &info), 0);
  CHECK(info.num_fences >= 1 && records[0].status == 1);
  merge.other = 1000;
  CHECK_ERRNO(ioctl(fence, _IOWR('>', 3, Merge), &merge), ENOENT);
  // Import into another syncobj.
  drm_syncobj_handle import{};
  import.handle = create_syncobj(fd);
  import.flags = DRM_SYNCOBJ_FD_TO_HANDLE_FLAGS_IMPORT_SYNC_FILE;
  import.fd = fence;
  CHECK_EQ(ioctl(fd, DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, &import), 0);
  CHECK_EQ(wait_syncobj(fd, import.handle, 0), 0);
  // Not a fence.
  CHECK_ERRNO(ioctl(0, _IOWR('>', 4, Info), &info), ENOTTY);
}

SCENARIO(threads_wait_together) {
  int fd = open_render();
  constexpr int kThreads = 8;
  std::vector<uint32_t> objects;
  std::vector<std::thread> threads;
  std::atomic<int> woken{0};
  for (int i = 0; i < kThreads; ++i) objects.push_back(create_syncobj(fd));
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      CHECK_EQ(wait_syncobj(fd, objects[static_cast<size_t>(i)], INT64_MAX), 0);
      ++woken;
    });
  }
  usleep(50'000);
  CHECK_EQ(woken.load(), 0);
  CHECK(create_bo(fd, 4096) != 0);  // none of them holds up this thread
  for (uint32_t object : objects) CHECK_EQ(signal_syncobj(fd, object), 0);
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(wait_syncobj(fd, create_syncobj(fd), monotonic_ns() + 20'000'000), ETIME);
}

SCENARIO(interrupted_waits) {
  int fd = open_render();
  uint32_t object = create_syncobj(fd);
  handle(SIGUSR1, on_signal, 0);
  std::thread poke = poke_later(50'000);
  CHECK_EQ(wait_syncobj(fd, object, INT64_MAX), EINTR);
  poke.join();
  CHECK_EQ(signals.load(), 1);
  CHECK(create_bo(fd, 4096) != 0);  // over a connection that has no stale reply
  // With SA_RESTART the wait goes on, as the kernel's does.
  handle(SIGUSR1, on_signal, SA_RESTART);
  poke = poke_later(50'000);
  CHECK_EQ(wait_syncobj(fd, object, monotonic_ns() + 200'000'000), ETIME);
  poke.join();
  CHECK_EQ(signals.load(), 2);
}

/// fake_daemon never lets buffer 0xb10c become idle.
SCENARIO(interrupted_bo_wait) {
  int fd = open_render();
  handle(SIGUSR1, on_signal, 0);
  std::thread poke = poke_later(100'000);
  WaitBo wait{0xb10c, 0, 10'000'000'000};
  CHECK_ERRNO(ioctl(fd, kWaitBo, &wait), EINTR);
  poke.join();
  CHECK(wait.timeout < 9'950'000'000 && wait.timeout > 5'000'000'000);
}

SCENARIO(signal_storm) {
  int fd = signal_fd = open_render();
  uint32_t bo = create_bo(fd, 4096);
  CHECK_EQ(bo, 1u);
  handle(SIGALRM, on_signal_ioctl, 0);
  // Often, but not before a request over a new connection can be answered, which is what the handler makes
  // when it interrupts another request; also by a slow daemon.
  const int64_t begin = monotonic_ns();
  for (int i = 0; i < 20; ++i) std::thread([&] { CHECK(map_offset(fd, bo) != 0); }).join();
  const auto period = static_cast<suseconds_t>(std::max<int64_t>(500, 4 * (monotonic_ns() - begin) / 20'000));
  itimerval often{{0, period}, {0, period}};
  setitimer(ITIMER_REAL, &often, nullptr);
  // Short requests are repeated inside; opening, mapping and closing keep working.
  for (int i = 0; i < 1000 || signals.load() < 10; ++i) CHECK(map_offset(fd, bo) != 0);
  for (int i = 0; i < 50; ++i) {
    void* map = map_bo(fd, bo, 4096);
    CHECK(map != MAP_FAILED);
    munmap(map, 4096);
    close(open_render());
  }
  itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  CHECK_EQ(open_descriptors().size(), size_t{3 + 1 + 1});  // standard ones, the node, its connection
}

SCENARIO(bad_pointers) {
  int fd = open_render();
  auto* page = static_cast<uint8_t*>(
      mmap(nullptr, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  munmap(page + 4096, 4096);
  auto* edge = page + 4096 - 8;  // 8 good bytes
  void* const bad = page + 4096;
  for (unsigned long request : {kGetParam, kWaitBo, static_cast<unsigned long>(DRM_IOCTL_VERSION),
                                static_cast<unsigned long>(DRM_IOCTL_GET_CAP)}) {
    CHECK_ERRNO(ioctl(fd, request, bad), EFAULT);
    CHECK_ERRNO(ioctl(fd, request, nullptr), EFAULT);
    CHECK_ERRNO(ioctl(fd, request, edge), EFAULT);
  }
  // Lists that end in nothing.
  drm_syncobj_wait wait{};
  wait.handles = reinterpret_cast<uint64_t>(edge);
  wait.count_handles = 3;
  CHECK_ERRNO(ioctl(fd, DRM_IOCTL_SYNCOBJ_WAIT, &wait), EFAULT);
  wait.count_handles = 0xffffffff;
  errno = 0;
  CHECK_EQ(ioctl(fd, DRM_IOCTL_SYNCOBJ_WAIT, &wait), -1);
  CHECK(errno == EFAULT || errno == ENOMEM);
  // Texts that cannot be written, also once the answer is known here.
  for (int round = 0; round < 2; ++round) {
    drm_version version{};
    version.name = reinterpret_cast<char*>(bad);
    version.name_len = 3;
    CHECK_ERRNO(ioctl(fd, DRM_IOCTL_VERSION, &version), EFAULT);
    CHECK_EQ(version.desc_len, size_t{21});
  }
  // Memory that can be read but not written.
  mprotect(page, 4096, PROT_READ);
  CHECK_ERRNO(ioctl(fd, kGetParam, page), EFAULT);
  CHECK_EQ(driver_name(fd), "v3d");
}

SCENARIO(request_words) {
  int fd = open_render();
  Pair param{4, 0};
  // From a caller that keeps the request in an int.
  CHECK_EQ(ioctl(fd, static_cast<unsigned long>(static_cast<int>(kGetParam)), &param), 0);
  Pair again{4, 0};
  CHECK_EQ(syscall(SYS_ioctl, fd, kGetParam, &again), 0l);
  CHECK_EQ(param.value, again.value);
  // Texts as long as the caller has room for; lengths always whole; no terminating zero.
  for (int round = 0; round < 2; ++round) {
    char name[4] = "???";
    drm_version version{};
    version.name = name;
    version.name_len = 2;
    CHECK_EQ(ioctl(fd, DRM_IOCTL_VERSION, &version), 0);
    CHECK_EQ(std::string(name), "v3?");
    CHECK_EQ(version.name_len, size_t{3});
    CHECK_EQ(version.date_len, size_t{1});
    CHECK_EQ(version.version_major, 1);
  }
  param = {4, 1};
  CHECK_ERRNO(ioctl(fd, kGetParam, &param), EINVAL);  // params below 7 check it
  param = {uint64_t{1} << 32 | 4, 0};
  CHECK_ERRNO(ioctl(fd, kGetParam, &param), EINVAL);
  // Not ours at all.
  CHECK_ERRNO(ioctl(fd, TCGETS, &param), ENOTTY);
  int waiting = 0;
  CHECK_EQ(ioctl(0, FIONREAD, &waiting), ioctl(0, FIONREAD, &waiting));
}

/// Answers that stay the same are asked for once: the journal of fake_daemon is counted by the test.
SCENARIO(cached_answers) {
  int fd = open_render();
  struct Counter {
    uint8_t counter;
    char name[64], category[32], description[256];
    uint8_t reserved[7];
  };
  static_assert(sizeof(Counter) == 360);
  for (int round = 0; round < 3; ++round) {
    for (uint64_t key : {0, 4, 7, 15}) {  // the last counts resets: asked each time
      Pair param{key, 0};
      CHECK_EQ(ioctl(fd, kGetParam, &param), 0);
      CHECK_EQ(param.value, 1000 + key);
    }
    Counter counter{};
    counter.counter = 5;
    CHECK_EQ(ioctl(fd, _IOWR('d', 0x4c, Counter), &counter), 0);
    CHECK_EQ(std::string(counter.name), "counter-5");
    CHECK_EQ(driver_name(fd), "v3d");
    Pair cap{DRM_CAP_PRIME, 0};
    CHECK_EQ(ioctl(fd, DRM_IOCTL_GET_CAP, &cap), 0);
    CHECK_EQ(cap.value, uint64_t{3});
    if (round == 1) {
      close(fd);
      fd = open_render();  // another file of the same daemon
    }
  }
}
