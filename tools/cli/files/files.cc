#include "tools/cli/files/files.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/cli/files/new_file.h"

namespace v3d::tools {
namespace {

namespace fs = std::filesystem;

/// Of this program; empty without /proc.
fs::path own_path() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

/// Of a build tree or an installation, whose bin/v3demu this program is, or whose libexec/v3demu/ holds it.
std::string own_prefix() {
  const fs::path folder = own_path().parent_path();
  if (folder.empty()) return {};
  const fs::path above = folder.parent_path();
  const bool libexec = folder.filename() == "v3demu" && above.filename() == "libexec";
  return (libexec ? above.parent_path() : above).string();
}

/// mesa-VERSION of the cache that was installed last and has drivers; empty if there is none.
std::string newest_cached_mesa() {
  std::error_code error;
  std::string newest;
  fs::file_time_type newest_time;
  for (const fs::directory_entry& entry : fs::directory_iterator(cache_folder(), error)) {
    const std::string install = entry.path() / "install";
    if (!entry.path().filename().string().starts_with("mesa-")) continue;
    if (broadcom_libraries(install, kHostArchitecture).empty()) continue;
    const fs::file_time_type time = fs::last_write_time(install, error);
    if (!newest.empty() && time <= newest_time) continue;
    newest = install;
    newest_time = time;
  }
  return newest;
}

}  // namespace

bool exists(const std::string& path) { return !path.empty() && access(path.c_str(), F_OK) == 0; }

std::optional<std::string> read_file(const std::string& path, size_t most) {
  FILE* file = path == "-" ? stdin : fopen(path.c_str(), "rbe");
  if (!file) return {};
  std::string contents;
  char chunk[1 << 16];
  errno = 0;
  for (size_t got; contents.size() <= most && (got = fread(chunk, 1, sizeof(chunk), file)) > 0;)
    contents.append(chunk, got);
  const bool too_large = contents.size() > most;
  const bool failed = too_large || ferror(file) != 0;
  const int error = too_large ? EFBIG : errno;
  if (file != stdin) fclose(file);
  errno = error;
  if (failed) return {};
  return contents;
}

absl::Status write_file(const std::string& path, const std::string& contents) {
  if (path != "-") return replace_file(path, contents);
  const bool written = fwrite(contents.data(), 1, contents.size(), stdout) == contents.size();
  if (fflush(stdout) == 0 && written) return absl::OkStatus();
  return absl::UnknownError(absl::StrCat("the standard output: ", strerror(errno)));
}

TemporaryFolder::TemporaryFolder(const std::string& name) {
  std::string pattern = fs::temp_directory_path() / (name + "-XXXXXX");
  if (mkdtemp(pattern.data())) path = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  if (!path.empty()) fs::remove_all(path, error);
}

std::string variable(const char* name) {
  const char* value = getenv(name);
  return value ? value : "";
}

std::string find_box() { return own_prefix() + "/libexec/v3demu/v3demu-box"; }

std::string find_x11_proxy() { return own_prefix() + "/libexec/v3demu/v3demu-x11"; }

std::string find_inspector() {
  const std::string own = own_path().filename(), name = "v3demu";
  // A program for a level of x86-64 has that at the end of its name.
  return own_prefix() + "/libexec/v3demu/v3demu-inspect" +
         (own.starts_with(name) ? own.substr(name.size()) : "");
}

std::string find_page(const std::string& name) { return own_prefix() + "/share/v3demu/" + name; }

std::string find_script(const std::string& name) { return own_prefix() + "/libexec/v3demu/" + name; }

std::string find_shim(const std::string& architecture) {
  if (std::string named = variable("V3DEMU_SHIM"); !named.empty()) return named;
  std::vector<std::string> folders = {"/lib/" + architecture + "/", "/lib/" + architecture + "/v3demu/"};
  folders.push_back("/lib/v3demu/" + architecture + "/");
  if (architecture == kHostArchitecture)
    folders.insert(folders.begin(), {"/lib/", "/lib/v3demu/", "/lib64/", "/lib64/v3demu/"});
  for (const std::string& folder : folders) {
    std::string path = own_prefix() + folder + "libv3demu.so";
    if (exists(path)) return path;
  }
  return {};
}

std::string find_daemon() {
  if (std::string named = variable("V3DEMU_DAEMON"); !named.empty()) return named;
  std::string path = own_prefix() + "/bin/v3demud";
  return exists(path) ? path : std::string();
}

std::string cache_folder() {
  if (std::string named = variable("V3DEMU_CACHE"); !named.empty()) return named;
  const std::string caches = variable("XDG_CACHE_HOME");
  return (caches.empty() ? variable("HOME") + "/.cache" : caches) + "/v3demu";
}

std::string broadcom_libraries(const std::string& prefix, const std::string& architecture) {
  for (const std::string& folder : {std::string("/lib"), "/lib/" + architecture, std::string("/lib64")}) {
    std::string libraries = prefix;
    libraries += folder;
    if (exists(libraries + "/libvulkan_broadcom.so")) return libraries;
  }
  return {};
}

std::vector<std::string> mesa_places() {
  return {own_prefix() + "/lib/v3demu/mesa", cache_folder() + "/mesa-25.0.7/install",
          cache_folder() + "/mesa-*/install"};
}

std::string find_mesa() {
  if (std::string named = variable("V3DEMU_MESA"); !named.empty()) return named;
  for (const std::string& place : mesa_places())
    if (!broadcom_libraries(place, kHostArchitecture).empty()) return place;
  if (std::string newest = newest_cached_mesa(); !newest.empty()) return newest;
  // That of the distribution, which has them where boards run it: on arm64.
  return broadcom_libraries("/usr", kHostArchitecture).empty() ? "" : "/usr";
}

}  // namespace v3d::tools
