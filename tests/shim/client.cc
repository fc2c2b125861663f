#include "tests/shim/client.h"

#include <dirent.h>
#include <drm.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace client {
namespace {

std::map<std::string, Scenario>& scenarios() {
  static std::map<std::string, Scenario> all;
  return all;
}

std::atomic<int> failed{0};
std::vector<std::string> rest;

struct CreateBo {
  uint32_t size, flags, handle, offset;
};
struct MmapBo {
  uint32_t handle, flags;
  uint64_t offset;
};

}  // namespace

void add(const char* name, Scenario scenario) { scenarios()[name] = scenario; }

void fail(const char* file, int line, const std::string& what) {
  int error = errno;
  fprintf(stderr, "%s:%d: failed: %s (errno %d)\n", file, line, what.c_str(), error);
  ++failed;
  errno = error;
}

void differ(const char* file, int line, const char* a, const char* b, const std::string& a_shown,
            const std::string& b_shown) {
  std::string text = a;
  text.append(" == ").append(b).append(": ").append(a_shown).append(" and ").append(b_shown);
  fail(file, line, text);
}

int failures() { return failed; }

int open_render(int extra_flags) {
  int fd = open(kRenderNode, O_RDWR | O_CLOEXEC | extra_flags);
  CHECK(fd >= 0);
  return fd;
}

std::string driver_name(int fd) {
  char name[32] = {};
  drm_version version{};
  version.name = name;
  version.name_len = sizeof(name) - 1;
  return ioctl(fd, DRM_IOCTL_VERSION, &version) == 0 ? name : "";
}

uint32_t create_bo(int fd, uint32_t size) {
  CreateBo create{size, 0, 0, 0};
  return ioctl(fd, _IOWR('d', 0x42, CreateBo), &create) == 0 ? create.handle : 0;
}

int close_bo(int fd, uint32_t handle) {
  drm_gem_close close{handle, 0};
  return ioctl(fd, DRM_IOCTL_GEM_CLOSE, &close) == 0 ? 0 : errno;
}

uint64_t map_offset(int fd, uint32_t handle) {
  MmapBo map{handle, 0, 0};
  return ioctl(fd, _IOWR('d', 0x43, MmapBo), &map) == 0 ? map.offset : 0;
}

void* map_bo(int fd, uint32_t bo, size_t length, int flags) {
  return mmap(nullptr, length, PROT_READ | PROT_WRITE, flags, fd, static_cast<off_t>(map_offset(fd, bo)));
}

uint32_t create_syncobj(int fd) {
  drm_syncobj_create create{};
  return ioctl(fd, DRM_IOCTL_SYNCOBJ_CREATE, &create) == 0 ? create.handle : 0;
}

int wait_syncobj(int fd, uint32_t handle, int64_t timeout_ns) {
  drm_syncobj_wait wait{};
  wait.handles = reinterpret_cast<uint64_t>(&handle);
  wait.count_handles = 1;
  wait.timeout_nsec = timeout_ns;
  wait.flags = DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT;
  return ioctl(fd, DRM_IOCTL_SYNCOBJ_WAIT, &wait) == 0 ? 0 : errno;
}

int signal_syncobj(int fd, uint32_t handle) {
  drm_syncobj_array array{};
  array.handles = reinterpret_cast<uint64_t>(&handle);
  array.count_handles = 1;
  return ioctl(fd, DRM_IOCTL_SYNCOBJ_SIGNAL, &array) == 0 ? 0 : errno;
}

int64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}

int wait_for(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int run_self(const std::vector<std::string>& list) {
  std::vector<char*> words{const_cast<char*>("shim_client")};
  for (const std::string& word : list) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_t child;
  if (posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, words.data(), environ) != 0) return -1;
  return wait_for(child);
}

const std::vector<std::string>& arguments() { return rest; }

std::vector<int> open_descriptors() {
  std::vector<int> numbers;
  DIR* folder = opendir("/proc/self/fd");
  while (dirent* entry = folder ? readdir(folder) : nullptr) {
    if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(folder))
      numbers.push_back(atoi(entry->d_name));
  }
  if (folder) closedir(folder);
  return numbers;
}

}  // namespace client

int main(int argc, char** argv) {
  auto found = argc > 1 ? client::scenarios().find(argv[1]) : client::scenarios().end();
  if (found == client::scenarios().end()) {
    for (auto& [name, scenario] : client::scenarios()) puts(name.c_str());
    return 2;
  }
  for (int i = 2; i < argc; ++i) client::rest.push_back(argv[i]);
  found->second();
  return client::failures() ? 1 : 0;
}
