#include "tools/cli/files/png_file.h"

#include <png.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/cli/files/new_file.h"

namespace v3d::tools {
namespace {

absl::Status write(const std::string& path, png_image* png, const uint8_t* pixels) {
  NewFile file(path);
  if (absl::Status begun = file.begin(); !begun.ok()) return begun;
  if (!png_image_write_to_stdio(png, file.stream(), 0, pixels, 0, nullptr))
    return absl::UnknownError(absl::StrCat(path, ": ", png->message));
  return file.finish();
}

}  // namespace

absl::Status save_png(const std::string& path, const ioctl::kms::Image& image) {
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
  return write(path, &png, rgb.data());
}

absl::Status save_rgba(const std::string& path, uint32_t width, uint32_t height, const uint8_t* rgba) {
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  png.width = width;
  png.height = height;
  png.format = PNG_FORMAT_RGBA;
  return write(path, &png, rgba);
}

}  // namespace v3d::tools
