/// @file What fragment threads of VideoCore IV do to the tile buffer, against a scalar model written from
/// vc4-graphics.md 3.5 and 3.6.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gpu/qpu/run/vc4_thread.h"
#include "gpu/tlb/tile_buffer.h"

namespace v3d::tlb {
namespace {

constexpr uint32_t kColorAt = 0, kDepthAt = kRawTileBytes;
constexpr uint32_t kClearColor = 0x11223344, kClearZ = 0x800000;
constexpr uint8_t kClearStencil = 5;

/// Colour, depth and stencil of a sample.
struct Sample {
  uint32_t color = kClearColor, z = kClearZ;
  uint8_t stencil = kClearStencil;
};

class Vc4Port : public testing::TestWithParam<bool> {
 protected:
  Vc4Port() : memory_bytes_(2 * kRawTileBytes), tile_(Memory(memory_bytes_.data())) {
    Config config;
    config.multisample = GetParam();
    config.width = config.height = config.tile_width = config.tile_height = config.multisample ? 32 : 64;
    config.targets[0].used = true;
    config.targets[0].clear[0] = kClearColor;
    config.depth_type = DepthType::k24;
    config.clear_z = static_cast<float>(kClearZ) * 0x1p-24f;
    config.clear_stencil = kClearStencil;
    EXPECT_TRUE(tile_.configure(config, &error_)) << error_;
    thread_->reset();
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      batch_.x[lane] = 8 + (lane >> 2) * 2 + (lane & 1);
      batch_.y[lane] = 6 + ((lane >> 1) & 1);
    }
    batch_.coverage = splat(samples() == 4 ? 0xfu : 1u);
    for (auto& pixel : pixels_) pixel.fill(Sample{});
  }

  uint32_t samples() const { return GetParam() ? 4 : 1; }
  qpu::vc4::Tlb& begin() {
    thread_->ms_flags = splat(0xfu);
    return tile_.thread_port(state_, batch_);
  }
  /// What memory has after a store of all samples.
  void expect_pixels() {
    ASSERT_TRUE(tile_.store({.buffer = 0, .address = kColorAt, .raw_samples = true}, &error_)) << error_;
    ASSERT_TRUE(tile_.store({.buffer = 11, .address = kDepthAt, .raw_samples = true}, &error_)) << error_;
    const uint32_t quads_in_a_row = samples() == 4 ? 16 : 32;
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      for (uint32_t s = 0; s < samples(); ++s) {
        const uint32_t quad = batch_.y[lane] / 2 * quads_in_a_row + batch_.x[lane] / 2;
        const uint32_t at = (quad * samples() + s) * 16 + (lane & 3) * 4;
        const Memory memory(memory_bytes_.data());
        const Sample& expected = pixels_[lane][s];
        ASSERT_EQ(memory.load<uint32_t>(kColorAt + at), expected.color) << lane << " " << s;
        ASSERT_EQ(memory.load<uint32_t>(kDepthAt + at), expected.z << 8 | expected.stencil)
            << lane << " " << s;
      }
  }

  std::vector<uint8_t> memory_bytes_;
  TileBuffer tile_;
  std::unique_ptr<qpu::vc4::Thread> thread_ = std::make_unique<qpu::vc4::Thread>();
  draw::DrawState state_;
  FragmentBatch batch_{};
  std::array<std::array<Sample, 4>, kLanes> pixels_;
  std::string error_;
};

INSTANTIATE_TEST_SUITE_P(Samples, Vc4Port, testing::Bool(),
                         [](const auto& of) { return of.param ? "Four" : "One"; });

TEST_P(Vc4Port, WithoutAWriteOfZNothingIsTested) {
  state_.cfg.depth_func = Compare::kNever;
  state_.cfg.z_write = true;
  begin().write_color(*thread_, splat(0xabcdefu), 0x0ff0, true);
  for (uint32_t lane = 4; lane < 12; ++lane)
    for (Sample& sample : pixels_[lane]) sample.color = 0xabcdef;
  expect_pixels();
}

TEST_P(Vc4Port, SamplesAreCountedByEachThreadAndEachWay) {
  for (int round = 0; round < 2; ++round) {
    qpu::vc4::Tlb& tlb = begin();
    for (uint32_t s = 0; s < 4; ++s) {
      EXPECT_EQ(uint32_t{tlb.load_color(*thread_)[3]}, pixels_[3][std::min(s, samples() - 1)].color);
    }
    for (uint32_t s = 0; s < 4; ++s) {
      const uint32_t color = 100 * static_cast<uint32_t>(round) + s;
      tlb.write_color(*thread_, splat(color), kAllLanes, false);
      for (auto& pixel : pixels_) pixel[std::min(s, samples() - 1)].color = color;
    }
    expect_pixels();
  }
}

/// GL's operations on 8 bits.
uint32_t operate(uint32_t op, uint32_t stored, uint32_t reference) {
  switch (op) {
    case 0:
      return 0;
    case 2:
      return reference;
    case 3:
      return std::min(stored + 1, 255u);
    case 4:
      return stored == 0 ? 0 : stored - 1;
    case 5:
      return ~stored & 255;
    case 6:
      return (stored + 1) & 255;
    case 7:
      return (stored - 1) & 255;
    default:
      return stored;
  }
}

bool compares(uint32_t function, uint32_t a, uint32_t b) {
  return (function & 1 && a < b) || (function & 2 && a == b) || (function & 4 && a > b);
}

/// What set-up words have made of one face.
struct Face {
  bool tests = false;
  uint32_t setup = 0, write_mask = 0xff;
};

TEST_P(Vc4Port, DepthAndStencilOfRandomThreads) {
  std::mt19937 random(11);
  for (int round = 0; round < 400; ++round) {
    state_.cfg.depth_func = static_cast<Compare>(random() % 8);
    state_.cfg.z_write = random() % 2;
    qpu::vc4::Tlb& tlb = begin();
    Face faces[2];
    for (uint32_t words = static_cast<uint32_t>(random() % 3); words > 0; --words) {
      const auto setup = static_cast<uint32_t>(random()) | 1u << 30;  // front, or both
      const uint32_t selected = setup >> 30;
      constexpr uint32_t kMasks[4] = {1, 3, 15, 255};
      for (uint32_t f = 0; f < 2; ++f)
        if (selected >> f & 1) faces[f] = {true, setup, kMasks[setup >> 28 & 3]};
      tlb.set_stencil(*thread_, setup);
    }
    if (faces[0].tests && random() % 2) {
      const auto masks = static_cast<uint32_t>(random() & 0xffff);
      tlb.set_stencil(*thread_, masks);
      faces[0].write_mask = masks & 255;
      faces[1].write_mask = masks >> 8;
    }
    // Once the word is written, faces without one of their own let everything pass.
    thread_->back_facing = static_cast<LaneMask>(random());
    const auto flags = static_cast<uint32_t>(random()), exec = static_cast<uint32_t>(random() & 0xffff);
    Lanes z;
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      z[lane] = kClearZ - 2 + static_cast<uint32_t>(random() % 5);
      thread_->ms_flags[lane] = exec >> lane & 1 ? (flags >> (lane % 8 * 4) & 15) : 0;
    }
    const auto color = static_cast<uint32_t>(random());
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      for (uint32_t s = 0; s < samples(); ++s) {
        if (!(thread_->ms_flags[lane] >> s & 1)) continue;
        Sample& sample = pixels_[lane][s];
        const Face& face = faces[thread_->back_facing >> lane & 1];
        const uint32_t setup = face.setup, reference = setup >> 8 & 255, mask = setup & 255;
        const bool stencil_passes =
            !face.tests || compares(setup >> 16 & 7, reference & mask, sample.stencil & mask);
        const bool z_passes = compares(static_cast<uint32_t>(state_.cfg.depth_func), z[lane], sample.z);
        if (face.tests) {
          const uint32_t op = !stencil_passes ? setup >> 19 & 7
                              : z_passes      ? setup >> 22 & 7
                                              : setup >> 25 & 7;
          const uint32_t updated = operate(op, sample.stencil, reference);
          sample.stencil =
              static_cast<uint8_t>((sample.stencil & ~face.write_mask) | (updated & face.write_mask));
        }
        if (!stencil_passes || !z_passes) continue;
        if (state_.cfg.z_write) sample.z = z[lane];
        sample.color = color;
      }
    tlb.write_z(*thread_, z, static_cast<LaneMask>(exec));
    tlb.write_color(*thread_, splat(color), kAllLanes, true);
    expect_pixels();
    if (HasFatalFailure()) return;
  }
}

TEST_P(Vc4Port, StencilEndsWithItsThread) {
  constexpr uint32_t kNeverInvert = 3u << 30 | 3u << 28 | 5 << 19;  // function: never
  qpu::vc4::Tlb& tlb = begin();
  tlb.set_stencil(*thread_, kNeverInvert);
  tlb.write_z(*thread_, splat(1u), kAllLanes);
  EXPECT_EQ(uint32_t{thread_->ms_flags[0]}, 0u);
  for (auto& pixel : pixels_)
    for (Sample& sample : pixel) sample.stencil = static_cast<uint8_t>(~kClearStencil);
  expect_pixels();
  begin().write_z(*thread_, splat(1u), kAllLanes);
  EXPECT_EQ(uint32_t{thread_->ms_flags[0]}, 0xfu);
  expect_pixels();
}

}  // namespace
}  // namespace v3d::tlb
