#include "daemon/runtime_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"

namespace v3d::daemon {

std::string default_runtime_folder() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  return runtime && *runtime ? absl::StrCat(runtime, "/v3demu") : absl::StrCat("/tmp/v3demu-", geteuid());
}

absl::Status make_private_folder(const std::string& folder) {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), ignored);
  if (mkdir(folder.c_str(), 0700) == 0) return absl::OkStatus();
  struct stat info;
  if (errno != EEXIST || lstat(folder.c_str(), &info) != 0)
    return absl::UnavailableError(absl::StrCat("cannot make ", folder, ": ", std::strerror(errno)));
  if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 022))
    return absl::FailedPreconditionError(absl::StrCat(folder, " belongs to others or is writable by them"));
  return absl::OkStatus();
}

}  // namespace v3d::daemon
