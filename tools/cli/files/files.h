/// These functions say where the parts of an installation (or build tree) lie.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace v3d::tools {

/// Debian's name for what this program was built for.
inline constexpr char kHostArchitecture[] = V3DEMU_LIBRARY_ARCHITECTURE;

/// libv3demu.so for programs of an architecture: $V3DEMU_SHIM, else in a lib folder beside bin/ or
/// libexec/v3demu/ with this program. Empty if there is none.
std::string find_shim(const std::string& architecture = kHostArchitecture);

/// v3demu-box, in libexec/v3demu of the same installation. Empty if there is none.
std::string find_box();

/// v3demu-x11, likewise.
std::string find_x11_proxy();

/// v3demu-inspect, likewise, of the level that this program is for.
std::string find_inspector();

/// A program in Python (run_script()), likewise.
std::string find_script(const std::string& name);

/// v3demud: $V3DEMU_DAEMON, else in bin/ of the same installation. Empty if there is none.
std::string find_daemon();

/// The folder of a page for the browser that the build makes (share/v3demu/NAME); it need not exist.
std::string find_page(const std::string& name);

/// Where packaging/ puts what it fetches and builds: $V3DEMU_CACHE, else v3demu in the user's cache.
std::string cache_folder();

/// The folder of a prefix that holds Mesa's Broadcom drivers for an architecture. Empty if there is none.
std::string broadcom_libraries(const std::string& prefix, const std::string& architecture);

/// The prefix of a Mesa with Broadcom drivers: $V3DEMU_MESA, whatever it holds, else the first of
/// mesa_places() that has them, else the distribution's. Empty if none has.
std::string find_mesa();
/// Where Mesa is looked for: that of the installation, of packaging/mesa, and the newest other one in the
/// cache.
std::vector<std::string> mesa_places();

bool exists(const std::string& path);

/// A text of a program, or its words, has no more bytes.
inline constexpr size_t kMostProgramBytes = 16 << 20;
/// Any other file that is read as a whole.
inline constexpr size_t kMostFileBytes = 1 << 30;

/// The contents of a file, or of the standard input when it is "-". Nothing, with the reason in errno, when
/// it cannot be read: EFBIG, if it has more bytes than `most`, as what never ends has (/dev/zero).
std::optional<std::string> read_file(const std::string& path, size_t most = kMostFileBytes);
/// The opposite; "-" is the standard output. An error names the path and the reason.
absl::Status write_file(const std::string& path, const std::string& contents);

/// A folder for temporary files, which go with it.
struct TemporaryFolder {
  /// @param name  of which its own begins
  explicit TemporaryFolder(const std::string& name);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::filesystem::path path;  ///< empty, with the reason in errno: there is none
};

/// An environment variable; empty when unset.
std::string variable(const char* name);

}  // namespace v3d::tools
