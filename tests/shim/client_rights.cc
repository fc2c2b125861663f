/// Processes that become somebody else, whose nodes stay theirs, and what a daemon is not to take from
/// whoever starts it.

#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
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
    void* memory = map_bo(fd, bo, 4096);
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

namespace {

std::string file_of_daemon(int node, const char* name) {
  ucred maker{};
  socklen_t size = sizeof(maker);
  CHECK_EQ(getsockopt(node, SOL_SOCKET, SO_PEERCRED, &maker, &size), 0);
  std::ifstream file("/proc/" + std::to_string(maker.pid) + "/" + name);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// What stands behind a name in a file of /proc.
std::string value(const std::string& text, const std::string& name) {
  const size_t at = text.find(name);
  if (at == std::string::npos) return "none";
  const size_t start = text.find_first_not_of(" \t", at + name.size());
  return text.substr(start, text.find('\n', start) - start);
}

void limit(__rlimit_resource resource, rlim_t soft) {
  rlimit now;
  CHECK_EQ(getrlimit(resource, &now), 0);
  now.rlim_cur = soft;
  CHECK_EQ(setrlimit(resource, &now), 0);
}

}  // namespace

SCENARIO(daemon_goes_its_own_way) {
  std::ifstream own("/proc/self/status");
  const std::string cpus = value(std::string(std::istreambuf_iterator<char>(own), {}), "Cpus_allowed_list:");
  limit(RLIMIT_FSIZE, 1 << 20);
  limit(RLIMIT_STACK, 64 << 20);
#ifndef V3DEMU_DAEMON_HAS_SHADOW
  limit(RLIMIT_DATA, 1 << 30);
#endif
  limit(RLIMIT_CPU, 3600);
  umask(0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(sched_getcpu()), &one);
  CHECK_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const sched_param none{};
  CHECK_EQ(sched_setscheduler(0, SCHED_BATCH, &none), 0);
  if (geteuid() == 0) CHECK_EQ(setpriority(PRIO_PROCESS, 0, 5), 0);
  std::ofstream("/proc/self/oom_score_adj") << "500";
  CHECK_EQ(personality(ADDR_NO_RANDOMIZE), 0);
  CHECK_EQ(prctl(PR_SET_TIMERSLACK, 1), 0);
  signal(SIGTERM, SIG_IGN);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  setenv("MALLOC_ARENA_MAX", "1", 1);
  char folder[] = "/tmp/v3demu-gone-XXXXXX";
  CHECK(mkdtemp(folder) && chdir(folder) == 0 && rmdir(folder) == 0);

  const int node = open_render();
  use(node);
  const std::string limits = file_of_daemon(node, "limits"), status = file_of_daemon(node, "status");
  for (const char* name : {"Max file size", "Max data size", "Max cpu time"})
    CHECK_EQ(value(limits, name).substr(0, 9), "unlimited");
  CHECK_EQ(value(limits, "Max stack size").substr(0, 7), "8388608");
  CHECK_EQ(value(status, "Umask:"), "0077");
  CHECK_EQ(value(status, "Cpus_allowed_list:"), cpus);
  CHECK_EQ(value(status, "SigBlk:"), "0000000000000000");
  CHECK_EQ(strtoul(value(status, "SigIgn:").c_str(), nullptr, 16) >> (SIGTERM - 1) & 1, 0ul);
  CHECK_EQ(file_of_daemon(node, "oom_score_adj"), "0\n");
  CHECK_EQ(file_of_daemon(node, "personality"), "00000000\n");
  CHECK_EQ(file_of_daemon(node, "timerslack_ns"), "50000\n");
  // Field 19 is the niceness and field 41 the policy.
  std::istringstream fields(file_of_daemon(node, "stat"));
  std::vector<std::string> words{std::istream_iterator<std::string>(fields), {}};
  CHECK_EQ(words.at(18), "0");
  CHECK_EQ(words.at(40), "0");
  const std::string environment = file_of_daemon(node, "environ");
  CHECK(environment.find("V3DEMU_SOCKET=") != std::string::npos);
  CHECK_EQ(environment.find("MALLOC_ARENA_MAX="), std::string::npos);
  CHECK_EQ(environment.find("HOME="), std::string::npos);
}

SCENARIO(daemon_of_few_descriptors) {
  const rlimit few{128, 128};
  CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  if (geteuid() == 0) become_stranger();
  use(open_render());
}

/// Its limits are hard: there is a daemon for such programs, and the others have theirs.
SCENARIO(limits_make_another_daemon) {
  CHECK_EQ(setpriority(PRIO_PROCESS, 0, 0), 0);  // niceness is a limit, too, and the tests' own may be any
  if (geteuid() == 0) become_stranger();
  const auto daemon = [] {
    ucred maker{};
    socklen_t size = sizeof(maker);
    const int node = open_render();
    use(node);
    getsockopt(node, SOL_SOCKET, SO_PEERCRED, &maker, &size);
    close(node);
    return maker.pid;
  };
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  for (int i = 0; i < 2; ++i) {
    in_child([&] {
      const rlimit hour{3600, 3600};
      CHECK_EQ(setrlimit(RLIMIT_CPU, &hour), 0);
      const pid_t pid = daemon();
      CHECK_EQ(write(ends[1], &pid, sizeof(pid)), static_cast<ssize_t>(sizeof(pid)));
    });
  }
  pid_t limited[2];
  CHECK_EQ(read(ends[0], limited, sizeof(limited)), static_cast<ssize_t>(sizeof(limited)));
  CHECK_EQ(limited[0], limited[1]);
  CHECK(daemon() != limited[0]);
}
