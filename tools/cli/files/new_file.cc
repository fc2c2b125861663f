#include "tools/cli/files/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace v3d::tools {

absl::Status NewFile::failed(const std::string& why) const {
  return absl::UnknownError(absl::StrCat(path_, ": ", why));
}

NewFile::~NewFile() {
  if (stream_) fclose(stream_);
  if (!draft_.empty()) unlink(draft_.c_str());
}

/// Its name is of this process and this object, which may be one of several for one path. What others of that
/// number have left, or make in another pid namespace, is let be.
int NewFile::open_draft() {
  constexpr int kMostTries = 1000;
  static std::atomic<unsigned> made{0};
  const size_t name = target_.rfind('/') + 1;  // 0 without a folder
  for (int i = 0; i < kMostTries; ++i) {
    const std::string begin = absl::StrCat(".", getpid(), "-", ++made, "~");
    // It ends as the name does, but is no longer than one may be.
    const size_t room = NAME_MAX - std::min<size_t>(begin.size(), NAME_MAX);
    const std::string own = target_.substr(name);
    std::string draft =
        absl::StrCat(target_.substr(0, name), begin, own.substr(own.size() - std::min(own.size(), room)));
    const int fd = open(draft.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) draft_ = std::move(draft);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

absl::Status NewFile::begin() {
  struct stat info;
  target_ = path_;
  const bool existed = lstat(path_.c_str(), &info) == 0;
  if (existed) {
    char resolved[PATH_MAX];
    if (!realpath(path_.c_str(), resolved) || stat(resolved, &info) != 0) return failed(strerror(errno));
    if (!S_ISREG(info.st_mode)) return failed("this is no regular file, and stays as it is");
    target_ = resolved;
  } else if (errno != ENOENT) {
    return failed(strerror(errno));
  }
  const int fd = open_draft();
  if (fd < 0) {
    const char* const why = strerror(errno);
    return existed ? failed(absl::StrCat("no file can be made beside it to replace it: ", why)) : failed(why);
  }
  if (existed) fchmod(fd, info.st_mode & 07777);
  stream_ = fdopen(fd, "w+b");
  if (stream_) return absl::OkStatus();
  const int error = errno;
  close(fd);
  return failed(strerror(error));
}

absl::Status NewFile::finish() {
  const bool wrote = ferror(stream_) == 0;
  if (fclose(std::exchange(stream_, nullptr)) != 0) return failed(strerror(errno));
  if (!wrote) return failed("not all of it could be written");  // nobody knows errno of that time any more
  if (rename(draft_.c_str(), target_.c_str()) != 0) return failed(strerror(errno));
  draft_.clear();
  return absl::OkStatus();
}

absl::Status replace_file(const std::string& path, const std::string& contents) {
  NewFile file(path);
  if (absl::Status begun = file.begin(); !begun.ok()) return begun;
  if (fwrite(contents.data(), 1, contents.size(), file.stream()) != contents.size())
    return absl::UnknownError(absl::StrCat(path, ": ", strerror(errno)));
  return file.finish();
}

}  // namespace v3d::tools
