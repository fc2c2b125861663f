/// @file Frames of VideoCore IV that only load, clear and store (vc4-graphics.md 1.6, 4): what memory holds
/// after.
#include "gpu/cle/surfaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <random>
#include <vector>

#include "gpu/cle/executor.h"
#include "gpu/tmu/image/layout.h"
#include "tests/vpm/test_job.h"

namespace v3d::cle {
namespace {

using tmu::Tiling;

enum MemoryFormat : uint16_t { kRaster, kT, kLt };
constexpr Tiling kTilings[] = {Tiling::kRaster, Tiling::kT, Tiling::kLineartileRows};
enum Pixels : uint16_t { k8888, k565 };

/// An image as the driver places it.
struct Image {
  MemoryFormat format = kRaster;
  Pixels pixels = k8888;
  GpuAddr address = 0;

  uint32_t bytes() const { return pixels == k8888 ? 4 : 2; }
  uint16_t transfer_bits() const {
    return static_cast<uint16_t>(1 | format << 4 | (pixels == k8888 ? 0 : 2) << 8);
  }
  uint16_t frame_bits() const { return static_cast<uint16_t>((pixels == k8888 ? 1 : 2) << 2 | format << 6); }
};
constexpr uint16_t kMultisample = 1, kAverage = 1 << 4, kDepthStencil = 2;

class Surfaces : public testing::Test {
 protected:
  static constexpr uint32_t kMost = 1 << 18;

  SurfaceJob frame(uint32_t width, uint32_t height, uint32_t tile = 64) const {
    SurfaceJob job;
    job.width = static_cast<uint16_t>(width);
    job.height = static_cast<uint16_t>(height);
    job.max_x = static_cast<uint8_t>((width - 1) / tile);
    job.max_y = static_cast<uint8_t>((height - 1) / tile);
    return job;
  }
  static SurfaceJob::Surface surface(GpuAddr address, uint16_t bits) {
    return {.present = true, .raw_samples = false, .bits = bits, .address = address, .bytes = kMost};
  }
  static SurfaceJob::Surface raw(GpuAddr address) {
    return {.present = true, .raw_samples = true, .bits = 0, .address = address, .bytes = kMost};
  }
  static uint32_t stride(const SurfaceJob& job, const Image& image) {
    const uint32_t align = image.format == kT ? 128 : 16;
    return (job.width * image.bytes() + align - 1) / align * align;
  }
  Image image(MemoryFormat format, Pixels pixels) { return {format, pixels, test_.allocate(kMost, 4096)}; }
  void run(const SurfaceJob& job) {
    run_surfaces(test_.job(), job, nullptr, &clear_);
    EXPECT_EQ(test_.error(), "");
  }

  uint32_t pixel(const SurfaceJob& job, const Image& image, uint32_t x, uint32_t y) const {
    const GpuAddr at =
        image.address + tmu::texel_offset(kTilings[image.format], image.bytes(), stride(job, image), x, y);
    return image.pixels == k8888 ? test_.memory().load<uint32_t>(at) : test_.memory().load<uint16_t>(at);
  }
  void fill_random(GpuAddr address, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i += 4)
      test_.memory().store(address + i, static_cast<uint32_t>(random_()));
  }
  std::vector<uint8_t> bytes_of(GpuAddr address) const {
    return {test_.memory().host(address), test_.memory().host(address) + kMost};
  }
  /// No byte differs but those of the pixels.
  void expect_only_pixels(const SurfaceJob& job, const Image& image, std::vector<uint8_t> before,
                          const std::function<uint32_t(uint32_t, uint32_t)>& expected) const {
    for (uint32_t y = 0; y < job.height; ++y)
      for (uint32_t x = 0; x < job.width; ++x) {
        const uint32_t value = expected(x, y);
        std::memcpy(
            &before[tmu::texel_offset(kTilings[image.format], image.bytes(), stride(job, image), x, y)],
            &value, image.bytes());
      }
    EXPECT_TRUE(before == bytes_of(image.address));
  }

  TestJob test_{chip::default_profile(), 2};
  ClearValues clear_;
  std::mt19937 random_{3};
};

TEST_F(Surfaces, ClearsAreStoredInEveryLayoutAndFormat) {
  for (const MemoryFormat format : {kRaster, kT, kLt})
    for (const Pixels pixels : {k8888, k565})
      for (const auto& [width, height] : {std::pair{64u, 64u}, {128u, 192u}, {100u, 70u}, {7u, 3u}}) {
        SCOPED_TRACE(testing::Message() << format << " " << pixels << " " << width << "x" << height);
        const Image target = image(format, pixels);
        fill_random(target.address, 1 << 16);
        const std::vector<uint8_t> before = bytes_of(target.address);
        SurfaceJob job = frame(width, height);
        job.sets_clear_values = true;
        job.clear_color = {0x80c44f37, 0x80c44f37};
        job.color_write = surface(target.address, target.frame_bits());
        run(job);
        // 565: the upper bits of the bytes R, G and B.
        constexpr uint32_t k565Color = 0x37u >> 3 << 11 | 0x4fu >> 2 << 5 | 0xc4u >> 3;
        expect_only_pixels(job, target, before,
                           [&](uint32_t, uint32_t) { return pixels == k8888 ? 0x80c44f37u : k565Color; });
      }
}

TEST_F(Surfaces, CopiesBetweenAllLayouts) {
  for (const MemoryFormat from_format : {kRaster, kT, kLt})
    for (const MemoryFormat to_format : {kRaster, kT, kLt})
      for (const Pixels pixels : {k8888, k565}) {
        SCOPED_TRACE(testing::Message() << from_format << " to " << to_format << " " << pixels);
        const Image from = image(from_format, pixels), to = image(to_format, pixels);
        fill_random(from.address, 1 << 17);
        const std::vector<uint8_t> before = bytes_of(to.address);
        SurfaceJob job = frame(150, 131);
        job.color_read = surface(from.address, from.transfer_bits());
        job.color_write = surface(to.address, to.frame_bits());
        run(job);
        expect_only_pixels(job, to, before, [&](uint32_t x, uint32_t y) { return pixel(job, from, x, y); });
      }
}

TEST_F(Surfaces, Pixels565AreWidenedByTheirOwnBits) {
  const Image from = image(kRaster, k565), to = image(kRaster, k8888);
  fill_random(from.address, 1 << 12);
  SurfaceJob job = frame(16, 16);
  job.color_read = surface(from.address, from.transfer_bits());
  job.color_write = surface(to.address, to.frame_bits());
  run(job);
  for (uint32_t x = 0; x < 16; ++x) {
    const uint32_t v = pixel(job, from, x, 5), r = v >> 11, g = v >> 5 & 63, b = v & 31;
    EXPECT_EQ(pixel(job, to, x, 5),
              (r << 3 | r >> 2) | (g << 2 | g >> 4) << 8 | (b << 3 | b >> 2) << 16 | 0xff000000u);
  }
}

TEST_F(Surfaces, DepthAndStencilAreOneWord) {
  for (const MemoryFormat format : {kRaster, kT, kLt}) {
    const Image target = image(format, k8888);
    const std::vector<uint8_t> before = bytes_of(target.address);
    SurfaceJob job = frame(70, 33);
    job.sets_clear_values = true;
    job.clear_z = 0xabcdef;
    job.clear_s = 0x5a;
    job.zs_write = surface(target.address, static_cast<uint16_t>(kDepthStencil | format << 4));
    run(job);
    expect_only_pixels(job, target, before, [](uint32_t, uint32_t) { return 0xabcdef5au; });
    const Image copy = image(kRaster, k8888);
    fill_random(target.address, 1 << 16);
    job.zs_read = surface(target.address, static_cast<uint16_t>(kDepthStencil | format << 4));
    job.zs_write = surface(copy.address, kDepthStencil);
    run(job);
    EXPECT_EQ(pixel(job, copy, 69, 32), pixel(job, target, 69, 32));
    EXPECT_EQ(pixel(job, copy, 3, 17), pixel(job, target, 3, 17));
  }
}

TEST_F(Surfaces, TilesOutsideTheRectangleAreNotTouched) {
  const Image target = image(kT, k8888);
  const std::vector<uint8_t> before = bytes_of(target.address);
  SurfaceJob job = frame(256, 256);
  job.min_x = 1;
  job.max_x = 2;
  job.min_y = job.max_y = 3;
  job.sets_clear_values = true;
  job.clear_color = {7, 7};
  job.color_write = surface(target.address, target.frame_bits());
  run(job);
  expect_only_pixels(job, target, before,
                     [](uint32_t x, uint32_t y) { return x >= 64 && x < 192 && y >= 192 ? 7u : 0u; });
}

TEST_F(Surfaces, ClearValuesOutliveTheirJob) {
  const Image target = image(kRaster, k8888);
  SurfaceJob job = frame(64, 64);
  job.color_write = surface(target.address, target.frame_bits());
  fill_random(target.address, 64);
  run(job);
  EXPECT_EQ(pixel(job, target, 1, 0), 0u);
  job.sets_clear_values = true;
  job.clear_color = {0x11223344, 0};
  run(job);
  job.sets_clear_values = false;
  job.clear_color = {5, 5};
  fill_random(target.address, 64);
  run(job);
  EXPECT_EQ(pixel(job, target, 1, 0), 0x11223344u);
}

/// Where the word of a sample lies: vc4-graphics.md 4.3.
uint32_t raw_offset(uint32_t x, uint32_t y, uint32_t sample, uint32_t tiles_in_a_row) {
  const uint32_t tile = y / 32 * tiles_in_a_row + x / 32;
  x %= 32, y %= 32;
  return 16384 * tile + (y & 30) * 512 + (x & 30) * 32 + sample * 16 + (y & 1) * 8 + (x & 1) * 4;
}

TEST_F(Surfaces, RawSamplesAreResolved) {
  const GpuAddr samples = test_.allocate(kMost, 4096);
  fill_random(samples, 1 << 18);
  for (const bool average : {false, true}) {
    const Image target = image(kT, k8888);
    SurfaceJob job = frame(70, 40, 32);
    job.color_read = raw(samples);
    job.color_write = surface(
        target.address, static_cast<uint16_t>(target.frame_bits() | kMultisample | (average ? kAverage : 0)));
    run(job);
    for (uint32_t y = 0; y < job.height; ++y)
      for (uint32_t x = 0; x < job.width; ++x) {
        uint32_t expected = 0;
        for (uint32_t shift = 0; shift < 32; shift += 8) {
          uint32_t sum = 2;
          for (uint32_t s = 0; s < 4; ++s)
            sum += test_.memory().load<uint32_t>(samples + raw_offset(x, y, s, 3)) >> shift & 255;
          expected |= sum / 4 << shift;
        }
        if (!average) expected = test_.memory().load<uint32_t>(samples + raw_offset(x, y, 0, 3));
        ASSERT_EQ(pixel(job, target, x, y), expected) << x << " " << y;
      }
  }
}

TEST_F(Surfaces, RawSamplesOfColorAndDepthComeBack) {
  const GpuAddr color = test_.allocate(kMost, 4096), zs = test_.allocate(kMost, 4096);
  const GpuAddr new_color = test_.allocate(kMost, 4096), new_zs = test_.allocate(kMost, 4096);
  fill_random(color, 1 << 18);
  fill_random(zs, 1 << 18);
  SurfaceJob job = frame(70, 40, 32);  // 3 x 2 tiles
  job.color_read = raw(color);
  job.zs_read = raw(zs);
  job.color_write.bits = kMultisample;
  job.msaa_color_write = raw(new_color);
  job.msaa_zs_write = raw(new_zs);
  run(job);
  constexpr uint32_t kBytes = 6 * 16384;
  for (const auto& [from, to] : {std::pair{color, new_color}, {zs, new_zs}}) {
    EXPECT_EQ(std::memcmp(test_.memory().host(from), test_.memory().host(to), kBytes), 0);
    EXPECT_EQ(test_.memory().load<uint32_t>(to + kBytes), 0u);
  }
}

TEST_F(Surfaces, LoadsReachAllSamples) {
  const Image from = image(kRaster, k8888);
  fill_random(from.address, 1 << 13);
  const GpuAddr samples = test_.allocate(kMost, 4096);
  SurfaceJob job = frame(32, 32, 32);
  job.color_read = surface(from.address, from.transfer_bits());
  job.color_write.bits = kMultisample;
  job.msaa_color_write = raw(samples);
  run(job);
  for (uint32_t s = 0; s < 4; ++s)
    EXPECT_EQ(test_.memory().load<uint32_t>(samples + raw_offset(13, 21, s, 1)), pixel(job, from, 13, 21));
}

TEST_F(Surfaces, TilesComeInTheOrderThatIsAskedFor) {
  for (const bool increasing : {true, false}) {
    const Image from = image(kRaster, k8888);
    SurfaceJob job = frame(64, 4 * 64);
    const uint32_t tile_bytes = 64 * stride(job, from);
    for (uint32_t tile = 0; tile < 5; ++tile)
      test_.memory().store(from.address + tile * tile_bytes, 100 + tile);
    job.color_read = surface(from.address, from.transfer_bits());
    job.color_write = surface(from.address + tile_bytes, from.frame_bits());
    job.fixed_order = true;
    job.increasing_y = increasing;
    run(job);
    for (uint32_t tile = 0; tile < 5; ++tile)
      EXPECT_EQ(test_.memory().load<uint32_t>(from.address + tile * tile_bytes), increasing  ? 100u
                                                                                 : tile == 0 ? 100
                                                                                             : 99 + tile);
  }
}

TEST_F(Surfaces, CopiesInsideAnImageAreNotRunSideBySide) {
  SurfaceJob job = frame(256, 256);
  TileProgram program;
  std::string error;
  job.color_read = surface(0x100000, 1);
  job.color_write = surface(0x100000, 1 << 2);
  ASSERT_TRUE(surface_program(job, &program, &error));
  EXPECT_FALSE(program.in_order);
  job.color_write.address += 4096;
  ASSERT_TRUE(surface_program(job, &program, &error));
  EXPECT_TRUE(program.in_order);
  job.color_write.address += 256 * 1024;
  ASSERT_TRUE(surface_program(job, &program, &error));
  EXPECT_FALSE(program.in_order);
}

TEST_F(Surfaces, WhatIsNotModelledIsNamed) {
  SurfaceJob job = frame(64, 64);
  job.color_write = surface(0x100000, 3 << 6);
  run_surfaces(test_.job(), job, nullptr, &clear_);
  EXPECT_THAT(test_.error(), testing::HasSubstr("color_write: memory format 3"));
}

TEST_F(Surfaces, DescriptionNamesEverySurface) {
  SurfaceJob job = frame(64, 64);
  job.sets_clear_values = true;
  job.color_read = surface(0x100001, 1 << 4 | 1);
  job.msaa_zs_write = raw(0x200000);
  const std::vector<std::string> lines = describe_surfaces(job);
  EXPECT_THAT(lines,
              testing::ElementsAre(testing::HasSubstr("64 x 64 pixels"), testing::HasSubstr("clear values"),
                                   "load color_read at 0x00100000: T, 4 bytes a pixel",
                                   "store msaa_zs_write at 0x00200000: raw samples"));
}

}  // namespace
}  // namespace v3d::cle
