/// These functions edit environment variables that hold lists of paths.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace v3d::tools {

/// The path itself, or, when it holds a character at which LD_PRELOAD or another list is divided, a symbolic
/// link to it in the user's private runtime folder. FailedPrecondition when there can be none.
absl::StatusOr<std::string> list_path(const std::string& path);

}  // namespace v3d::tools
