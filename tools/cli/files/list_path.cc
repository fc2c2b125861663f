#include "tools/cli/files/list_path.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/runtime_folder.h"

namespace v3d::tools {
namespace {

// LD_PRELOAD is divided at blanks and colons, LD_LIBRARY_PATH also at semicolons, and both expand $ORIGIN and
// its like; qemu-user divides what it is to set in the environment (-E) at commas.
constexpr char kSeparators[] = " \t\n:;,$";

bool is_divided(const std::string& path) { return path.find_first_of(kSeparators) != std::string::npos; }

/// One link for each target: FNV-1a of its name.
std::string link_name(const std::string& target) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : target) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return absl::StrCat("link-", absl::Hex(hash, absl::kZeroPad16));
}

}  // namespace

absl::StatusOr<std::string> list_path(const std::string& path) {
  if (!is_divided(path)) return path;
  const std::string folder = daemon::default_runtime_folder();
  const std::string why = absl::StrCat("\"", path, "\" holds a blank or another separator of lists, ");
  if (is_divided(folder))
    return absl::FailedPreconditionError(
        absl::StrCat(why, "and so does the runtime folder \"", folder, "\""));
  if (const absl::Status made = daemon::make_private_folder(folder); !made.ok())
    return absl::FailedPreconditionError(absl::StrCat(why, "and no link can be made: ", made.message()));
  const std::string target = std::filesystem::absolute(path);
  const std::string link = absl::StrCat(folder, "/", link_name(target));
  std::error_code none;
  if (std::filesystem::read_symlink(link, none) == target) return link;
  const std::string early = absl::StrCat(link, "~", getpid());
  if (symlink(target.c_str(), early.c_str()) != 0 || rename(early.c_str(), link.c_str()) != 0)
    return absl::FailedPreconditionError(
        absl::StrCat(why, "and ", link, " cannot be made: ", std::strerror(errno)));
  return link;
}

}  // namespace v3d::tools
