/// By these variables of the environment loaders find drivers and libraries.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace v3d::tools {

/// The --mesa that leaves loaders at what the distribution has.
inline constexpr char kSystemMesa[] = "system";

/// What the user set, stays; an empty value is none.
void set_default(const char* name, const std::string& value);
/// Adds to a list separated by colons.
void extend_list(const char* name, const std::string& value, bool in_front);

/// Points the loaders of Vulkan, EGL, GLX and GBM at Broadcom drivers for an architecture, but for those that
/// the environment points elsewhere. NotFound, with what to do, when there are none and the environment names
/// none either.
/// @param named  --mesa; may be empty
/// @param usual  the prefix to take then; may be empty
absl::Status use_drivers(const std::string& named, const std::string& usual, const std::string& architecture);

}  // namespace v3d::tools
