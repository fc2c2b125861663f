#include "ioctl/display/compose.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "ioctl/display/formats.h"

namespace v3d::ioctl::kms {
namespace {

constexpr uint32_t kRotate0 = 1, kRotate90 = 2, kRotate180 = 4, kReflectX = 16, kReflectY = 32;
constexpr uint32_t kPremultiplied = 0, kCoverage = 1, kNone = 2;
constexpr uint32_t kBelow = 0x204060;

uint32_t fourcc(const char* name) {
  uint32_t code = 0;
  std::memcpy(&code, name, 4);
  return code;
}

/// A framebuffer that covers the screen's upper left corner, pixel by pixel.
struct Plane {
  PlanePixels pixels = {};
  std::vector<uint8_t> memory[wire::kMaxPlaneParts];

  Plane(const char* format, uint32_t width, uint32_t height) {
    wire::ScreenPlane& plane = pixels.plane;
    plane.plane_id = 35;
    plane.fourcc = fourcc(format);
    plane.width = plane.w = width;
    plane.height = plane.h = height;
    plane.src_w = width << 16;
    plane.src_h = height << 16;
    plane.alpha = 0xffff;
    plane.rotation = kRotate0;
  }
  template <class T>
  Plane& add(const std::vector<T>& values, uint32_t pitch) {
    wire::ScreenPlane& plane = pixels.plane;
    std::vector<uint8_t>& bytes = memory[plane.num_parts];
    bytes.resize(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    plane.parts[plane.num_parts].pitch = pitch;
    pixels.parts[plane.num_parts++] = bytes;
    return *this;
  }
  wire::ScreenPlane& operator*() { return pixels.plane; }
};

/// 1 2
/// 3 4
Plane numbered() {
  Plane plane("XR24", 2, 2);
  plane.add(std::vector<uint32_t>{1, 2, 3, 4}, 8);
  return plane;
}

std::vector<uint32_t> draw(const Plane& plane, uint32_t width, uint32_t height) {
  Image image(width, height);
  std::fill(image.pixels.begin(), image.pixels.end(), kBelow);
  const absl::Status drawn = draw_plane(plane.pixels, &image);
  EXPECT_TRUE(drawn.ok()) << drawn;
  return image.pixels;
}

using Pixels = std::vector<uint32_t>;

TEST(Compose, PutsAPlaneAtItsPlace) {
  Plane plane = numbered();
  (*plane).x = 1;
  (*plane).y = 1;
  EXPECT_EQ(draw(plane, 3, 3), (Pixels{kBelow, kBelow, kBelow, kBelow, 1, 2, kBelow, 3, 4}));
}

TEST(Compose, CutsOffWhatLiesBesideTheScreen) {
  Plane plane = numbered();
  (*plane).x = -1;
  EXPECT_EQ(draw(plane, 2, 1), (Pixels{2, kBelow}));
  (*plane).x = 1;
  (*plane).y = -1;
  EXPECT_EQ(draw(plane, 2, 2), (Pixels{kBelow, 3, kBelow, kBelow}));
  (*plane).x = INT32_MIN;
  EXPECT_EQ(draw(plane, 1, 1), (Pixels{kBelow}));
  (*plane).x = INT32_MAX;
  EXPECT_EQ(draw(plane, 1, 1), (Pixels{kBelow}));
}

TEST(Compose, TakesAPartOfTheFramebuffer) {
  Plane plane("XR24", 3, 2);
  plane.add(Pixels{1, 2, 3, 0, 4, 5, 6, 0}, 16);
  (*plane).src_x = 1 << 16;
  (*plane).src_w = 2 << 16;
  (*plane).w = 2;
  EXPECT_EQ(draw(plane, 2, 2), (Pixels{2, 3, 5, 6}));
}

TEST(Compose, TurnsAndReflects) {
  for (const auto& [rotation, expected] : {std::pair<uint32_t, Pixels>{kRotate180, {4, 3, 2, 1}},
                                           {kRotate0 | kReflectX, {2, 1, 4, 3}},
                                           {kRotate0 | kReflectY, {3, 4, 1, 2}},
                                           {kRotate180 | kReflectX, {3, 4, 1, 2}}}) {
    Plane plane = numbered();
    (*plane).rotation = rotation;
    EXPECT_EQ(draw(plane, 2, 2), expected) << rotation;
  }
}

TEST(Compose, ScalesBilinearlyBetweenTheCentresOfPixels) {
  Plane plane("XR24", 2, 1);
  plane.add(Pixels{0x000000, 0x804020}, 8);
  (*plane).w = 4;
  EXPECT_EQ(draw(plane, 4, 1), (Pixels{0x000000, 0x201008, 0x603018, 0x804020}));
  // Half the size: between two.
  (*plane).w = 1;
  EXPECT_EQ(draw(plane, 1, 1), (Pixels{0x402010}));
}

TEST(Compose, BlendsByTheProperties) {
  // The framebuffer's pixel is half transparent; it lies on 0x204060.
  const auto blended = [](uint32_t mode, uint32_t alpha) {
    Plane plane("AR24", 1, 1);
    plane.add(Pixels{0x80402010}, 4);
    (*plane).blend = mode;
    (*plane).alpha = alpha;
    return draw(plane, 1, 1)[0];
  };
  EXPECT_EQ(blended(kNone, 0xffff), 0x402010u);
  // 0x40 + 0x20 * 127/255, 0x20 + 0x40 * 127/255, 0x10 + 0x60 * 127/255
  EXPECT_EQ(blended(kPremultiplied, 0xffff), 0x504040u);
  // (0x40 * 128 + 0x20 * 127) / 255, ...
  EXPECT_EQ(blended(kCoverage, 0xffff), 0x303038u);
  EXPECT_EQ(blended(kPremultiplied, 0), kBelow);
  EXPECT_EQ(blended(kCoverage, 0), kBelow);
  EXPECT_EQ(blended(kNone, 0x8000), 0x303038u);
}

TEST(Compose, ChannelsOfSumsAreFullAtMost) {
  Plane plane("AR24", 1, 1);
  plane.add(Pixels{0x00ffffff}, 4);  // not premultiplied, whatever is said
  EXPECT_EQ(draw(plane, 1, 1), (Pixels{0xffffff}));
}

TEST(Compose, AlphaOfFormatsWithoutIsIgnored) {
  Plane plane("XR24", 1, 1);
  plane.add(Pixels{0x00402010}, 4);
  (*plane).blend = kCoverage;
  EXPECT_EQ(draw(plane, 1, 1), (Pixels{0x402010}));
}

TEST(Compose, ReadsFormatsOfRgb) {
  EXPECT_EQ(draw(Plane("XB24", 1, 1).add(Pixels{0x112233}, 4), 1, 1), (Pixels{0x332211}));
  EXPECT_EQ(draw(Plane("AB24", 1, 1).add(Pixels{0xff112233}, 4), 1, 1), (Pixels{0x332211}));
  const std::vector<uint16_t> pixels = {0xf800, 0x07e0, 0x001f, 0x8410};
  EXPECT_EQ(draw(Plane("RG16", 4, 1).add(pixels, 8), 4, 1), (Pixels{0xff0000, 0x00ff00, 0x0000ff, 0x848284}));
  EXPECT_EQ(draw(Plane("BG16", 4, 1).add(pixels, 8), 4, 1), (Pixels{0x0000ff, 0x00ff00, 0xff0000, 0x848284}));
}

TEST(Compose, ReadsFormatsOfYuv) {
  // BT.601 of limited range: white, black, and pure red (81, 90, 240).
  const std::vector<uint8_t> luma = {235, 16, 81, 81};
  const std::vector<uint8_t> grey_red[] = {{128, 90}, {128, 240}};
  const Pixels expected = {0xffffff, 0x000000, 0xfe0000, 0xfe0000};
  EXPECT_EQ(draw(Plane("NV12", 4, 1).add(luma, 4).add(std::vector<uint8_t>{128, 128, 90, 240}, 4), 4, 1),
            expected);
  EXPECT_EQ(draw(Plane("YU12", 4, 1).add(luma, 4).add(grey_red[0], 2).add(grey_red[1], 2), 4, 1), expected);
  EXPECT_EQ(draw(Plane("YV12", 4, 1).add(luma, 4).add(grey_red[1], 2).add(grey_red[0], 2), 4, 1), expected);
}

/// The formats of one part as drm_fourcc.h writes them: channels and their bits from the highest on.
struct Packed {
  const char* format;
  const char* channels;
  unsigned bits[4];
};
constexpr Packed kPacked[] = {
    {"XR24", "xrgb", {8, 8, 8, 8}},    {"AR24", "argb", {8, 8, 8, 8}},    {"AB24", "abgr", {8, 8, 8, 8}},
    {"XB24", "xbgr", {8, 8, 8, 8}},    {"RG16", "rgb", {5, 6, 5}},        {"BG16", "bgr", {5, 6, 5}},
    {"AR15", "argb", {1, 5, 5, 5}},    {"XR15", "xrgb", {1, 5, 5, 5}},    {"RG24", "rgb", {8, 8, 8}},
    {"BG24", "bgr", {8, 8, 8}},        {"XR30", "xrgb", {2, 10, 10, 10}}, {"AR30", "argb", {2, 10, 10, 10}},
    {"AB30", "abgr", {2, 10, 10, 10}}, {"XB30", "xbgr", {2, 10, 10, 10}}, {"RGB8", "rgb", {3, 3, 2}},
    {"BGR8", "bgr", {2, 3, 3}},        {"XR12", "xrgb", {4, 4, 4, 4}},    {"AR12", "argb", {4, 4, 4, 4}},
    {"XB12", "xbgr", {4, 4, 4, 4}},    {"AB12", "abgr", {4, 4, 4, 4}},    {"RX12", "rgbx", {4, 4, 4, 4}},
    {"RA12", "rgba", {4, 4, 4, 4}},    {"BX12", "bgrx", {4, 4, 4, 4}},    {"BA12", "bgra", {4, 4, 4, 4}},
};

constexpr uint64_t kBroadcom = uint64_t{7} << 56;

/// 64x40 pixels in T: tiles of 128x32 bytes, the second row of them from right to left, each of four subtiles
/// of 1 KiB, the odd rows' in another order (vc4-graphics.md 5.4).
TEST(Compose, ReadsTiles) {
  constexpr uint32_t kWidth = 64, kHeight = 40;
  Pixels memory(4 * 1024);
  const struct {
    uint32_t x, y, offset;  // bytes
  } kPlaces[] = {{0, 0, 0},
                 {1, 0, 4},
                 {0, 1, 16},
                 {4, 0, 64},
                 {0, 4, 256},
                 {16, 0, 3 * 1024},
                 {0, 16, 1024},
                 {16, 16, 2 * 1024},
                 {32, 0, 4096},
                 {0, 32, 3 * 4096 + 2 * 1024},
                 {63, 39, 2 * 4096 + 1024 + 64 * (4 + 3) + 3 * 16 + 12}};
  for (const auto& place : kPlaces) memory[place.offset / 4] = place.x << 8 | place.y | 0x10000;
  Plane plane("XR24", kWidth, kHeight);
  plane.add(memory, kWidth * 4);
  (*plane).modifier = kBroadcom | 1;
  const Pixels drawn = draw(plane, kWidth, kHeight);
  for (const auto& place : kPlaces)
    EXPECT_EQ(drawn[place.y * kWidth + place.x], place.x << 8 | place.y | 0x10000)
        << place.x << "," << place.y;
}

/// Columns of 64 bytes and of 6 rows: 4 of luma, 2 of chroma.
TEST(Compose, ReadsColumns) {
  constexpr uint32_t kWidth = 96, kHeight = 4, kColumn = 64, kRows = 6;
  std::vector<uint8_t> luma(2 * kColumn * kRows, 128);
  luma[3 * kColumn + 5] = 200;                   // (5, 3)
  luma[kRows * kColumn + 2 * kColumn + 1] = 90;  // (65, 2)
  Plane plane("NV12", kWidth, kHeight);
  plane.add(luma, kWidth);
  plane.add(std::vector<uint8_t>(luma.begin() + kHeight * kColumn, luma.end()), kWidth);
  (*plane).modifier = kBroadcom | 3 | kRows << 8;
  (*plane).color_range = 1;
  const Pixels drawn = draw(plane, kWidth, kHeight);
  EXPECT_EQ(drawn[3 * kWidth + 5], 0xc8c8c8u);
  EXPECT_EQ(drawn[2 * kWidth + 65], 0x5a5a5au);
  EXPECT_EQ(drawn[0], 0x808080u);
}

/// Three samples of 10 bits in a word, in columns of 128 bytes.
TEST(Compose, ReadsColumnsOfTenBits) {
  constexpr uint32_t kWidth = 102, kHeight = 2, kRows = 3, kColumn = 32;  // words
  const auto word = [](uint32_t a, uint32_t b, uint32_t c) { return a << 2 | b << 12 | c << 22; };
  std::vector<uint32_t> luma(2 * kColumn * kRows, word(128, 128, 128));
  luma[kColumn + 1] = word(128, 128, 200);     // (5, 1)
  luma[kRows * kColumn] = word(90, 128, 128);  // (96, 0)
  Plane plane("P030", kWidth, kHeight);
  plane.add(luma, 136);
  std::vector<uint32_t> chroma(luma.begin() + kHeight * kColumn, luma.end());
  std::fill(chroma.begin(), chroma.end(), word(128, 128, 128));
  chroma[1] = word(255, 128, 128);  // Cr of pixels 2 and 3
  plane.add(chroma, 136);
  (*plane).modifier = kBroadcom | 4 | kRows << 8;
  (*plane).color_range = 1;
  const Pixels drawn = draw(plane, kWidth, kHeight);
  EXPECT_EQ(drawn[kWidth + 5], 0xc8c8c8u);
  EXPECT_EQ(drawn[96], 0x5a5a5au);
  EXPECT_EQ(drawn[2] >> 16, 255u);
  EXPECT_EQ(drawn[4], 0x808080u);
  // One row less of memory.
  plane.pixels.parts[1] = plane.pixels.parts[1].first(plane.pixels.parts[1].size() - 2 * 128);
  Image image(kWidth, kHeight);
  EXPECT_EQ(draw_plane(plane.pixels, &image).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Compose, ReadsEveryPackedFormat) {
  uint64_t random = 1;
  for (const Packed& packed : kPacked) {
    unsigned all = 0;
    for (const unsigned bits : packed.bits) all += bits;
    for (int i = 0; i < 100; ++i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      const auto pixel = static_cast<uint32_t>(random >> 32);
      // Each channel as a fraction, which what is read is next to.
      double value[4] = {0, 0, 0, 1};
      unsigned shift = all;
      for (size_t c = 0; packed.channels[c]; ++c) {
        shift -= packed.bits[c];
        const size_t place = std::string_view("rgba").find(packed.channels[c]);
        const uint32_t most = (1u << packed.bits[c]) - 1;
        if (place < 4) value[place] = (pixel >> shift & most) / static_cast<double>(most);
      }
      std::vector<uint8_t> bytes(4);
      std::memcpy(bytes.data(), &pixel, 4);
      bytes.resize((all + 7) / 8);
      Plane plane(packed.format, 1, 1);
      plane.add(bytes, static_cast<uint32_t>(bytes.size()));
      (*plane).blend = kCoverage;
      const uint32_t got = draw(plane, 1, 1)[0];
      for (int c = 0; c < 3; ++c) {
        const double below = kBelow >> (16 - 8 * c) & 255;
        EXPECT_NEAR(got >> (16 - 8 * c) & 255, value[c] * 255 * value[3] + below * (1 - value[3]), 1.5)
            << packed.format << " " << pixel;
      }
    }
  }
}

TEST(Compose, ReadsEveryFormatOfYuv) {
  // 4 x 4 pixels of full range; Cb and Cr of each sample tell where it lies.
  const struct {
    const char* format;
    uint32_t parts, hsub, vsub;
    bool cr_first;
  } kCases[] = {{"YU12", 3, 2, 2, false}, {"YV12", 3, 2, 2, true},  {"YU16", 3, 2, 1, false},
                {"YV16", 3, 2, 1, true},  {"YU24", 3, 1, 1, false}, {"YV24", 3, 1, 1, true},
                {"NV12", 2, 2, 2, false}, {"NV21", 2, 2, 2, true},  {"NV16", 2, 2, 1, false},
                {"NV61", 2, 2, 1, true}};
  for (const auto& c : kCases) {
    const uint32_t across = 4 / c.hsub, down = 4 / c.vsub;
    std::vector<uint8_t> luma(16), cb(across * down), cr(across * down), both;
    for (uint32_t i = 0; i < 16; ++i) luma[i] = static_cast<uint8_t>(100 + 3 * i);
    for (uint32_t i = 0; i < cb.size(); ++i) {
      cb[i] = static_cast<uint8_t>(110 + 2 * i);
      cr[i] = static_cast<uint8_t>(140 - 2 * i);
      both.push_back(c.cr_first ? cr[i] : cb[i]);
      both.push_back(c.cr_first ? cb[i] : cr[i]);
    }
    Plane plane(c.format, 4, 4);
    plane.add(luma, 4);
    if (c.parts == 2) {
      plane.add(both, across * 2);
    } else {
      plane.add(c.cr_first ? cr : cb, across).add(c.cr_first ? cb : cr, across);
    }
    (*plane).color_range = 1;
    const Pixels got = draw(plane, 4, 4);
    for (uint32_t i = 0; i < 16; ++i) {
      const uint32_t at = i / 4 / c.vsub * across + i % 4 / c.hsub;
      const double y = luma[i], u = cb[at] - 128.0, v = cr[at] - 128.0;  // BT.601
      EXPECT_NEAR(got[i] >> 16, y + 1.402 * v, 1) << c.format << i;
      EXPECT_NEAR(got[i] >> 8 & 255, y - 0.344136 * u - 0.714136 * v, 1) << c.format << i;
      EXPECT_NEAR(got[i] & 255, y + 1.772 * u, 1) << c.format << i;
    }
  }
}

TEST(Compose, KnowsAllFormatsThatPlanesTake) {
  std::set<uint32_t> known;
  for (const Packed& packed : kPacked) known.insert(fourcc(packed.format));
  for (const char* name :
       {"YU12", "YV12", "YU16", "YV16", "YU24", "YV24", "NV12", "NV21", "NV16", "NV61", "P030"})
    known.insert(fourcc(name));
  EXPECT_EQ(known.size(), 35u);
  for (const ioctl::kms::Format& format : ioctl::kms::formats()) EXPECT_EQ(known.erase(format.fourcc), 1u);
  EXPECT_TRUE(known.empty());
}

TEST(Compose, FullRangeIsNotStretched) {
  Plane plane("NV12", 2, 1);
  plane.add(std::vector<uint8_t>{255, 7}, 2).add(std::vector<uint8_t>{128, 128}, 2);
  (*plane).color_range = 1;
  EXPECT_EQ(draw(plane, 2, 1), (Pixels{0xffffff, 0x070707}));
}

TEST(Compose, DrawsNothingOfWhatItDoesNotKnow) {
  for (const auto& change : std::vector<void (*)(wire::ScreenPlane&)>{
           [](wire::ScreenPlane& plane) { plane.rotation = kRotate90; },
           [](wire::ScreenPlane& plane) { plane.blend = 3; },
           [](wire::ScreenPlane& plane) { plane.modifier = 6 | uint64_t{7} << 56; },  // BROADCOM_UIF
           [](wire::ScreenPlane& plane) { plane.fourcc = fourcc("????"); }}) {
    Plane plane = numbered();
    change(*plane);
    Image image(2, 2);
    const absl::Status drawn = draw_plane(plane.pixels, &image);
    EXPECT_TRUE(absl::IsUnimplemented(drawn)) << drawn;
    EXPECT_NE(drawn.message().find("plane 35"), std::string::npos) << drawn;
    EXPECT_EQ(image.pixels, Pixels(4));
  }
}

TEST(Compose, RefusesRowsBeyondTheMemory) {
  for (const auto& change : std::vector<void (*)(wire::ScreenPlane&)>{
           [](wire::ScreenPlane& plane) { plane.height = 3; },
           [](wire::ScreenPlane& plane) { plane.width = 3; },
           [](wire::ScreenPlane& plane) { plane.parts[0].pitch = UINT32_MAX; },
           [](wire::ScreenPlane& plane) { plane.num_parts = 2; }}) {
    Plane plane = numbered();
    change(*plane);
    Image image(2, 2);
    EXPECT_TRUE(absl::IsInvalidArgument(draw_plane(plane.pixels, &image)));
  }
}

}  // namespace
}  // namespace v3d::ioctl::kms
