// The surfaces of a submit: vc4-abi.md 5.1.
#include "ioctl/vc4/surfaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "tests/ioctl/vc4/words.h"

namespace v3d::ioctl::vc4::test {
namespace {

using drm::vc4::kNoSurface;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

enum Index : uint32_t { kLarge, kPage, kShader, kNumBos };
constexpr uint32_t kTiled8888 = 0x44;  // of a rendering mode

class SurfacesTest : public ::testing::Test {
 protected:
  SurfacesTest() {
    bos_[kLarge] = {.address = 0x100000, .size = 1 << 20};
    bos_[kPage] = {.address = 0x300000, .size = 4096};
    bos_[kShader] = {.address = 0x400000, .size = 4096, .program = &program_};
    for (drm::vc4::Surface* s : {&args_.color_read, &args_.color_write, &args_.zs_read, &args_.zs_write,
                                 &args_.msaa_color_write, &args_.msaa_zs_write})
      s->hindex = kNoSurface;
    args_.width = args_.height = 64;
    args_.color_write = {kLarge, 0, kTiled8888, 0};
  }

  absl::StatusOr<Surfaces> check(uint8_t tiles_x = 0, uint8_t tiles_y = 0) {
    return check_surfaces(args_, bos_, tiles_x, tiles_y);
  }
  std::string refusal(uint8_t tiles_x = 0, uint8_t tiles_y = 0) {
    const auto surfaces = check(tiles_x, tiles_y);
    return surfaces.ok() ? "" : std::string(surfaces.status().message());
  }

  const Program program_ = *analyse_program(program({}));
  std::array<JobBo, kNumBos> bos_;
  drm::vc4::SubmitCl args_ = {};
};

TEST_F(SurfacesTest, DescribesTheFrame) {
  args_.flags = drm::vc4::kUseClearColor | drm::vc4::kFixedRclOrder | drm::vc4::kRclOrderIncreasingY;
  args_.clear_color[0] = 1;
  args_.clear_color[1] = 2;
  args_.clear_z = 0xff123456;
  args_.clear_s = 7;
  args_.min_x_tile = 1;
  args_.max_x_tile = 2;
  args_.max_y_tile = 3;
  args_.color_write.offset = 4096;
  args_.zs_write = {kLarge, 32768, 0x12, 0};
  const auto surfaces = check();
  ASSERT_TRUE(surfaces.ok()) << surfaces.status();
  const device::SurfaceJob& job = surfaces->job;
  EXPECT_TRUE(job.color_write.present);
  EXPECT_EQ(job.color_write.bits, kTiled8888);
  EXPECT_EQ(job.color_write.address, 0x101000u);
  EXPECT_EQ(job.color_write.bytes, (1u << 20) - 4096);
  EXPECT_TRUE(job.zs_write.present);
  EXPECT_FALSE(job.color_read.present || job.zs_read.present || job.msaa_color_write.present ||
               job.msaa_zs_write.present);
  EXPECT_TRUE(job.sets_clear_values && job.fixed_order && job.increasing_y);
  EXPECT_FALSE(job.increasing_x);
  EXPECT_THAT(job.clear_color, ElementsAre(1, 2));
  EXPECT_EQ(job.clear_z, 0x123456u);
  EXPECT_EQ(job.clear_s, 7);
  EXPECT_EQ(job.min_x, 1);
  EXPECT_EQ(job.max_x, 2);
  EXPECT_EQ(job.max_y, 3);
  EXPECT_EQ(job.width, 64);
  EXPECT_THAT(surfaces->written, ElementsAre(kLarge, kLarge));
}

TEST_F(SurfacesTest, TilesIncreaseUnlessTheOrderIsFixed) {
  EXPECT_TRUE(check()->job.increasing_x && check()->job.increasing_y);
  EXPECT_FALSE(check()->job.fixed_order);
}

TEST_F(SurfacesTest, ChecksTiles) {
  args_.min_x_tile = 2;
  args_.max_x_tile = 1;
  EXPECT_THAT(refusal(), HasSubstr("before the first"));
  args_.min_x_tile = 0;
  args_.min_y_tile = 1;
  EXPECT_THAT(refusal(), HasSubstr("before the first"));
  args_.min_y_tile = 0;
  args_.max_x_tile = args_.max_y_tile = 4;
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(refusal(4, 4), "");  // a row and a column with empty lists
  EXPECT_THAT(refusal(3, 4), HasSubstr("not binned"));
  EXPECT_THAT(refusal(4, 3), HasSubstr("not binned"));
}

TEST_F(SurfacesTest, SomethingIsStored) {
  args_.color_read = {kLarge, 0, 0x11, 0};
  args_.zs_read = {kLarge, 0, 0x12, 0};
  args_.color_write.hindex = kNoSurface;
  EXPECT_THAT(refusal(), HasSubstr("nothing is stored"));
  args_.zs_write = {kLarge, 0, 0x12, 0};
  EXPECT_EQ(refusal(), "");
}

TEST_F(SurfacesTest, TheModeCountsWithoutAColorSurface) {
  args_.color_write = {kNoSurface, 0, 0x11, 0};
  args_.msaa_color_write = {kLarge, 0, 0, 0};
  const auto surfaces = check();
  ASSERT_TRUE(surfaces.ok()) << surfaces.status();
  EXPECT_FALSE(surfaces->job.color_write.present);
  EXPECT_EQ(surfaces->job.color_write.bits, 0x11);
  args_.color_write.bits = 0x22;
  EXPECT_THAT(refusal(), HasSubstr("color_write: unknown bits"));
}

TEST_F(SurfacesTest, ChecksTheRenderingMode) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    args_.color_write.bits = static_cast<uint16_t>(bits);
    const bool good = !(bits & ~0xddu) && (bits >> 6 & 3) < 3 && (bits >> 2 & 3) < 3;
    ASSERT_EQ(refusal().empty(), good) << bits;
  }
  args_.color_write.bits = kTiled8888;
  args_.color_write.flags = 1;
  EXPECT_THAT(refusal(), HasSubstr("flags"));
}

TEST_F(SurfacesTest, ChecksLoadsAndStores) {
  for (drm::vc4::Surface* surface : {&args_.color_read, &args_.zs_read, &args_.zs_write}) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      *surface = {kLarge, 0, static_cast<uint16_t>(bits), 0};
      const uint32_t buffer = bits & 7, tiling = bits >> 4 & 3, format = bits >> 8 & 3;
      const bool good =
          !(bits & ~0x337u) && tiling < 3 && (buffer == 1 ? format < 3 : buffer == 2 && format == 0);
      ASSERT_EQ(refusal().empty(), good) << bits;
    }
    *surface = {kLarge, 8, 0x11, 0};
    EXPECT_THAT(refusal(), HasSubstr("multiple of 16"));
    *surface = {kLarge, 0, 0x11, 2};
    EXPECT_THAT(refusal(), HasSubstr("unknown flags"));
    *surface = {kNoSurface, 8, 0xffff, 2};
    EXPECT_THAT(refusal(), HasSubstr("unknown flags"));  // also where it names no BO
    *surface = {kNoSurface, 8, 0xffff, 0};
    EXPECT_EQ(refusal(), "");
  }
}

TEST_F(SurfacesTest, ChecksSizes) {
  // 64 by 64 of four bytes are four pages.
  args_.color_write.offset = (1 << 20) - 16384;
  EXPECT_EQ(refusal(), "");
  args_.color_write.offset += 16;
  EXPECT_THAT(refusal(), HasSubstr("beyond its BO"));
  args_.color_write = {kPage, 0, 0x04, 0};
  args_.height = 16;
  EXPECT_EQ(refusal(), "");
  args_.height = 17;
  EXPECT_NE(refusal(), "");
  args_.color_write.bits = 0x08;  // two bytes
  args_.height = 32;
  EXPECT_EQ(refusal(), "");
  args_.height = 33;
  EXPECT_NE(refusal(), "");
  args_.width = 1;
  args_.height = 4097;
  args_.color_write.hindex = kLarge;
  EXPECT_THAT(refusal(), HasSubstr("too wide"));
  args_.color_write.offset = UINT32_MAX;
  args_.height = 1;
  EXPECT_THAT(refusal(), HasSubstr("beyond its BO"));
}

TEST_F(SurfacesTest, ChecksBos) {
  for (drm::vc4::Surface* surface : {&args_.color_write, &args_.color_read, &args_.zs_read, &args_.zs_write,
                                     &args_.msaa_color_write, &args_.msaa_zs_write}) {
    const drm::vc4::Surface before = *surface;
    surface->hindex = kShader;
    EXPECT_THAT(refusal(), HasSubstr("is a program"));
    surface->hindex = kNumBos;
    EXPECT_THAT(refusal(), HasSubstr("of a list of 3"));
    *surface = before;
  }
}

TEST_F(SurfacesTest, RawSamplesAreRead) {
  for (drm::vc4::Surface* surface : {&args_.color_read, &args_.zs_read}) {
    *surface = {kLarge, 0, 0, drm::vc4::kReadIsFullRes};
    EXPECT_EQ(refusal(), "");
    surface->bits = 1;
    EXPECT_THAT(refusal(), HasSubstr("with bits"));
    surface->bits = 0;
  }
  EXPECT_TRUE(check()->job.color_read.raw_samples && check()->job.zs_read.raw_samples);
  args_.zs_write = {kLarge, 0, 0, drm::vc4::kReadIsFullRes};
  EXPECT_THAT(refusal(), HasSubstr("without MSAA"));
}

TEST_F(SurfacesTest, RawSamplesAreWritten) {
  for (drm::vc4::Surface* surface : {&args_.msaa_color_write, &args_.msaa_zs_write}) {
    *surface = {kNoSurface, 0, 1, 0};
    EXPECT_THAT(refusal(), HasSubstr("flags or bits"));
    *surface = {kNoSurface, 0, 0, 1};
    EXPECT_THAT(refusal(), HasSubstr("flags or bits"));
    *surface = {kLarge, 8, 0, 0};
    EXPECT_THAT(refusal(), HasSubstr("multiple of 16"));
    *surface = {kLarge, 16, 0, 0};
    EXPECT_EQ(refusal(), "");
    EXPECT_THAT(check()->written, ElementsAre(kLarge, kLarge));
    *surface = {kNoSurface, 0, 0, 0};
  }
}

// Linux lets the last tile lie beyond the BO.
TEST_F(SurfacesTest, RawSamplesEndInsideTheirBo) {
  args_.width = args_.height = 128;  // four tiles of 32 in a row
  args_.msaa_color_write = {kLarge, 0, 0, 0};
  args_.max_x_tile = args_.max_y_tile = 3;  // 16 tiles of 16 KiB
  args_.msaa_color_write.offset = (1 << 20) - 16 * 16384;
  EXPECT_EQ(refusal(), "");
  args_.msaa_color_write.offset += 16;
  EXPECT_THAT(refusal(), HasSubstr("beyond their BO"));
  args_.msaa_color_write.offset = (1 << 20) + 16;
  EXPECT_THAT(refusal(), HasSubstr("beyond their BO"));
}

}  // namespace
}  // namespace v3d::ioctl::vc4::test
