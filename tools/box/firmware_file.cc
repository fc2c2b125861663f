/// The file that stands for a supervised program to the firmware is in its own table of descriptors: forks
/// hand it on, exec and the end of the program close it, as in a program with the preload library.
#include "shim/board/firmware_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include "tools/box/caller.h"

namespace v3d::box {
namespace {

/// So many files are known; of a program that makes more, the oldest cease to stand for it.
constexpr size_t kMostKnown = 4096;

struct Known {
  dev_t dev;
  ino_t ino;
  pid_t daemon;
  uint64_t token;
};
/// Of all programs of this supervisor. Sockets' numbers are not used again.
std::mutex known_mutex;
std::vector<Known> known_files;
size_t next_known = 0;

bool find_known(const struct stat& st, shim::FirmwareFile* out) {
  const std::lock_guard lock(known_mutex);
  for (const Known& known : known_files) {
    if (known.ino != st.st_ino || known.dev != st.st_dev) continue;
    *out = {-1, known.daemon, known.token};
    return true;
  }
  return false;
}

void remember(const struct stat& st, const shim::FirmwareFile& file) {
  const std::lock_guard lock(known_mutex);
  const Known known{st.st_dev, st.st_ino, file.daemon, file.token};
  if (known_files.size() < kMostKnown)
    known_files.push_back(known);
  else
    known_files[next_known++ % kMostKnown] = known;
}

/// Among the caller's descriptors. 0, -ENOENT if there is none, or another negative errno.
int find_in_caller(Caller& caller, shim::FirmwareFile* out) {
  {
    const std::lock_guard lock(known_mutex);
    if (known_files.empty()) return -ENOENT;
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(caller.proc("fd").c_str()), closedir);
  if (!folder) return -errno;
  while (const dirent* entry = readdir(folder.get())) {
    struct stat st;
    if (entry->d_name[0] == '.' || fstatat(dirfd(folder.get()), entry->d_name, &st, 0) != 0) continue;
    if (!S_ISSOCK(st.st_mode) || !find_known(st, out)) continue;
    out->fd = caller.borrow(atoi(entry->d_name));
    struct stat borrowed;
    if (out->fd >= 0 && fstat(out->fd, &borrowed) == 0 && borrowed.st_ino == st.st_ino) return 0;
  }
  return -ENOENT;
}

}  // namespace
}  // namespace v3d::box

namespace v3d::shim {

int find_firmware_file(FirmwareFile* out) {
  box::Caller& caller = *box::Caller::current();
  int error = box::find_in_caller(caller, out);
  if (error != -ENOENT) return error;
  // Threads of a program that call at one time must not each open one.
  static std::mutex opening;
  const std::lock_guard lock(opening);
  error = box::find_in_caller(caller, out);
  if (error != -ENOENT) return error;
  error = open_firmware_file(out);
  if (error) return error;
  struct stat st;
  const int number = fstat(out->fd, &st) == 0 ? caller.give_high(out->fd) : -errno;
  if (number >= 0) {
    box::remember(st, *out);
    caller.keep(out->fd);
    return 0;
  }
  close(out->fd);
  return number;
}

}  // namespace v3d::shim
