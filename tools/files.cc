#include "tools/files.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

namespace v3d::tools {
namespace {

/// Of the folder that holds bin/v3demu.
std::string own_prefix() {
  std::error_code error;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string() : self.parent_path().parent_path().string();
}

}  // namespace

bool exists(const std::string& path) { return !path.empty() && access(path.c_str(), F_OK) == 0; }

std::optional<std::string> read_file(const std::string& path) {
  FILE* file = path == "-" ? stdin : fopen(path.c_str(), "rbe");
  if (!file) return {};
  std::string contents;
  char chunk[1 << 16];
  errno = 0;
  for (size_t got; (got = fread(chunk, 1, sizeof(chunk), file)) > 0;) contents.append(chunk, got);
  const bool failed = ferror(file) != 0;
  const int error = errno;
  if (file != stdin) fclose(file);
  errno = error;
  if (failed) return {};
  return contents;
}

bool write_file(const std::string& path, const std::string& contents) {
  FILE* file = path == "-" ? stdout : fopen(path.c_str(), "wbe");
  if (!file) return false;
  const bool written = fwrite(contents.data(), 1, contents.size(), file) == contents.size();
  return (file == stdout ? fflush(file) : fclose(file)) == 0 && written;
}

std::string variable(const char* name) {
  const char* value = getenv(name);
  return value ? value : "";
}

std::string find_shim(const std::string& architecture) {
  if (std::string named = variable("V3DEMU_SHIM"); !named.empty()) return named;
  std::vector<std::string> folders = {"/lib/" + architecture + "/", "/lib/" + architecture + "/v3demu/"};
  if (architecture == kHostArchitecture) folders.insert(folders.begin(), {"/lib/", "/lib/v3demu/"});
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

std::string default_mesa() { return cache_folder() + "/mesa-25.0.7/install"; }

}  // namespace v3d::tools
