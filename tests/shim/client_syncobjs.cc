/// Syncobjs whose state the daemon shows, so that waits and resets need no message: they mean what they
/// always did.

#include <drm.h>
#include <linux/sync_file.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "tests/shim/client.h"

using namespace client;

namespace {

constexpr unsigned long kGetBoOffset = _IOWR('d', 0x45, uint64_t);
constexpr uint32_t kAll = DRM_SYNCOBJ_WAIT_FLAGS_WAIT_ALL,
                   kForSubmit = DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT;

int wait_for_many(int fd, const std::vector<uint32_t>& handles, uint32_t flags, int64_t timeout_ns,
                  uint32_t* first = nullptr) {
  drm_syncobj_wait wait{};
  wait.handles = reinterpret_cast<uint64_t>(handles.data());
  wait.count_handles = static_cast<uint32_t>(handles.size());
  wait.timeout_nsec = timeout_ns;
  wait.flags = flags;
  const int error = ioctl(fd, DRM_IOCTL_SYNCOBJ_WAIT, &wait) == 0 ? 0 : errno;
  if (first) *first = wait.first_signaled;
  return error;
}

int reset(int fd, const std::vector<uint32_t>& handles) {
  drm_syncobj_array array{};
  array.handles = reinterpret_cast<uint64_t>(handles.data());
  array.count_handles = static_cast<uint32_t>(handles.size());
  return ioctl(fd, DRM_IOCTL_SYNCOBJ_RESET, &array) == 0 ? 0 : errno;
}

int to_fd(int fd, uint32_t handle, uint32_t flags) {
  drm_syncobj_handle args{};
  args.handle = handle;
  args.flags = flags;
  return ioctl(fd, DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, &args) == 0 ? args.fd : -errno;
}

uint32_t from_fd(int fd, int syncobj) {
  drm_syncobj_handle args{};
  args.fd = syncobj;
  return ioctl(fd, DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, &args) == 0 ? args.handle : 0;
}

int wait_bo(int fd, uint32_t handle, uint64_t timeout_ns) {
  WaitBo wait{handle, 0, timeout_ns};
  return ioctl(fd, kWaitBo, &wait) == 0 ? 0 : errno;
}

}  // namespace

SCENARIO(shown_syncobjs) {
  int fd = open_render();
  const uint32_t a = create_syncobj(fd), b = create_syncobj(fd), c = create_syncobj(fd);
  CHECK_EQ(wait_for_many(fd, {a}, 0, 0), EINVAL);
  CHECK_EQ(wait_for_many(fd, {a}, kForSubmit, 0), ETIME);
  CHECK_EQ(wait_for_many(fd, {a}, kForSubmit, monotonic_ns() + 20'000'000), ETIME);
  CHECK_EQ(signal_syncobj(fd, b), 0);
  uint32_t first = 99;
  CHECK_EQ(wait_for_many(fd, {a, b}, kForSubmit, 0, &first), 0);
  CHECK_EQ(first, 1u);
  CHECK_EQ(wait_for_many(fd, {a, b}, kForSubmit | kAll, 0), ETIME);
  CHECK_EQ(signal_syncobj(fd, a), 0);
  CHECK_EQ(wait_for_many(fd, {a, b}, kAll, 0, &first), 0);
  CHECK_EQ(first, 0u);
  CHECK_EQ(wait_for_many(fd, {a, c}, kAll, 0), EINVAL);
  // What is reset here is empty for everything that asks the daemon, too.
  CHECK_EQ(reset(fd, {a, b, c}), 0);
  CHECK_EQ(wait_for_many(fd, {a}, 0, 0), EINVAL);
  CHECK_EQ(to_fd(fd, b, DRM_SYNCOBJ_HANDLE_TO_FD_FLAGS_EXPORT_SYNC_FILE), -EINVAL);
  CHECK_EQ(signal_syncobj(fd, a), 0);
  CHECK_EQ(wait_for_many(fd, {a}, 0, 0), 0);
  CHECK_EQ(reset(fd, {a, 999}), ENOENT);
  CHECK_EQ(reset(fd, {}), EINVAL);
}

SCENARIO(exports_until_there_is_a_fence) {
  int fd = open_render();
  const uint32_t object = create_syncobj(fd);
  constexpr uint32_t kSyncFile = DRM_SYNCOBJ_HANDLE_TO_FD_FLAGS_EXPORT_SYNC_FILE;
  drm_syncobj_handle padded{};
  padded.handle = object;
  padded.flags = kSyncFile;
  padded.pad = 1;
  CHECK_ERRNO(ioctl(fd, DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, &padded), EINVAL);
  CHECK_EQ(to_fd(fd, 999, kSyncFile), -ENOENT);
  // As Mesa's Vulkan drivers wait for another thread's submit.
  for (int i = 0; i < 20; ++i) {
    CHECK_EQ(to_fd(fd, object, kSyncFile), -EINVAL);
    std::thread later([&] {
      usleep(static_cast<useconds_t>(i) * 200);
      CHECK_EQ(signal_syncobj(fd, object), 0);
    });
    int file = -EINVAL;
    while (file == -EINVAL) file = to_fd(fd, object, kSyncFile);
    CHECK(file >= 0);
    close(file);
    later.join();
    CHECK_EQ(reset(fd, {object}), 0);
  }
}

SCENARIO(shared_syncobjs_are_not_shown) {
  int fd = open_render(), other = open_render();
  const uint32_t a = create_syncobj(fd);
  CHECK_EQ(signal_syncobj(fd, a), 0);
  CHECK_EQ(reset(fd, {a}), 0);
  const int shared = to_fd(fd, a, 0);
  CHECK(shared >= 0);
  const uint32_t there = from_fd(other, shared);
  CHECK(there != 0);
  CHECK_EQ(wait_for_many(other, {there}, 0, 0), EINVAL);  // the reset was heard
  CHECK_EQ(signal_syncobj(other, there), 0);
  CHECK_EQ(wait_for_many(fd, {a}, 0, 0), 0);
  CHECK_EQ(reset(fd, {a}), 0);
  CHECK_EQ(wait_for_many(other, {there}, 0, 0), EINVAL);
  // A handle that is gone, and another object that has it then.
  drm_syncobj_destroy destroy{};
  destroy.handle = a;
  CHECK_EQ(ioctl(fd, DRM_IOCTL_SYNCOBJ_DESTROY, &destroy), 0);
  CHECK_EQ(wait_for_many(fd, {a}, kForSubmit, 0), ENOENT);
  CHECK_EQ(create_syncobj(fd), a);
  CHECK_EQ(wait_for_many(fd, {a}, kForSubmit, 0), ETIME);
  CHECK_EQ(signal_syncobj(other, there), 0);
  CHECK_EQ(wait_for_many(fd, {a}, kForSubmit, 0), ETIME);
}

SCENARIO(shown_bos) {
  int fd = open_render();
  const uint32_t bo = create_bo(fd, 4096), object = create_syncobj(fd);
  struct {
    uint32_t handle, address;
  } place{bo, 0};
  CHECK_EQ(ioctl(fd, kGetBoOffset, &place), 0);
  CHECK_EQ(wait_bo(fd, bo, 0), 0);
  CHECK_EQ(wait_bo(fd, 999, 0), EINVAL);
  CHECK_EQ(wait_bo(fd, 0, 0), EINVAL);
  CHECK_EQ(wait_bo(fd, 0xffffffff, 0), EINVAL);
  WaitBo padded{bo, 1, 0};
  CHECK_ERRNO(ioctl(fd, kWaitBo, &padded), EINVAL);
  // The job of a submit, which ends here or there: its list is a HALT.
  SubmitCl submit{};
  submit.rcl_start = place.address;
  submit.rcl_end = place.address + 8;
  submit.out_sync = object;
  submit.bo_handles = reinterpret_cast<uint64_t>(&bo);
  submit.bo_handle_count = 1;
  for (int i = 0; i < 100; ++i) {
    CHECK_EQ(ioctl(fd, kSubmitCl, &submit), 0);
    CHECK_EQ(wait_bo(fd, bo, 10'000'000'000), 0);
    CHECK_EQ(wait_syncobj(fd, object, 0), 0);
    CHECK_EQ(wait_bo(fd, bo, 0), 0);
  }
  CHECK_EQ(close_bo(fd, bo), 0);
  CHECK_EQ(wait_bo(fd, bo, 0), EINVAL);
}

namespace {

/// A file with a job that does nothing, given to the GPU again and again: its list is a HALT.
struct Submitter {
  int fd = open_render();
  uint32_t bo = create_bo(fd, 4096);
  SubmitCl args{};

  Submitter() {
    struct {
      uint32_t handle, address;
    } place{bo, 0};
    CHECK_EQ(ioctl(fd, kGetBoOffset, &place), 0);
    args.rcl_start = place.address;
    args.rcl_end = place.address + 8;
    args.bo_handles = reinterpret_cast<uint64_t>(&bo);
    args.bo_handle_count = 1;
  }
  Submitter(const Submitter&) = delete;
  ~Submitter() { close(fd); }

  int submit(uint32_t out_sync, uint32_t in_sync = 0) {
    args.out_sync = out_sync;
    args.in_sync_rcl = in_sync;
    return ioctl(fd, kSubmitCl, &args) == 0 ? 0 : errno;
  }
};

constexpr uint32_t kExport = DRM_SYNCOBJ_HANDLE_TO_FD_FLAGS_EXPORT_SYNC_FILE;

int import_file(int fd, uint32_t handle, int file) {
  drm_syncobj_handle args{};
  args.handle = handle;
  args.fd = file;
  args.flags = DRM_SYNCOBJ_FD_TO_HANDLE_FLAGS_IMPORT_SYNC_FILE;
  return ioctl(fd, DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, &args) == 0 ? 0 : errno;
}

int destroy_syncobj(int fd, uint32_t handle) {
  drm_syncobj_destroy args{};
  args.handle = handle;
  return ioctl(fd, DRM_IOCTL_SYNCOBJ_DESTROY, &args) == 0 ? 0 : errno;
}

uint32_t create_signalled(int fd) {
  drm_syncobj_create args{};
  args.flags = DRM_SYNCOBJ_CREATE_SIGNALED;
  return ioctl(fd, DRM_IOCTL_SYNCOBJ_CREATE, &args) == 0 ? args.handle : 0;
}

}  // namespace

SCENARIO(syncobjs_come_and_go) {
  const int fd = open_render();
  const uint32_t first = create_syncobj(fd);
  for (int round = 0; round < 3; ++round) {
    const uint32_t a = create_syncobj(fd);
    CHECK(a != first);
    CHECK_EQ(wait_for_many(fd, {a}, 0, 0), EINVAL);
    CHECK_EQ(signal_syncobj(fd, a), 0);
    CHECK_EQ(destroy_syncobj(fd, a), 0);
    CHECK_EQ(destroy_syncobj(fd, a), EINVAL);
    CHECK_EQ(wait_for_many(fd, {a}, 0, 0), ENOENT);
    CHECK_EQ(signal_syncobj(fd, a), ENOENT);
    CHECK_EQ(reset(fd, {a}), ENOENT);
    CHECK_EQ(to_fd(fd, a, kExport), -ENOENT);
    const uint32_t b = create_signalled(fd);
    CHECK_EQ(wait_for_many(fd, {b}, 0, 0), 0);
    CHECK_EQ(destroy_syncobj(fd, b), 0);
    // More than are kept.
    std::vector<uint32_t> many;
    for (int i = 0; i < 20; ++i) many.push_back(create_syncobj(fd));
    for (const uint32_t handle : many) CHECK_EQ(destroy_syncobj(fd, handle), 0);
    for (const uint32_t handle : many) CHECK_EQ(destroy_syncobj(fd, handle), EINVAL);
  }
  // Parent and child of a fork never get the same one.
  CHECK_EQ(destroy_syncobj(fd, create_syncobj(fd)), 0);
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  const pid_t child = fork();
  const uint32_t mine = create_syncobj(fd);
  if (child == 0) _exit(write(ends[1], &mine, sizeof mine) == sizeof mine ? 0 : 1);
  uint32_t its = 0;
  CHECK_EQ(read(ends[0], &its, sizeof its), static_cast<ssize_t>(sizeof its));
  CHECK_EQ(wait_for(child), 0);
  CHECK(mine != 0 && its != 0 && mine != its);
}

SCENARIO(sync_files_that_come_with_submits) {
  Submitter gpu;
  const int other = open_render();
  const uint32_t out = create_syncobj(gpu.fd), there = create_syncobj(other);
  const size_t before = open_descriptors().size();
  for (int i = 0; i < 40; ++i) {
    CHECK_EQ(gpu.submit(out), 0);
    if (i % 10 == 9) CHECK_EQ(gpu.submit(out), 0);  // nobody exports what came with the first
    const int file = to_fd(gpu.fd, out, kExport);
    CHECK(file >= 0 && file < 512);
    const uint32_t mine = create_syncobj(gpu.fd);
    CHECK_EQ(import_file(gpu.fd, mine, file), 0);
    CHECK_EQ(wait_for_many(gpu.fd, {mine}, 0, INT64_MAX), 0);
    pollfd readable{file, POLLIN, 0};
    CHECK_EQ(poll(&readable, 1, 10'000), 1);
    // The daemon hears of the fence, too; another file has no part in it.
    CHECK_EQ(gpu.submit(0, mine), 0);
    const int again = to_fd(gpu.fd, mine, kExport);
    CHECK(again >= 0);
    CHECK_EQ(import_file(other, there, again), 0);
    CHECK_EQ(wait_for_many(other, {there}, 0, INT64_MAX), 0);
    CHECK_EQ(import_file(other, there, file), 0);
    CHECK_EQ(wait_for_many(other, {there}, 0, INT64_MAX), 0);
    CHECK_EQ(reset(gpu.fd, {mine}), 0);
    CHECK_EQ(gpu.submit(0, mine), EINVAL);
    CHECK_EQ(import_file(gpu.fd, 999, file), ENOENT);
    // Under another number it is the same.
    const int same = dup(file);
    close(file);
    CHECK_EQ(import_file(gpu.fd, mine, same), 0);
    CHECK_EQ(wait_for_many(gpu.fd, {mine, out}, kAll, INT64_MAX), 0);
    CHECK_EQ(destroy_syncobj(gpu.fd, mine), 0);
    CHECK_EQ(import_file(gpu.fd, mine, same), ENOENT);
    close(same);
    close(again);
  }
  CHECK(open_descriptors().size() <= before + 2);  // one may be ready, and the connection was not open before
  // Who closes everything has not got it any more, and gets another.
  CHECK_EQ(gpu.submit(out), 0);
  for (const int fd : open_descriptors())
    if (fd >= 512) close(fd);
  const int file = to_fd(gpu.fd, out, kExport);
  CHECK_EQ(import_file(gpu.fd, out, file), 0);
  CHECK_EQ(wait_for_many(gpu.fd, {out}, 0, INT64_MAX), 0);
}

/// As Mesa's Vulkan drivers present: one thread looks until another has submitted, both export the semaphore,
/// and there are two by turns.
SCENARIO(syncobjs_exported_by_turns) {
  Submitter gpu;
  const uint32_t outs[2] = {create_syncobj(gpu.fd), create_syncobj(gpu.fd)};
  const size_t before = open_descriptors().size();
  const auto check = [&](int file) {
    pollfd readable{file, POLLIN, 0};
    CHECK_EQ(poll(&readable, 1, 10'000), 1);
    const uint32_t mine = create_syncobj(gpu.fd);
    CHECK_EQ(import_file(gpu.fd, mine, file), 0);
    CHECK_EQ(wait_for_many(gpu.fd, {mine}, 0, INT64_MAX), 0);
    CHECK_EQ(destroy_syncobj(gpu.fd, mine), 0);
    close(file);
  };
  for (int i = 0; i < 60; ++i) {
    const uint32_t out = outs[i % 2];
    CHECK_EQ(reset(gpu.fd, {out}), 0);
    std::thread submits([&] {
      if (i % 3) usleep(300);
      CHECK_EQ(gpu.submit(0), 0);
      CHECK_EQ(gpu.submit(out), 0);
    });
    int first;
    while ((first = to_fd(gpu.fd, out, kExport)) == -EINVAL) {
    }
    submits.join();
    const int second = to_fd(gpu.fd, out, kExport), third = to_fd(gpu.fd, out, kExport);
    CHECK(first >= 0 && second >= 0 && third >= 0 && first != second && second != third);
    check(first);
    check(third);
    check(second);
  }
  CHECK(open_descriptors().size() <= before + 2);
}

namespace {

/// Timeline and context of a sync_file's fence: the same of all of one file's.
std::string origin(int file) {
  sync_file_info info{};
  CHECK_EQ(ioctl(file, SYNC_IOC_FILE_INFO, &info), 0);
  const std::string name = info.name;
  return name.substr(0, name.rfind('-'));
}

}  // namespace

/// Files take each other's places in the library, and number alike what their syncobjs hold.
SCENARIO(sync_files_of_closed_files) {
  std::string first;
  {
    Submitter gpu;
    const uint32_t out = create_syncobj(gpu.fd), other = create_syncobj(gpu.fd);
    CHECK_EQ(signal_syncobj(gpu.fd, other), 0);
    for (int n = 0; n < 3; ++n) CHECK_EQ(gpu.submit(out), 0);
    const int file = to_fd(gpu.fd, out, kExport);
    first = origin(file);
    close(file);
    // The third of these brings one that nobody exports.
    for (int n = 0; n < 3; ++n) CHECK_EQ(gpu.submit(out), 0);
    close(to_fd(gpu.fd, other, kExport));
  }
  Submitter gpu;
  const uint32_t out = create_syncobj(gpu.fd), other = create_syncobj(gpu.fd);
  CHECK_EQ(signal_syncobj(gpu.fd, other), 0);
  for (int n = 0; n < 4; ++n) CHECK_EQ(signal_syncobj(gpu.fd, out), 0);
  for (int n = 0; n < 2; ++n) CHECK_EQ(gpu.submit(out), 0);
  const int file = to_fd(gpu.fd, out, kExport);
  CHECK(file >= 0);
  CHECK(origin(file) != first);
  close(file);
}

SCENARIO(waits_hear_of_imports) {
  Submitter gpu;
  const uint32_t out = create_syncobj(gpu.fd);
  uint32_t a = create_syncobj(gpu.fd);
  const uint32_t never = create_syncobj(gpu.fd);
  for (int i = 0; i < 60; ++i) {
    // One handle is waited for in the status, two by the daemon.
    std::vector<uint32_t> handles{a};
    if (i % 2) handles.push_back(never);
    std::thread waits([&] { CHECK_EQ(wait_for_many(gpu.fd, handles, kForSubmit, INT64_MAX), 0); });
    if (i % 3) usleep(300);
    CHECK_EQ(gpu.submit(out), 0);
    const int file = to_fd(gpu.fd, out, kExport);
    CHECK_EQ(import_file(gpu.fd, a, file), 0);
    waits.join();
    close(file);
    CHECK_EQ(destroy_syncobj(gpu.fd, a), 0);
    a = create_syncobj(gpu.fd);
  }
}

SCENARIO(many_syncobjs) {
  int fd = open_render();
  std::vector<uint32_t> all;
  for (int i = 0; i < 1500; ++i) all.push_back(create_syncobj(fd));
  for (uint32_t handle : {all.front(), all[510], all[511], all[512], all.back()}) {
    CHECK_EQ(wait_for_many(fd, {handle}, kForSubmit, 0), ETIME);
    std::thread later([&] {
      usleep(20'000);
      CHECK_EQ(signal_syncobj(fd, handle), 0);
    });
    CHECK_EQ(wait_for_many(fd, {handle}, kForSubmit, INT64_MAX), 0);
    later.join();
    CHECK_EQ(reset(fd, {handle}), 0);
    CHECK_EQ(wait_for_many(fd, {handle}, 0, 0), EINVAL);
  }
  for (uint32_t handle : all) CHECK_EQ(signal_syncobj(fd, handle), 0);
  CHECK_EQ(wait_for_many(fd, all, kAll, 0), 0);
}

SCENARIO(resets_of_many_threads) {
  int fd = open_render();
  const uint32_t a = create_syncobj(fd);
  // Who signals and then resets leaves it empty, whoever else did so before.
  for (int round = 0; round < 50; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < 10; ++k) {
          CHECK_EQ(signal_syncobj(fd, a), 0);
          CHECK_EQ(reset(fd, {a}), 0);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK_EQ(wait_for_many(fd, {a}, 0, 0), EINVAL);
  }
  // The child of a fork sees what its parent does, and the other way round.
  CHECK_EQ(signal_syncobj(fd, a), 0);
  const pid_t child = fork();
  if (child == 0) {
    const bool seen = wait_for_many(fd, {a}, 0, 0) == 0;
    _exit(seen && reset(fd, {a}) == 0 ? 0 : 1);
  }
  CHECK_EQ(wait_for(child), 0);
  CHECK_EQ(wait_for_many(fd, {a}, 0, 0), EINVAL);
}
