/// These functions write PNG files.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "ioctl/display/image.h"

namespace v3d::tools {

/// A file of that name is always whole (NewFile).
absl::Status save_png(const std::string& path, const ioctl::kms::Image& image);
/// The same of rows of RGBA8, from the top.
absl::Status save_rgba(const std::string& path, uint32_t width, uint32_t height, const uint8_t* rgba);

}  // namespace v3d::tools
