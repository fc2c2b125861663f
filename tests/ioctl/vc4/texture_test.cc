// Parameters of lookups: vc4-abi.md 3.6.
#include "ioctl/vc4/texture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>

#include "ioctl/vc4/layout.h"

namespace v3d::ioctl::vc4::test {
namespace {

using ::testing::HasSubstr;
using Words = std::array<uint32_t, 4>;

constexpr uint32_t kBase = 0x100000;

absl::StatusOr<uint32_t> relocate(const Words& words, uint64_t bo_bytes, bool direct = false) {
  std::array<uint8_t, sizeof(Words)> bytes;
  std::memcpy(bytes.data(), words.data(), sizeof words);
  return relocate_texture({.parameters = {0, 4, 8, 12}, .direct = direct}, bytes,
                          {.address = kBase, .size = bo_bytes});
}
std::string refusal(const Words& words, uint64_t bo_bytes, bool direct = false) {
  const auto base = relocate(words, bo_bytes, direct);
  return base.ok() ? "" : std::string(base.status().message());
}
/// The smallest whole number of pages of a BO that is accepted.
uint64_t pages_needed(const Words& words) {
  uint64_t pages = 0;
  while (pages < 100000 && !relocate(words, pages * 4096).ok()) ++pages;
  return pages;
}

constexpr uint32_t p0(uint32_t type, uint32_t offset = 0, uint32_t levels = 0, bool cube = false) {
  return offset | uint32_t{cube} << 9 | (type & 15) << 4 | levels;
}
constexpr uint32_t p1(uint32_t type, uint32_t width, uint32_t height) {
  return type >> 4 << 31 | (height & 2047) << 20 | (width & 2047) << 8;
}
constexpr Words image(uint32_t type, uint32_t width, uint32_t height, uint32_t offset = 0,
                      uint32_t levels = 0) {
  return {p0(type, offset, levels), p1(type, width, height)};
}

TEST(Layout, AlignsToUtiles) {
  EXPECT_EQ(image_bytes(Tiling::kLinear, 5, 3, 4), 8u * 3 * 4);
  EXPECT_EQ(image_bytes(Tiling::kLt, 5, 3, 4), 8u * 4 * 4);
  EXPECT_EQ(image_bytes(Tiling::kT, 33, 1, 4), 64u * 32 * 4);
  EXPECT_EQ(image_bytes(Tiling::kT, 65, 65, 1), 128u * 128);
  EXPECT_EQ(image_bytes(Tiling::kT, kMaxImageSide, kMaxImageSide, 8), uint64_t{128} << 20);
  EXPECT_TRUE(is_small(16, 100, 4));
  EXPECT_TRUE(is_small(100, 16, 4));
  EXPECT_FALSE(is_small(17, 17, 4));
}

TEST(Texture, KeepsTheLowBitsOfItsBase) {
  const auto base = relocate({p0(0, 0x2000) | 1 << 8, p1(0, 16, 16)}, 4 * 4096);
  ASSERT_TRUE(base.ok());
  EXPECT_EQ(*base, kBase + 0x2000 + (1 << 8));
}

TEST(Texture, KnowsTheBytesOfTypes) {
  // Texels of 64 by 64, in pages; 0: refused.
  constexpr uint64_t kPages[32] = {
      4, 4, 2, 2, 2, 1, 1, 2, /* ETC1 */ 1, 2, 1, 2, 0, 0, 0, 0, /* RGBA32R */ 4};
  for (uint32_t type = 0; type < 32; ++type) {
    if (!kPages[type]) {
      EXPECT_THAT(refusal(image(type, 64, 64), 1 << 30), HasSubstr("type")) << type;
      continue;
    }
    EXPECT_EQ(pages_needed(image(type, 64, 64)), kPages[type]) << type;
  }
}

TEST(Texture, NoSideMeansTheLargest) {
  EXPECT_EQ(pages_needed(image(5, 0, 64)), 2048u * 64 / 4096);
  EXPECT_EQ(pages_needed(image(5, 64, 0)), 2048u * 64 / 4096);
}

TEST(Texture, LevelsLieBelowTheBase) {
  // 64 by 64 of four bytes: level 1 is of T and one page, level 2 is small.
  for (uint32_t levels = 0; levels < 3; ++levels)
    for (uint32_t pages = 0; pages < 4; ++pages) {
      const bool fits = pages * 4096 >= (levels > 0 ? 4096u : 0) + (levels > 1 ? 1024u : 0);
      EXPECT_EQ(refusal(image(0, 64, 64, pages * 4096, levels), 64 * 4096).empty(), fits)
          << levels << " " << pages;
    }
}

TEST(Texture, LevelsAreThoseOfTheChip) {
  // Half of 68 is 34, and fits into 64 by 64; the chip halves 128.
  const auto levels_of = [](uint32_t pages) { return refusal(image(0, 132, 132, pages * 4096, 1), 1 << 20); };
  const uint64_t by_the_kernel = image_bytes(Tiling::kT, 66, 66, 4),
                 of_the_chip = image_bytes(Tiling::kT, 128, 128, 4);
  ASSERT_LT(by_the_kernel, of_the_chip);
  EXPECT_THAT(levels_of(by_the_kernel / 4096), HasSubstr("levels"));
  EXPECT_EQ(levels_of(of_the_chip / 4096), "");
}

TEST(Texture, CubesHaveOneStride) {
  constexpr uint32_t kKind = 1u << 30;
  const auto cube = [](uint32_t p2, uint32_t p3, uint64_t bytes = 6 * 16384) {
    return refusal({p0(0, 0, 0, true), p1(0, 64, 64), p2, p3}, bytes);
  };
  EXPECT_EQ(cube(kKind | 16384, 0), "");
  EXPECT_EQ(cube(0, kKind | 16384), "");
  EXPECT_EQ(cube(kKind | 16384, 2u << 30 | 5), "");  // a child image
  EXPECT_THAT(cube(0, 0), HasSubstr("without a stride"));
  EXPECT_THAT(cube(kKind, 0), HasSubstr("without a stride"));
  EXPECT_THAT(cube(kKind | 16384, kKind | 16384), HasSubstr("two strides"));
  EXPECT_THAT(cube(kKind | 16384, 0, 6 * 16384 - 1), HasSubstr("beyond its BO"));
  EXPECT_EQ(refusal({p0(0), p1(0, 64, 64), 0, 0}, 16384), "");  // no cube: neither is looked at
  // Five strides that wrap.
  EXPECT_THAT(cube(kKind | 0x33334000, 0), HasSubstr("beyond its BO"));
}

TEST(Texture, DirectReadsStayInTheirBo) {
  EXPECT_EQ(refusal({0, 4092}, 4096, true), "");
  EXPECT_NE(refusal({0, 4093}, 4096, true), "");
  EXPECT_EQ(refusal({4092, 0}, 4096, true), "");
  EXPECT_NE(refusal({4093, 0}, 4096, true), "");
  EXPECT_NE(refusal({4092, 1}, 4096, true), "");
  EXPECT_NE(refusal({UINT32_MAX, UINT32_MAX}, 4096, true), "");
  EXPECT_EQ(*relocate({4, 4}, 4096, true), kBase + 4);
}

}  // namespace
}  // namespace v3d::ioctl::vc4::test
