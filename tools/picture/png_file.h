/// PNG files.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "tools/picture/image.h"

namespace v3d::tools {

/// Writes beside the file first, so that a file of that name is always whole.
absl::Status save_png(const std::string& path, const Image& image);

}  // namespace v3d::tools
