#include "tools/cli/captures/after_comparison.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"

namespace v3d::tools {
namespace {

using Range = mmu::AddressSpace::Range;

/// Of one job: more than any has whose images fit into the memory of a board.
constexpr uint64_t kMostPictureBytes = uint64_t{1} << 30;

uint32_t difference(uint32_t a, uint32_t b) { return a > b ? a - b : b - a; }

uint32_t pixel_at(const Picture& picture, size_t number) {
  uint32_t pixel;
  std::memcpy(&pixel, picture.rgba.data() + 4 * number, sizeof pixel);
  return pixel;
}

double float_difference(uint32_t a, uint32_t b) {
  float x, y;
  std::memcpy(&x, &a, sizeof x);
  std::memcpy(&y, &b, sizeof y);
  return std::isfinite(x) && std::isfinite(y) ? std::abs(double{x} - double{y}) : 0;
}

/// Adds the words of a page that differ.
void compare_page(const uint8_t* here, const uint8_t* recorded, GpuAddr address, AfterComparison::Place* to) {
  if (std::memcmp(here, recorded, mmu::kPageSize) == 0) return;
  for (uint32_t at = 0; at < mmu::kPageSize; at += 4) {
    uint32_t a, b;
    std::memcpy(&a, here + at, sizeof a);
    std::memcpy(&b, recorded + at, sizeof b);
    if (a == b) continue;
    if (to->words++ == 0) {
      to->first = address + at;
      to->here = a;
      to->recorded = b;
    }
    to->largest = std::max(to->largest, difference(a, b));
    to->largest_float = std::max(to->largest_float, float_difference(a, b));
  }
}

/// The same of one that is known by its hash.
void compare_hash(const uint8_t* here, uint64_t hash, GpuAddr address, AfterComparison::Place* to) {
  if (daemon::page_hash(daemon::CaptureReader::Page(here, mmu::kPageSize)) == hash) return;
  if (to->hashed_pages++ == 0) to->first_hashed = address;
}

AfterComparison::Image compare_pictures(const StoredImage& image, const Picture& here,
                                        const Picture& recorded, const std::string& error) {
  AfterComparison::Image result{.address = image.packet.address,
                                .width = image.width,
                                .height = image.height,
                                .here = 0,
                                .recorded = 0};
  if (here.rgba.empty() || recorded.rgba.empty()) {
    result.no_pixels = error.empty() ? "they are too many" : error;
    return result;
  }
  for (size_t i = 0; 4 * i < here.rgba.size(); ++i) {
    const uint32_t a = pixel_at(here, i), b = pixel_at(recorded, i);
    if (a == b) continue;
    if (result.pixels++ == 0) {
      result.x = static_cast<uint32_t>(i % here.width);
      result.y = static_cast<uint32_t>(i / here.width);
      result.here = a;
      result.recorded = b;
    }
    for (int shift = 0; shift < 32; shift += 8)
      result.largest = std::max(result.largest, difference(a >> shift & 255, b >> shift & 255));
  }
  return result;
}

}  // namespace

AfterComparison compare_after(const daemon::CaptureReader& reader, const daemon::CapturedAfter& after,
                              mmu::AddressSpace& space, const std::vector<StoredImage>& images) {
  AfterComparison result;
  std::vector<GpuAddr> pages;  // that differ
  for (const Range& range : after.ranges) {
    AfterComparison::Place place{.range = range, .here = 0, .recorded = 0};
    for (uint64_t offset = 0; offset < range.size; offset += mmu::kPageSize, ++result.pages) {
      const auto address = static_cast<GpuAddr>(range.address + offset);
      const uint64_t before = place.words;
      const auto hash = after.hashes.find(address);
      if (hash != after.hashes.end())
        compare_hash(space.memory().host(address), hash->second, address, &place);
      else
        compare_page(space.memory().host(address), reader.page_after(after, address).data(), address, &place);
      if (place.words != before) pages.push_back(address);
    }
    if (place.words || place.hashed_pages) result.places.push_back(place);
  }
  if (!after.hashes.empty()) return result;  // pixels of which are not told
  if (pages.empty()) return result;
  const auto is_in_range = [&](const StoredImage& image) {
    return std::any_of(after.ranges.begin(), after.ranges.end(), [&](const Range& range) {
      return image.packet.address >= range.address && image.packet.address - range.address < range.size;
    });
  };
  std::vector<std::pair<const StoredImage*, Picture>> pictures;
  std::string error;
  uint64_t picture_bytes = 0;
  for (const StoredImage& image : images) {
    if (!is_in_range(image)) continue;
    picture_bytes += uint64_t{image.width} * image.height * 4;
    pictures.emplace_back(&image,
                          picture_bytes > kMostPictureBytes ? Picture{} : read_image(space, image, &error));
  }
  for (const GpuAddr address : pages)
    space.memory().write(address, reader.page_after(after, address).data(), mmu::kPageSize);
  for (const auto& [image, here] : pictures) {
    std::string no_pixels;
    const Picture recorded = here.rgba.empty() ? Picture{} : read_image(space, *image, &no_pixels);
    const AfterComparison::Image compared =
        compare_pictures(*image, here, recorded, here.rgba.empty() ? error : no_pixels);
    if (compared.pixels || !compared.no_pixels.empty()) result.images.push_back(compared);
  }
  return result;
}

std::string text_of(const AfterComparison& comparison, int job, const std::string& file) {
  std::string text;
  for (const AfterComparison::Image& image : comparison.images) {
    absl::StrAppendFormat(&text, "  image at 0x%08x, %ux%u: ", image.address, image.width, image.height);
    if (!image.no_pixels.empty()) {
      absl::StrAppendFormat(&text, "pixels are not told: %s\n", image.no_pixels);
      continue;
    }
    absl::StrAppendFormat(&text,
                          "%u pixels differ by up to %u of 255, the first at %u:%u: 0x%08x here, 0x%08x "
                          "recorded\n    v3demu replay --trace-qpu=job=%d,stage=fragment,pixel=%u:%u %s\n",
                          image.pixels, image.largest, image.x, image.y, image.here, image.recorded, job,
                          image.x, image.y, file);
  }
  for (const AfterComparison::Place& place : comparison.places) {
    const uint64_t end = place.range.address + place.range.size;
    if (place.hashed_pages)
      absl::StrAppendFormat(
          &text,
          "  memory 0x%08x to 0x%08x: %u pages differ, the first at 0x%08x; hashes alone are recorded\n",
          place.range.address, end, place.hashed_pages, place.first_hashed);
    if (place.words)
      absl::StrAppendFormat(
          &text,
          "  memory 0x%08x to 0x%08x: %u words differ by up to %u (as floats: %.9g), the first at 0x%08x: "
          "0x%08x here, 0x%08x recorded\n",
          place.range.address, end, place.words, place.largest, place.largest_float, place.first, place.here,
          place.recorded);
  }
  return text;
}

void write_json(const AfterComparison& comparison, daemon::JsonWriter* json) {
  json->field("equal", comparison.equal()).field("pages", comparison.pages);
  json->key("images").begin_array();
  for (const AfterComparison::Image& image : comparison.images) {
    json->begin_object().field("address", image.address).field("width", image.width);
    json->field("height", image.height);
    if (!image.no_pixels.empty())
      json->field("no_pixels", std::string_view(image.no_pixels));
    else
      json->field("pixels", image.pixels)
          .field("x", image.x)
          .field("y", image.y)
          .field("here", image.here)
          .field("recorded", image.recorded)
          .field("largest", image.largest);
    json->end_object();
  }
  json->end_array().key("memory").begin_array();
  for (const AfterComparison::Place& place : comparison.places) {
    json->begin_object().field("address", place.range.address).field("bytes", place.range.size);
    if (place.hashed_pages)
      json->field("hashed_pages", place.hashed_pages).field("first_hashed", place.first_hashed);
    if (place.words || !place.hashed_pages)
      json->field("words", place.words)
          .field("first", place.first)
          .field("here", place.here)
          .field("recorded", place.recorded)
          .field("largest", place.largest)
          .field("largest_float", place.largest_float);
    json->end_object();
  }
  json->end_array();
}

}  // namespace v3d::tools
