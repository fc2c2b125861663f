#include "gpu/tfu/tfu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "gpu/base/float16.h"
#include "gpu/chip/generation.h"
#include "gpu/chip/profile.h"
#include "gpu/tmu/image/layout.h"
#include "gpu/tmu/texel/format.h"
#include "tests/tmu/gpu_memory.h"

namespace v3d::tfu {
namespace {

using tmu::GpuMemory;
using tmu::texel_offset;
using tmu::Tiling;

constexpr GpuAddr kInput = GpuMemory::kBase, kOutput = GpuMemory::kBase + (8 << 20);

class Tfu : public testing::Test {
 protected:
  Tfu() {
    profile_.generation = chip::Generation::k71;
    job_.memory = gpu_.memory();
    job_.profile = &profile_;
    job_.error = &error_;
    job_.cancel = &cancel_;
  }
  /// Register values of a 7.1 job.
  static Registers registers71(uint32_t type, uint32_t input_format, uint32_t iis, uint32_t output_format,
                               uint32_t padded_height, uint32_t width, uint32_t height) {
    Registers r = {};
    r.icfg = type << 16 | input_format << 23;
    r.iia = kInput;
    r.iis = iis;
    r.ioa = kOutput;
    r.ios = height << 16 | width;
    r.ioc = padded_height << 16 | output_format << 12;
    return r;
  }
  uint32_t random() { return static_cast<uint32_t>(random_()); }
  void fill(uint32_t bytes) {
    gpu_.randomize(bytes, 3);
    for (uint32_t i = 0; i < bytes; i += 4) gpu_.memory().store<uint32_t>(kOutput + i, 0xabababab);
  }

  /// The job has gone well: each word of a square of rows is where the tiling has it.
  void expect_tiled(Tiling tiling, uint32_t padded_height, uint32_t size) {
    ASSERT_FALSE(error_.failed()) << error_.message();
    for (uint32_t y = 0; y < size; ++y)
      for (uint32_t x = 0; x < size; ++x)
        ASSERT_EQ(gpu_.memory().load<uint32_t>(kOutput + texel_offset(tiling, 4, padded_height, x, y)),
                  gpu_.memory().load<uint32_t>(kInput + (y * size + x) * 4));
  }

  GpuMemory gpu_;
  chip::Profile profile_ = {};
  JobError error_;
  std::atomic<bool> cancel_{false};
  JobContext job_ = {};
  std::minstd_rand random_{11};
};

TEST_F(Tfu, RasterToUifExampleOfBothChips) {  // texture.md 10.1
  for (chip::Generation generation : {chip::Generation::k71, chip::Generation::k42}) {
    fill(64 * 64 * 4);
    profile_.generation = generation;
    Registers r = {};
    r.iia = kInput;
    r.iis = 64;
    r.ios = 0x00400040;
    if (generation == chip::Generation::k71) {
      r.icfg = 0x001d0000;
      r.ioc = 0x00086000;
      r.ioa = kOutput;
    } else {
      r.icfg = 0x00003a00;
      r.ioa = kOutput | 0x30;
    }
    run(job_, r);
    expect_tiled(Tiling::kUif, 8, 64);
  }
}

TEST(TfuDescription, SaysHowFarRowsAreApart) {
  Registers r = {};
  r.icfg = 0x001d0000;
  r.iia = 0x10000;
  r.iis = 112;
  r.ios = 64 << 16 | 100;
  r.ioa = 0x20000;
  r.ioc = 0x00086000;
  EXPECT_EQ(
      description(r, chip::Generation::k71),
      "copies 100x64 texels of type R32F from raster at 0x00010000, rows 112 texels (448 bytes) apart, to "
      "UIF at 0x00020000, 8 UIF blocks high");
  r.ioc |= 3 << 4 | 1;
  EXPECT_EQ(
      description(r, chip::Generation::k71),
      "reads 100x64 texels of type R32F from raster at 0x00010000, rows 112 texels (448 bytes) apart, to "
      "UIF at 0x00020000, 8 UIF blocks high; makes 3 mip levels below it");
  r = {};
  r.icfg = 13 << 18 | 29 << 9;
  r.ioa = 0x20000 | 3 << 3;
  EXPECT_EQ(description(r, chip::Generation::k42),
            "copies 0x0 texels of type R32F from UB2 at 0x00000000, to LT at 0x00020000");
}

// The kernel looks once, half a second after the start (drm-abi.md 3.5): of the chip's time.
TEST_F(Tfu, IsNotThereOnVideoCoreIv) {
  JobError error;
  job_.error = &error;
  profile_ = *chip::find_profile("rpi3");
  run(job_, {});
  EXPECT_EQ(error.message(), "TFU: V3D 2.1 has none");
}

TEST_F(Tfu, JobsThatTakeTheChipTooLongHang) {
  constexpr double kBytes = 64 * 64 * 4;
  for (const uint32_t output : {0u, 6u}) {  // rows, and bands
    const Registers r = registers71(29, 0, 64, output, output == 0 ? 64 : 8, 64, 64);
    for (const bool too_long : {false, true}) {
      profile_.read_ns_per_byte = (too_long ? 0.26e9 : 0.24e9) / kBytes;
      profile_.write_ns_per_byte = 0.25e9 / kBytes;
      JobError error;
      job_.error = &error;
      run(job_, r);
      EXPECT_EQ(error.failed(), too_long);
      EXPECT_EQ(error.kind() == JobError::Kind::kHang, too_long);
      job_.patience = 2;
      JobError none;
      job_.error = &none;
      run(job_, r);
      EXPECT_FALSE(none.failed());
      job_.patience = 1;
    }
  }
}

TEST_F(Tfu, EveryPairOfLayouts) {
  const uint32_t types[] = {0, 16, 29, 18, 31};  // what Mesa uses for 1, 2, 4, 8 and 16 bytes
  for (uint32_t t = 0; t < 5; ++t) {
    const uint32_t cpp = 1u << t, uw = tmu::utile_width(cpp), uh = tmu::utile_height(cpp);
    for (uint32_t from : {0u, 11u, 12u, 13u, 14u, 15u})
      for (uint32_t to : {0u, 3u, 4u, 5u, 6u, 7u}) {
        uint32_t width = 1 + random() % (12 * uw), height = 1 + random() % (12 * uh);
        if (from == 13 || to == 5) width = 1 + random() % (4 * uw);
        if (from == 12 || to == 4) width = 1 + random() % (2 * uw);
        if (from == 11 || to == 3) height = 1 + random() % uh;
        const uint32_t rows = (height + 2 * uh - 1) / (2 * uh);
        const uint32_t from_ub = from == 15 ? 32 : rows + 2, to_ub = to == 7 ? 32 : rows + 3;
        const uint32_t iis = from == 0 ? width + 5 : from >= 14 ? from_ub : 0;
        fill(1 << 18);
        const uint32_t to_stride = to == 0 ? width + random() % 9 : to >= 6 ? to_ub : 0;
        // 7.1 takes both numberings of the input.
        const uint32_t code = from != 0 && random() % 2 ? from - 8 : from;
        Registers r = registers71(types[t], code, iis, to, to_stride, width, height);
        if (to != 0 && random() % 2) {
          profile_.generation = chip::Generation::k42;
          r.icfg = types[t] << 9 | from << 18 | (to == 6 ? to_ub - rows : 0) << 22;
          r.ioa |= to << 3;
          if (to == 7) r.icfg |= std::min(15u, 32 - rows) << 22;
        } else {
          profile_.generation = chip::Generation::k71;
        }
        const uint32_t to_height =
            profile_.generation == chip::Generation::k42 && to == 7 ? rows + std::min(15u, 32 - rows) : to_ub;
        run(job_, r);
        ASSERT_FALSE(error_.failed()) << error_.message();
        const auto from_tiling = static_cast<Tiling>(from == 0 ? 0 : from - 10);
        const auto to_tiling = static_cast<Tiling>(to == 0 ? 0 : to - 2);
        uint32_t written = 0;
        for (uint32_t y = 0; y < height; ++y)
          for (uint32_t x = 0; x < width; ++x) {
            const uint32_t source = texel_offset(from_tiling, cpp, from == 0 ? iis * cpp : from_ub, x, y);
            const uint32_t target = texel_offset(to_tiling, cpp, to == 0 ? to_stride * cpp : to_height, x, y);
            ASSERT_EQ(memcmp(gpu_.memory().host(kInput + source), gpu_.memory().host(kOutput + target), cpp),
                      0)
                << "cpp " << cpp << " from " << from << " to " << to << " " << width << "x" << height
                << " at " << x << "," << y;
            for (uint32_t b = 0; b < cpp; ++b) gpu_.memory().store<uint8_t>(kOutput + target + b, 0xab);
            written += cpp;
          }
        for (uint32_t i = 0; i < 1 << 18; ++i)  // nothing else was written
          ASSERT_EQ(gpu_.memory().load<uint8_t>(kOutput + i), 0xab) << "at " << i;
        EXPECT_EQ(written, width * height * cpp);
      }
  }
  EXPECT_EQ(gpu_.take_faults(), 0u);
}

/// Registers of jobs that Mesa 26 was seen to submit; addresses are ours.
Registers observed(uint32_t icfg, uint32_t iis, uint32_t ios, uint32_t ioc) {
  Registers r = {};
  r.icfg = icfg;
  r.iia = kInput;
  r.iis = iis;
  r.ioa = kOutput;
  r.ios = ios;
  r.ioc = ioc;
  return r;
}

TEST_F(Tfu, FillRepeatsTheFirstRow) {
  fill(1024);
  const Registers r = observed(0x00650000, 0, 0x00010040, 0x00400000);
  run(job_, r);
  ASSERT_FALSE(error_.failed()) << error_.message();
  EXPECT_EQ(memcmp(gpu_.memory().host(kInput), gpu_.memory().host(kOutput), 256), 0);
  EXPECT_EQ(gpu_.memory().load<uint32_t>(kOutput + 256), 0xabababab);

  Registers rows = r;
  rows.ios = 0x00030010;  // 3 rows of 16 texels, 20 apart
  rows.ioc = 20 << 16;
  fill(1024);
  run(job_, rows);
  for (uint32_t y = 0; y < 3; ++y) {
    EXPECT_EQ(memcmp(gpu_.memory().host(kInput), gpu_.memory().host(kOutput + y * 80), 64), 0);
    EXPECT_EQ(gpu_.memory().load<uint32_t>(kOutput + y * 80 + 64), 0xabababab);
  }
}

TEST_F(Tfu, BufferCopiesHaveTheAlignmentOfATexel) {
  const struct {
    Registers r;
    uint32_t bytes;
  } jobs[] = {{observed(0x00610000, 0x25, 0x00010025, 0x00250000), 37},
              {observed(0x00630000, 0x13, 0x00010013, 0x00130000), 38},
              {observed(0x00650000, 0x10, 0x00010010, 0x00100000), 64}};
  for (auto [r, bytes] : jobs) {
    const uint32_t texel = r.icfg >> 16 == 0x61 ? 1 : r.icfg >> 16 == 0x63 ? 2 : 4;
    fill(1024);
    r.iia += 11 * texel;
    r.ioa += 5 * texel;
    run(job_, r);
    ASSERT_FALSE(error_.failed()) << error_.message();
    EXPECT_EQ(memcmp(gpu_.memory().host(r.iia), gpu_.memory().host(r.ioa), bytes), 0);
    EXPECT_EQ(gpu_.memory().load<uint8_t>(r.ioa - 1), 0xab);
    EXPECT_EQ(gpu_.memory().load<uint8_t>(r.ioa + bytes), 0xab);
  }
}

TEST_F(Tfu, BlitOfUifXorToRaster) {
  gpu_.randomize(16 << 20, 4);
  run(job_, observed(0x039d0000, 0x40, 0x01f401f4, 0x01f80000));
  ASSERT_FALSE(error_.failed()) << error_.message();
  for (uint32_t y = 0; y < 500; ++y)
    for (uint32_t x = 0; x < 500; ++x)
      ASSERT_EQ(gpu_.memory().load<uint32_t>(kOutput + (y * 504 + x) * 4),
                gpu_.memory().load<uint32_t>(kInput + texel_offset(Tiling::kUifXor, 4, 64, x, y)));
}

TEST_F(Tfu, UploadOfALargeImage) {
  gpu_.randomize(16 << 20, 4);
  run(job_, observed(0x001d0000, 0x100, 0x01000100, 0x00207000));
  expect_tiled(Tiling::kUifXor, 32, 256);
}

TEST_F(Tfu, IntegersOfEverySize) {
  for (uint32_t type = 96; type <= 114; ++type) {
    const uint32_t cpp = tmu::find_format(chip::kDefaultGeneration, tmu::TextureType{type})->cpp;
    fill(16 * 16 * 16);
    run(job_, registers71(type, 0, 16, 0, 16, 16, 16));
    ASSERT_FALSE(error_.failed()) << error_.message();
    EXPECT_EQ(memcmp(gpu_.memory().host(kInput), gpu_.memory().host(kOutput), 16 * 16 * cpp), 0);
    EXPECT_EQ(gpu_.memory().load<uint8_t>(kOutput + 16 * 16 * cpp), cpp == 16 ? 0 : 0xab) << type;
  }
}

TEST_F(Tfu, OverlappingRowsAreCopiedInOrder) {
  gpu_.randomize(4096, 9);
  for (const int distance : {4, -4, 64, -64, 256}) {
    constexpr uint32_t kSize = 8 * 64;
    const GpuAddr from = kInput + 1024, to = from + static_cast<uint32_t>(distance);
    std::vector<uint8_t> bytes(4096);
    memcpy(bytes.data(), gpu_.memory().host(kInput), 4096);
    for (uint32_t row = 0; row < kSize; row += 64)
      memmove(&bytes[to - kInput + row], &bytes[from - kInput + row], 64);
    Registers r = registers71(101, 0, 16, 0, 16, 16, 8);
    r.iia = from;
    r.ioa = to;
    run(job_, r);
    EXPECT_EQ(memcmp(bytes.data(), gpu_.memory().host(kInput), 4096), 0) << distance;
  }
}

TEST_F(Tfu, TheLargestCopies) {
  // Inside the memory that there is: rows lie 4 texels apart, or all in one place.
  Registers r = registers71(97, 0, 0, 0, 0, 16384, 16384);
  run(job_, r);
  ASSERT_FALSE(error_.failed()) << error_.message();
  EXPECT_EQ(memcmp(gpu_.memory().host(kInput), gpu_.memory().host(kOutput), 16384), 0);
  r = registers71(97, 0, 4, 0, 4, 3, 16384);
  gpu_.randomize(1 << 16, 8);
  run(job_, r);
  for (uint32_t y = 0; y < 16384; ++y)
    ASSERT_EQ(memcmp(gpu_.memory().host(kInput + 4 * y), gpu_.memory().host(kOutput + 4 * y), 3), 0) << y;
  EXPECT_EQ(gpu_.take_faults(), 0u);
}

TEST_F(Tfu, AHugeCopyCanBeEnded) {
  for (uint32_t output : {0u, 6u}) {
    cancel_ = false;
    std::thread stop([this] {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      cancel_ = true;
    });
    run(job_, registers71(113, 0, 0, output, 0, 16384, 16384));
    EXPECT_TRUE(cancel_);
    stop.join();
  }
}

/// One level of an image in memory as numbers.
class MipImage {
 public:
  MipImage(Memory memory, GpuAddr base, const tmu::Level& level, uint32_t cpp)
      : memory_(memory), base_(base + static_cast<uint32_t>(level.offset)), level_(level), cpp_(cpp) {}
  GpuAddr address(uint32_t x, uint32_t y) const {
    return base_ + texel_offset(level_.tiling, cpp_, level_.padded_height_ub, x, y);
  }
  uint32_t width() const { return level_.width; }
  uint32_t height() const { return level_.height; }

  /// The tap of texture.md 10.4 for texel (x, y) of the next level.
  template <typename Value>
  double tap(const Value& value, uint32_t x, uint32_t y, uint32_t next_width, uint32_t next_height) const {
    const double u = (x + 0.5) * width() / next_width - 0.5, v = (y + 0.5) * height() / next_height - 0.5;
    double sum = 0;
    for (int k = 0; k < 4; ++k) {
      const double fx = u - std::floor(u), fy = v - std::floor(v);
      const double w = (k & 1 ? fx : 1 - fx) * (k & 2 ? fy : 1 - fy);
      const auto at = [](double p, int step, uint32_t size) {
        return static_cast<uint32_t>(std::clamp(std::floor(p) + step, 0.0, size - 1.0));
      };
      sum += w * value(address(at(u, k & 1, width()), at(v, k >> 1, height())));
    }
    return sum;
  }

 private:
  Memory memory_;
  GpuAddr base_;
  const tmu::Level& level_;
  uint32_t cpp_;
};

TEST_F(Tfu, MipExampleOfBothChips) {  // texture.md 10.1: six levels below 64 x 64 RGBA8
  const struct {
    chip::Generation generation;
    uint32_t icfg;
  } jobs[] = {{chip::Generation::k71, 0x07040000},
              {chip::Generation::k71, 0x03040000},
              {chip::Generation::k42, 0x003808c0}};  // 7.1: both numbers of UIF
  for (const auto& [generation, icfg] : jobs) {
    profile_.generation = generation;
    gpu_.randomize(9 << 20, 5);
    tmu::Level levels[7];
    compute_levels({.width = 64, .height = 64, .depth = 1, .cpp = 4, .num_levels = 7}, levels);
    Registers r = {};
    r.iia = kOutput;
    r.iis = 8;
    r.ios = 0x00400040;
    r.icfg = icfg;
    r.ioa = generation == chip::Generation::k71 ? kOutput : kOutput | 0x31;
    r.ioc = generation == chip::Generation::k71 ? 0x00086061 : 0;
    const uint32_t first = gpu_.memory().load<uint32_t>(kOutput);
    run(job_, r);
    ASSERT_FALSE(error_.failed()) << error_.message();
    EXPECT_EQ(gpu_.memory().load<uint32_t>(kOutput), first);
    for (int l = 1; l < 7; ++l) {
      const MipImage above(gpu_.memory(), kOutput, levels[l - 1], 4),
          level(gpu_.memory(), kOutput, levels[l], 4);
      for (uint32_t y = 0; y < level.height(); ++y)
        for (uint32_t x = 0; x < level.width(); ++x)
          for (uint32_t c = 0; c < 4; ++c) {
            uint32_t sum = 0;  // the 2 x 2 box
            for (uint32_t k = 0; k < 4; ++k)
              sum += gpu_.memory().load<uint8_t>(above.address(2 * x + k % 2, 2 * y + k / 2) + c);
            ASSERT_NEAR(gpu_.memory().load<uint8_t>(level.address(x, y) + c), sum / 4.0, 0.5001);
          }
    }
  }
}

TEST_F(Tfu, MipsOfOddAndEvenSizesInEveryFormat) {
  struct Case {
    uint32_t type, cpp, bits, first;  // a channel to look at
    bool is_float, is_signed;
  };
  const Case cases[] = {
      {0, 1, 8, 0, false, false},    {1, 1, 8, 0, false, true},    {2, 2, 8, 8, false, false},
      {3, 2, 8, 8, false, true},     {4, 4, 8, 24, false, false},  {5, 4, 8, 16, false, true},
      {6, 2, 6, 5, false, false},    {7, 2, 4, 12, false, false},  {8, 2, 5, 11, false, false},
      {9, 4, 10, 20, false, false},  {10, 2, 16, 0, false, false}, {11, 2, 16, 0, false, true},
      {12, 4, 16, 16, false, false}, {13, 4, 16, 16, false, true}, {14, 8, 16, 48, false, false},
      {15, 8, 16, 32, false, true},  {16, 2, 16, 0, true, true},   {17, 4, 16, 16, true, true},
      {18, 8, 16, 48, true, true},   {19, 4, 11, 11, true, false}};
  for (const Case& c : cases)
    for (const auto& [width, height] : {std::pair{37u, 22u}, std::pair{64u, 32u}}) {
      tmu::Level levels[6];
      compute_levels({.width = width, .height = height, .depth = 1, .cpp = c.cpp, .num_levels = 6}, levels);
      gpu_.randomize(9 << 20, 5 + c.type);
      if (c.is_float)  // finite numbers only: clear the top exponent bit of every half or small float
        for (uint32_t i = 0; i < 1 << 16; i += 2) {
          const GpuAddr at = kOutput - (1 << 15) + i;
          const uint32_t word = gpu_.memory().load<uint16_t>(at);
          gpu_.memory().store(at, static_cast<uint16_t>(c.type == 19 ? 0x0100 : word & 0xbfff));
        }
      const auto value = [&](GpuAddr at) {
        uint64_t texel = 0;
        memcpy(&texel, gpu_.memory().host(at), c.cpp);
        const auto field = static_cast<uint32_t>(texel >> c.first) & ((1u << c.bits) - 1);
        if (c.is_float)
          return static_cast<double>(
              half_to_float(static_cast<uint16_t>(field << (c.is_signed ? 0 : 15 - c.bits))));
        if (!c.is_signed) return field / ((1u << c.bits) - 1.0);
        const int32_t number = static_cast<int32_t>(field << (32 - c.bits)) >> (32 - c.bits);
        return std::max(-1.0, number / ((1u << (c.bits - 1)) - 1.0));
      };
      const uint32_t uh = tmu::utile_height(c.cpp);
      const bool uif = levels[0].tiling == Tiling::kUif;
      Registers r = registers71(c.type, 10 + static_cast<uint32_t>(levels[0].tiling),
                                levels[0].padded_height_ub, 2 + static_cast<uint32_t>(levels[0].tiling),
                                uif ? levels[0].padded_height / (2 * uh) : 0, width, height);
      r.iia = kOutput;
      r.ioc |= 1 | 5 << 4;
      profile_.generation = chip::Generation::k71;
      run(job_, r);
      ASSERT_FALSE(error_.failed()) << error_.message();
      for (int l = 1; l < 6; ++l) {
        const MipImage above(gpu_.memory(), kOutput, levels[l - 1], c.cpp),
            level(gpu_.memory(), kOutput, levels[l], c.cpp);
        for (uint32_t y = 0; y < level.height(); ++y)
          for (uint32_t x = 0; x < level.width(); ++x) {
            const double expected = above.tap(value, x, y, level.width(), level.height());
            const double tolerance = c.is_float ? std::abs(expected) * (c.is_signed ? 0.0006 : 0.01) + 1e-7
                                                : 0.5001 / ((1u << (c.bits - c.is_signed)) - 1.0);
            ASSERT_NEAR(value(level.address(x, y)), expected, tolerance)
                << "type " << c.type << " level " << l << " at " << x << "," << y;
          }
      }
    }
}

TEST_F(Tfu, WhatIsNotSupportedIsNamed) {
  const struct {
    uint32_t type, input, output, mips;
    const char* text;
  } cases[] = {{21, 0, 6, 0, "texture type 21"},
               {115, 0, 6, 0, "A1_RGB5"},
               {64, 0, 6, 0, "ASTC_4X4"},
               {25, 0, 6, 0, "R4"},
               {29, 1, 6, 0, "input memory format 1 (SAND)"},
               {29, 2, 6, 0, "input memory format 2 (constant colour)"},
               {29, 10, 6, 0, "input memory format 10 (unassigned)"},
               {29, 0, 2, 0, "output memory format 2 (unassigned)"},
               {29, 14, 6, 3, "R32F"},
               {20, 14, 6, 1, "RGB9_E5"},
               {101, 6, 6, 1, "RGBA8UI"},
               {4, 6, 0, 2, "2 mip levels of raster output"}};
  for (const auto& c : cases) {
    JobError error;
    job_.error = &error;
    Registers r = registers71(c.type, c.input, 64, c.output, 8, 64, 64);
    r.ioc |= c.mips << 4;
    fill(4096);
    run(job_, r);
    EXPECT_TRUE(error.failed());
    EXPECT_THAT(error.message(), testing::HasSubstr(c.text));
    EXPECT_EQ(gpu_.memory().load<uint32_t>(kOutput), 0xabababab);
  }
}

TEST_F(Tfu, LargerJobsThanTheDriversSendAreRefused) {
  for (const uint32_t ios : {0x4001u, 0x40010001u, 0xffffffffu}) {
    JobError error;
    job_.error = &error;
    Registers r = registers71(97, 0, 0, 0, 0, 1, 1);
    r.ios = ios | 1 << 16;
    run(job_, r);
    EXPECT_THAT(error.message(), testing::HasSubstr("at most 16384 x 16384"));
  }
}

TEST_F(Tfu, RandomRegistersAreHarmless) {
  for (int i = 0; i < 300; ++i) {
    profile_.generation = i & 1 ? chip::Generation::k71 : chip::Generation::k42;
    JobError error;
    job_.error = &error;
    Registers r = {};
    r.icfg = random() * 3;
    r.iia = random() * 3;
    r.iis = random() * 3;
    r.ioa = random() * 3;
    r.ios = (random() % 40) << 16 | random() % 300;
    r.ioc = random() * 3;
    if (i % 7 == 0) r.ios = i & 1 ? 0 : 0xffff;  // no rows; or the widest row there is
    run(job_, r);
  }
}

TEST_F(Tfu, CancelEndsAJobEarly) {
  cancel_ = true;
  fill(4096);
  run(job_, registers71(29, 0, 64, 6, 8, 64, 64));
  EXPECT_EQ(gpu_.memory().load<uint32_t>(kOutput), 0xabababab);
}

}  // namespace
}  // namespace v3d::tfu
