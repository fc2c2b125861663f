/// Processes that become somebody else: what they opened stays theirs.

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "tests/shim/client.h"

using namespace client;

namespace {

/// Its number is an argument, so that its folder in /tmp is nobody's.
uid_t stranger() { return static_cast<uid_t>(std::stoul(arguments().at(0))); }

void become_stranger() {
  CHECK_EQ(setgid(stranger()), 0);
  CHECK_EQ(setuid(stranger()), 0);
}

struct Handle {
  uint32_t handle, flags;
  int32_t fd;
};
constexpr unsigned long kHandleToFd = _IOWR('d', 0x2d, Handle), kFdToHandle = _IOWR('d', 0x2e, Handle);

/// What asks the daemon, from this thread and from one that has no connection yet.
void use(int fd) {
  const auto ask = [fd] {
    const uint32_t bo = create_bo(fd, 4096);
    CHECK(bo != 0);
    void* memory =
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(map_offset(fd, bo)));
    CHECK(memory != MAP_FAILED);
    if (memory != MAP_FAILED) memset(memory, 1, 4096);
    CHECK_EQ(close_bo(fd, bo), 0);
  };
  ask();
  std::thread(ask).join();
}

/// Of the same daemon: a buffer of one is a buffer of the other.
void share(int from, int to) {
  Handle shared{create_bo(from, 4096), 0, -1};
  CHECK_EQ(ioctl(from, kHandleToFd, &shared), 0);
  Handle taken{0, 0, shared.fd};
  CHECK_EQ(ioctl(to, kFdToHandle, &taken), 0);
  close(shared.fd);
}

/// What a node looks like, and another one of them.
void open_another(int fd) {
  struct stat st;
  CHECK_EQ(stat(kRenderNode, &st), 0);
  CHECK(S_ISCHR(st.st_mode));
  CHECK_EQ(access("/sys/dev/char/226:128/device/uevent", R_OK), 0);
  const int other = open_render(O_CLOEXEC);
  use(other);
  share(fd, other);
  close(other);
}

/// In a child, which ends then.
void in_child(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    const int before = failures();
    work();
    _exit(failures() != before);
  }
  CHECK_EQ(wait_for(child), 0);
}

}  // namespace

SCENARIO(open_nodes_stay) {
  const int fd = open_render();
  use(fd);
  // The process itself, whose first thread has a connection.
  in_child([fd] {
    use(fd);
    become_stranger();
    use(fd);
    open_another(fd);
  });
  // One that has none.
  in_child([fd] {
    become_stranger();
    use(fd);
    open_another(fd);
    in_child([fd] { use(fd); });
  });
  // For a while only, as servers do.
  in_child([fd] {
    CHECK_EQ(seteuid(stranger()), 0);
    use(fd);
    CHECK_EQ(seteuid(0), 0);
    use(fd);
    const int other = open_render();
    share(fd, other);
  });
  // Another root.
  in_child([fd] {
    CHECK_EQ(chroot("/proc/self/fdinfo"), 0);
    CHECK_EQ(chdir("/"), 0);
    use(fd);
    become_stranger();
    use(fd);
  });
}

/// With the number of an inherited descriptor as the second argument.
SCENARIO(uses_what_it_was_given) {
  const int fd = std::stoi(arguments().at(1));
  use(fd);
  struct stat st;
  CHECK_EQ(fstat(fd, &st), 0);
  CHECK(S_ISCHR(st.st_mode));
}

SCENARIO(open_nodes_are_inherited) {
  const int fd = open_render();
  fcntl(fd, F_SETFD, 0);
  in_child([fd] {
    become_stranger();
    CHECK_EQ(run_self({"uses_what_it_was_given", std::to_string(stranger()), std::to_string(fd)}), 0);
  });
}

SCENARIO(opens_as_a_stranger) {
  become_stranger();
  const int fd = open_render();
  use(fd);
  open_another(fd);
}
