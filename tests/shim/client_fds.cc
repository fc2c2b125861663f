/// Descriptors: duplicates, numbers that are used again, fork, exec, passing to other processes, and those
/// who close what is not theirs.

#include <drm.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/shim/client.h"

using namespace client;

namespace {

/// A byte with room for one descriptor.
struct Message {
  char byte = 'x';
  iovec piece{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{.msg_name = nullptr,
                .msg_namelen = 0,
                .msg_iov = &piece,
                .msg_iovlen = 1,
                .msg_control = control,
                .msg_controllen = sizeof(control),
                .msg_flags = 0};
};

bool send_descriptor(int socket, int fd) {
  Message message;
  cmsghdr* header = CMSG_FIRSTHDR(&message.header);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  return sendmsg(socket, &message.header, 0) == 1;
}

int receive_descriptor(int socket) {
  Message message;
  if (recvmsg(socket, &message.header, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&message.header)) return -1;
  int fd;
  memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message.header)), sizeof(fd));
  return fd;
}

bool same_description(int a, int b) {
  pid_t self = getpid();
  return syscall(SYS_kcmp, self, self, 0 /* KCMP_FILE */, a, b) == 0;
}

/// A buffer is visible through `fd`: same handle space as where it was made.
void check_sees_bo(int fd, uint32_t handle) {
  CHECK(map_offset(fd, handle) != 0);
  CHECK_EQ(driver_name(fd), "v3d");
}

void close_high_descriptors() {
  for (int fd : open_descriptors()) {
    if (fd > 2) close(fd);
  }
}

}  // namespace

SCENARIO(duplicates) {
  int fd = open_render();
  uint32_t bo = create_bo(fd, 4096);
  CHECK(bo != 0);
  int a = dup(fd);
  int b = fcntl(fd, F_DUPFD_CLOEXEC, 40);
  int c = dup2(fd, 50);
  int d = dup3(fd, 51, O_CLOEXEC);
  int e = fcntl(fd, F_DUPFD, 60);
  CHECK(b >= 40 && c == 50 && d == 51 && e >= 60);
  close(fd);  // the first one: the file lives on in the others
  for (int one : {a, b, c, d, e}) {
    check_sees_bo(one, bo);
    CHECK(same_description(a, one));
    struct stat st;
    CHECK(fstat(one, &st) == 0 && st.st_rdev == makedev(226, 128));
  }
  CHECK_ERRNO(ioctl(fd, DRM_IOCTL_GET_CAP, nullptr), EBADF);
  // Another open is another file, with handles of its own.
  int other = open_render();
  CHECK(!same_description(a, other));
  CHECK_EQ(map_offset(other, bo), uint64_t{0});
  for (int one : {a, b, c, d, e, other}) close(one);
}

SCENARIO(numbers_used_again) {
  for (int round = 0; round < 20; ++round) {
    int fd = open_render();
    CHECK_EQ(driver_name(fd), "v3d");
    // Behind the shim's back, as libc does in fclose, posix_spawn and others.
    if (round % 2) {
      syscall(SYS_close, fd);
    } else {
      close(fd);
    }
    int file = open("/dev/zero", O_RDONLY);
    CHECK_EQ(file, fd);
    CHECK_EQ(driver_name(file), "");
    CHECK_EQ(errno, ENOTTY);
    struct stat st;
    CHECK(fstat(file, &st) == 0 && st.st_rdev == makedev(1, 5));
    // DRM over the ordinary file, and an ordinary socket over the DRM file.
    int again = open_render();
    CHECK_EQ(dup2(again, file), file);
    CHECK_EQ(driver_name(file), "v3d");
    int pair[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    CHECK_EQ(dup2(pair[0], file), file);
    CHECK_EQ(driver_name(file), "");
    CHECK(fstat(file, &st) == 0 && S_ISSOCK(st.st_mode));
    for (int one : {file, again, pair[0], pair[1]}) close(one);
  }
}

SCENARIO(forked) {
  int fd = open_render();
  uint32_t bo = create_bo(fd, 4096);
  auto* map = static_cast<volatile uint32_t*>(map_bo(fd, bo, 4096));
  CHECK(map != MAP_FAILED);
  uint32_t done = create_syncobj(fd);
  pid_t child = fork();
  if (child == 0) {
    check_sees_bo(fd, bo);
    map[1] = 4711;
    // Both processes talk at the same time.
    for (int i = 0; i < 200; ++i) CHECK(map_offset(fd, bo) != 0);
    CHECK_EQ(signal_syncobj(fd, done), 0);
    _exit(failures() ? 1 : 0);
  }
  for (int i = 0; i < 200; ++i) CHECK(map_offset(fd, bo) != 0);
  CHECK_EQ(wait_syncobj(fd, done, monotonic_ns() + 10'000'000'000), 0);
  CHECK_EQ(wait_for(child), 0);
  CHECK_EQ(map[1], 4711u);
  // fork without handlers, as in some run-times.
  child = static_cast<pid_t>(syscall(SYS_fork));
  if (child == 0) {
    check_sees_bo(fd, bo);
    _exit(failures() ? 1 : 0);
  }
  CHECK_EQ(wait_for(child), 0);
  check_sees_bo(fd, bo);
}

/// Child of `executed`: number of an inherited descriptor, handle of a buffer.
SCENARIO(executed_child) {
  int fd = atoi(arguments()[0].c_str());
  auto bo = static_cast<uint32_t>(atoi(arguments()[1].c_str()));
  struct stat st;
  CHECK(fstat(fd, &st) == 0 && st.st_rdev == makedev(226, 128));  // the first call on it
  check_sees_bo(fd, bo);
}

SCENARIO(executed) {
  int fd = open(kRenderNode, O_RDWR);
  uint32_t bo = create_bo(fd, 4096);
  CHECK_EQ(run_self({"executed_child", std::to_string(fd), std::to_string(bo)}), 0);
  CHECK_EQ(fcntl(fd, F_SETFD, FD_CLOEXEC), 0);
  CHECK(run_self({"executed_child", std::to_string(fd), std::to_string(bo)}) != 0);
}

/// Child of `passed`: number of a socket from which a DRM descriptor comes, as from an X server with DRI3.
SCENARIO(passed_child) {
  int fd = receive_descriptor(atoi(arguments()[0].c_str()));
  CHECK(fd >= 0);
  // An ioctl as the first call.
  check_sees_bo(fd, static_cast<uint32_t>(atoi(arguments()[1].c_str())));
  CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
}

SCENARIO(passed_to_another_process) {
  int fd = open_render();
  uint32_t bo = create_bo(fd, 4096);
  int pair[2];
  CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  CHECK(send_descriptor(pair[0], fd));
  close(fd);  // in flight it lives on
  CHECK_EQ(run_self({"passed_child", std::to_string(pair[1]), std::to_string(bo)}), 0);
  // A DRM file that this process has never seen, received from itself.
  int again = open_render();
  CHECK(send_descriptor(pair[0], again));
  int received = receive_descriptor(pair[1]);
  CHECK(same_description(again, received));
  CHECK_EQ(driver_name(received), "v3d");
}

/// Child of `foreign_sockets`: numbers of inherited sockets that no daemon of ours made.
SCENARIO(foreign_sockets_child) {
  for (const std::string& number : arguments()) {
    int fd = atoi(number.c_str());
    struct stat st;
    for (int round = 0; round < 3; ++round) {
      CHECK(fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode));
      CHECK_EQ(driver_name(fd), "");
      CHECK_EQ(errno, ENOTTY);
    }
  }
}

SCENARIO(foreign_sockets) {
  close(open_render());  // a daemon runs
  int packets[2], stream[2];
  CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, packets), 0);
  CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, stream), 0);
  CHECK_EQ(run_self({"foreign_sockets_child", std::to_string(packets[0]), std::to_string(packets[1]),
                     std::to_string(stream[0])}),
           0);
}

SCENARIO(spawned_child_closes) {
  int fd = open_render();
  uint32_t bo = create_bo(fd, 4096);
  // File actions run in the child while it shares our memory.
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addclose(&actions, fd);
  posix_spawn_file_actions_adddup2(&actions, 0, fd);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  char name[] = "true";
  char* words[] = {name, nullptr};
  pid_t child;
  CHECK_EQ(posix_spawnp(&child, "true", &actions, nullptr, words, environ), 0);
  CHECK_EQ(wait_for(child), 0);
  check_sees_bo(fd, bo);
  // The same by hand.
  child = vfork();
  if (child == 0) {
    close(fd);
    dup2(0, fd);
    close_range(3, ~0u, 0);
    chdir("/sys");
    execlp("true", "true", nullptr);
    _exit(1);
  }
  CHECK_EQ(wait_for(child), 0);
  check_sees_bo(fd, bo);
  CHECK_EQ(system("true"), 0);
  check_sees_bo(fd, bo);
}

SCENARIO(everything_closed) {
  for (int way = 0; way < 4; ++way) {
    int fd = open_render();
    CHECK(create_bo(fd, 4096) != 0);
    switch (way) {
      case 0:
        CHECK_EQ(close_range(3, ~0u, 0), 0);
        break;
      case 1:
        closefrom(3);
        break;
      case 2:
        syscall(SYS_close_range, 3, ~0u, 0);
        break;
      case 3:
        close_high_descriptors();
        break;
    }
    CHECK_ERRNO(ioctl(fd, DRM_IOCTL_GET_CAP, nullptr), EBADF);
    // The control connection is gone too; a new one is made.
    int again = open_render();
    CHECK_EQ(again, fd);
    uint32_t bo = create_bo(again, 4096);
    check_sees_bo(again, bo);
    close(again);
  }
}

SCENARIO(private_number_taken) {
  int fd = open_render();
  CHECK(create_bo(fd, 4096) != 0);
  // Somebody's file takes the number of the control connection: it must neither be written nor closed.
  std::vector<int> high;
  for (int one : open_descriptors()) {
    if (one >= 512) high.push_back(one);
  }
  CHECK_EQ(high.size(), size_t{1});
  int memory = memfd_create("victim", MFD_CLOEXEC);
  for (int one : high) CHECK_EQ(dup2(memory, one), one);
  CHECK(create_bo(fd, 4096) != 0);
  CHECK_EQ(lseek(memory, 0, SEEK_END), off_t{0});
  for (int one : high) CHECK_EQ(fcntl(one, F_GETFD), 0);
  close(fd);
}

SCENARIO(descriptors_stay_low) {
  const std::vector<int> before = open_descriptors();
  int fd = open_render();
  int next = dup(0);
  CHECK_EQ(next, fd + 1);
  uint32_t bo = create_bo(fd, 4096);
  void* map = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(map_offset(fd, bo)));
  CHECK(map != MAP_FAILED);
  int third = dup(0);
  CHECK_EQ(third, fd + 2);  // the memfd behind the mapping is closed again
  for (int one : {fd, next, third}) close(one);
  // All that remains is the connection, out of the way.
  for (int one : open_descriptors()) {
    CHECK(one >= 512 || std::find(before.begin(), before.end(), one) != before.end());
  }
}

SCENARIO(few_descriptors) {
  rlimit limit{64, 64};
  CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  int fd = open_render();
  check_sees_bo(fd, create_bo(fd, 4096));
  close(fd);
}

SCENARIO(threads_leave_nothing) {
  int fd = open_render();
  auto work = [&] { CHECK(create_bo(fd, 4096) != 0); };
  std::thread(work).join();
  const size_t before = open_descriptors().size();
  for (int i = 0; i < 50; ++i) std::thread(work).join();
  CHECK_EQ(open_descriptors().size(), before);
  // The child of a fork keeps no connection of its parent's threads, which would hide their end.
  std::vector<std::thread> threads;
  uint32_t wake = create_syncobj(fd);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      work();
      CHECK_EQ(wait_syncobj(fd, wake, INT64_MAX), 0);
    });
  }
  usleep(50'000);
  pid_t child = fork();
  if (child == 0) {
    for (int one : open_descriptors()) CHECK(one < 512);
    _exit(failures() ? 1 : 0);
  }
  CHECK_EQ(wait_for(child), 0);
  CHECK_EQ(signal_syncobj(fd, wake), 0);
  for (std::thread& thread : threads) thread.join();
}
