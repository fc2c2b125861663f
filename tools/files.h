/// Where the parts of an installation (or build tree) lie.
#pragma once

#include <optional>
#include <string>

namespace v3d::tools {

/// Debian's name for what this program was built for, and the one other that `run --arch` knows.
inline constexpr char kHostArchitecture[] = V3DEMU_LIBRARY_ARCHITECTURE;
inline constexpr char kArm64Architecture[] = "aarch64-linux-gnu";

/// libv3demu.so for programs of an architecture: $V3DEMU_SHIM, else in a lib folder beside that of this
/// program. Empty if there is none.
std::string find_shim(const std::string& architecture = kHostArchitecture);

/// v3demud: $V3DEMU_DAEMON, else beside this program. Empty if there is none.
std::string find_daemon();

/// Where packaging/ puts what it fetches and builds: $V3DEMU_CACHE, else v3demu in the user's cache.
std::string cache_folder();

/// The folder into which packaging/mesa installs the drivers: mesa-25.0.7/install in the cache.
std::string default_mesa();

bool exists(const std::string& path);

/// The contents of a file, or of the standard input when it is "-". Nothing, with the reason in errno, when
/// it cannot be read.
std::optional<std::string> read_file(const std::string& path);
/// The opposite; "-" is the standard output. False, with the reason in errno, when it fails.
bool write_file(const std::string& path, const std::string& contents);

/// An environment variable; empty when unset.
std::string variable(const char* name);

}  // namespace v3d::tools
