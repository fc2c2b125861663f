#include "tools/picture/png_file.h"

#include <png.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace v3d::tools {

absl::Status save_png(const std::string& path, const Image& image) {
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  png.width = image.width;
  png.height = image.height;
  png.format = PNG_FORMAT_RGB;
  png.flags = PNG_IMAGE_FLAG_FAST;
  std::vector<uint8_t> rgb;
  rgb.reserve(image.pixels.size() * 3);
  for (const uint32_t pixel : image.pixels)
    for (const int shift : {16, 8, 0}) rgb.push_back(static_cast<uint8_t>(pixel >> shift));
  const std::string unfinished = absl::StrCat(path, ".", getpid(), "~");
  if (!png_image_write_to_file(&png, unfinished.c_str(), 0, rgb.data(), 0, nullptr)) {
    unlink(unfinished.c_str());
    return absl::UnknownError(absl::StrCat(path, ": ", png.message));
  }
  if (rename(unfinished.c_str(), path.c_str()) == 0) return absl::OkStatus();
  absl::Status error = absl::UnknownError(absl::StrCat(path, ": ", strerror(errno)));
  unlink(unfinished.c_str());
  return error;
}

}  // namespace v3d::tools
