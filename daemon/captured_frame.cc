#include "daemon/captured_frame.h"

#include <cstddef>

#include "gpu/chip/board.h"

namespace v3d::daemon {
namespace {

using device::SurfaceJob;
using Surface = SurfaceJob::Surface;

constexpr Surface SurfaceJob::*kSurfaces[] = {&SurfaceJob::color_read,       &SurfaceJob::zs_read,
                                              &SurfaceJob::color_write,      &SurfaceJob::zs_write,
                                              &SurfaceJob::msaa_color_write, &SurfaceJob::msaa_zs_write};
enum SurfaceFlag : uint32_t { kPresent = 1, kRawSamples = 2, kSurfaceFlags = 3 };
enum FrameFlag : uint32_t { kInOrder = 1, kIncreasingX = 2, kIncreasingY = 4, kClears = 8, kFrameFlags = 15 };

constexpr uint32_t flag(bool is_set, uint32_t bit) { return is_set ? bit : 0; }
uint32_t bytes_of(uint8_t a, uint8_t b, uint8_t c = 0, uint8_t d = 0) {
  return a | uint32_t{b} << 8 | uint32_t{c} << 16 | uint32_t{d} << 24;
}
uint8_t byte(uint32_t word, int n) { return static_cast<uint8_t>(word >> 8 * n); }

/// Takes words in their order.
class Words {
 public:
  explicit Words(const FrameWords& words) : words_(words) {}
  uint32_t next() { return words_[at_++]; }
  /// With no others than these bits.
  uint32_t next(uint32_t bits) {
    const uint32_t word = next();
    good_ = good_ && (word & ~bits) == 0;
    return word;
  }
  bool good() const { return good_ && at_ == words_.size(); }

 private:
  const FrameWords& words_;
  size_t at_ = 0;
  bool good_ = true;
};

}  // namespace

bool brings_surfaces(const chip::Profile& profile) { return chip::has_driver_vc4(profile.generation); }

FrameWords words_of(const SurfaceJob& job) {
  FrameWords words{};
  size_t at = 0;
  const auto add = [&](uint32_t word) { words[at++] = word; };
  for (const auto member : kSurfaces) {
    const Surface& surface = job.*member;
    add(flag(surface.present, kPresent) | flag(surface.raw_samples, kRawSamples));
    add(surface.bits);
    add(surface.address);
    add(static_cast<uint32_t>(surface.bytes));
    add(static_cast<uint32_t>(surface.bytes >> 32));
  }
  add(job.width | uint32_t{job.height} << 16);
  add(bytes_of(job.min_x, job.min_y, job.max_x, job.max_y));
  add(flag(job.fixed_order, kInOrder) | flag(job.increasing_x, kIncreasingX) |
      flag(job.increasing_y, kIncreasingY) | flag(job.sets_clear_values, kClears));
  for (const uint32_t color : job.clear_color) add(color);
  add(job.clear_z);
  add(job.clear_s);
  add(job.list_start);
  add(job.list_end);
  add(bytes_of(job.tiles_x, job.tiles_y));
  return words;
}

std::shared_ptr<const SurfaceJob> frame_of(const FrameWords& frame) {
  auto job = std::make_shared<SurfaceJob>();
  Words words(frame);
  for (const auto member : kSurfaces) {
    Surface& surface = job.get()->*member;
    const uint32_t flags = words.next(kSurfaceFlags);
    surface.present = flags & kPresent;
    surface.raw_samples = flags & kRawSamples;
    surface.bits = static_cast<uint16_t>(words.next(0xffff));
    surface.address = words.next();
    surface.bytes = words.next();
    surface.bytes |= uint64_t{words.next()} << 32;
  }
  const uint32_t size = words.next();
  job->width = static_cast<uint16_t>(size);
  job->height = static_cast<uint16_t>(size >> 16);
  const uint32_t tiles = words.next();
  job->min_x = byte(tiles, 0);
  job->min_y = byte(tiles, 1);
  job->max_x = byte(tiles, 2);
  job->max_y = byte(tiles, 3);
  const uint32_t flags = words.next(kFrameFlags);
  job->fixed_order = flags & kInOrder;
  job->increasing_x = flags & kIncreasingX;
  job->increasing_y = flags & kIncreasingY;
  job->sets_clear_values = flags & kClears;
  for (uint32_t& color : job->clear_color) color = words.next();
  job->clear_z = words.next();
  job->clear_s = static_cast<uint8_t>(words.next(0xff));
  job->list_start = words.next();
  job->list_end = words.next();
  const uint32_t binned = words.next(0xffff);
  job->tiles_x = byte(binned, 0);
  job->tiles_y = byte(binned, 1);
  return words.good() ? job : nullptr;
}

}  // namespace v3d::daemon
