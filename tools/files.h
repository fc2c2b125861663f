/// Where the parts of an installation (or build tree) lie.
#pragma once

#include <string>

namespace v3d::tools {

/// libv3demu.so: $V3DEMU_SHIM, else in a lib folder beside that of this program. Empty if there is none.
std::string find_shim();

/// v3demud: $V3DEMU_DAEMON, else beside this program. Empty if there is none.
std::string find_daemon();

/// The folder into which packaging/mesa installs the drivers:
/// ${V3DEMU_CACHE:-~/.cache/v3demu}/mesa-25.0.7/install.
std::string default_mesa();

bool exists(const std::string& path);

/// An environment variable; empty when unset.
std::string variable(const char* name);

}  // namespace v3d::tools
