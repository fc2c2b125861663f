// Every image format through a load and a store: each texel keeps its bits, everything around it too.

#include "tests/tlb/tile_fixture.h"

namespace v3d::tlb {
namespace {

using tmu::Tiling;

struct FormatCase {
  const char* name;
  uint8_t number, bytes;
  ColorType type;
  uint8_t bpp;
};

constexpr FormatCase kFormats[] = {
    {"srgb8_alpha8", 0, 4, ColorType::k16F, 1},
    {"rgb10_a2ui", 2, 4, ColorType::k16Ui, 1},
    {"rgb10_a2", 3, 4, ColorType::k16F, 1},
    {"abgr1555", 4, 2, ColorType::k8, 0},
    {"abgr4444", 6, 2, ColorType::k8, 0},
    {"bgr565", 7, 2, ColorType::k8, 0},
    {"r11f_g11f_b10f", 8, 4, ColorType::k16F, 1},
    {"rgba32f", 9, 16, ColorType::k32F, 2},
    {"rg32f", 10, 8, ColorType::k32F, 1},
    {"r32f", 11, 4, ColorType::k32F, 0},
    {"rgba32i", 12, 16, ColorType::k32I, 2},
    {"rg32i", 13, 8, ColorType::k32I, 1},
    {"r32i", 14, 4, ColorType::k32I, 0},
    {"rgba32ui", 15, 16, ColorType::k32Ui, 2},
    {"rg32ui", 16, 8, ColorType::k32Ui, 1},
    {"r32ui", 17, 4, ColorType::k32Ui, 0},
    {"rgba16f", 18, 8, ColorType::k16F, 1},
    {"rg16f", 19, 4, ColorType::k16F, 1},
    {"r16f", 20, 2, ColorType::k16F, 1},
    {"rgba16i", 21, 8, ColorType::k16I, 1},
    {"rg16i", 22, 4, ColorType::k16I, 0},
    {"r16i", 23, 2, ColorType::k16I, 0},
    {"rgba16ui", 24, 8, ColorType::k16Ui, 1},
    {"rg16ui", 25, 4, ColorType::k16Ui, 0},
    {"r16ui", 26, 2, ColorType::k16Ui, 0},
    {"rgba8", 27, 4, ColorType::k8, 0},
    {"rg8", 29, 2, ColorType::k8, 0},
    {"r8", 30, 1, ColorType::k8, 0},
    {"rgba8i", 31, 4, ColorType::k8I, 0},
    {"rg8i", 32, 2, ColorType::k8I, 0},
    {"r8i", 33, 1, ColorType::k8I, 0},
    {"rgba8ui", 34, 4, ColorType::k8Ui, 0},
    {"rg8ui", 35, 2, ColorType::k8Ui, 0},
    {"r8ui", 36, 1, ColorType::k8Ui, 0},
    {"rgba5551", 45, 2, ColorType::k8, 0},
    // A memory format that is not the natural one of the internal type.
    {"rgba8ui on 8", 34, 4, ColorType::k8, 0},
    {"rgba8 on 8ui", 27, 4, ColorType::k8Ui, 0},
    {"rgba8 on 16f", 27, 4, ColorType::k16F, 1},
    {"bgr565 on 16f", 7, 2, ColorType::k16F, 1},
    {"rgba8 on 32f", 27, 4, ColorType::k32F, 2},
    {"rgba8ui on 32ui", 34, 4, ColorType::k32Ui, 2},
    {"r16f on 32f", 20, 2, ColorType::k32F, 0},
    {"rgba8i on 16i", 31, 4, ColorType::k16I, 1},
};

/// What is stored to is address + kTarget: far enough from every source image.
constexpr uint32_t kTarget = 1536 << 10;

struct Shape {
  const char* name;
  Tiling tiling;
  uint32_t width, height;     // frame
  uint32_t stride_or_height;  // 0: a raster stride that fits
};

class RoundTrip : public ::testing::TestWithParam<FormatCase> {
 protected:
  /// NaN of a float16 that becomes another NaN on its way through f32 is allowed where f32 is the internal
  /// type.
  static bool skip_texel(const FormatCase& format, uint32_t texel) {
    const bool half_in_float = format.number == 20 && format.type == ColorType::k32F;
    return half_in_float && (texel & 0x7c00) == 0x7c00 && (texel & 0x3ff) != 0;
  }

  void run(const Shape& shape, bool multisample, bool reverse, bool swap) {
    const FormatCase& format = GetParam();
    TileFixture fixture;
    fixture.randomize(format.number * 7u + shape.width);
    Config config = TileFixture::one_target(format.type, format.bpp, shape.width, shape.height, multisample);
    if (format.bytes == 16) config.tile_width = config.tile_height = 16;
    fixture.configure(config);
    const uint32_t scale = multisample ? 2 : 1;
    const uint32_t stride =
        shape.stride_or_height ? shape.stride_or_height : shape.width * scale * format.bytes + format.bytes;
    LoadStore source = TileFixture::image(0, format.number, shape.tiling, stride), target = source;
    source.channel_reverse = target.channel_reverse = reverse;
    source.rb_swap = target.rb_swap = swap;
    source.decimate = target.decimate = multisample ? 3 : 0;
    target.address += kTarget;

    std::vector<uint8_t> expected = fixture.bytes();
    const auto texel_at = [&](uint32_t x, uint32_t y) {
      return TileFixture::kImage + tmu::texel_offset(shape.tiling, format.bytes, stride, x, y);
    };
    for (uint32_t y = 0; y < shape.height * scale; ++y)
      for (uint32_t x = 0; x < shape.width * scale; ++x)
        std::copy_n(&expected[texel_at(x, y)], format.bytes, &expected[texel_at(x, y) + kTarget]);

    for (uint32_t row = 0; row * config.tile_height < shape.height; ++row)
      for (uint32_t column = 0; column * config.tile_width < shape.width; ++column) {
        fixture.tile().begin_tile(column, row);
        fixture.load(source);
        fixture.store(target);
      }
    if (format.number == 20 && format.type == ColorType::k32F)
      for (uint32_t y = 0; y < shape.height * scale; ++y)
        for (uint32_t x = 0; x < shape.width * scale; ++x) {
          uint16_t texel;
          std::memcpy(&texel, &expected[texel_at(x, y)], 2);
          if (skip_texel(format, texel))
            std::copy_n(&fixture.bytes()[texel_at(x, y) + kTarget], 2, &expected[texel_at(x, y) + kTarget]);
        }
    if (expected == fixture.bytes()) return;
    const auto difference = std::mismatch(expected.begin(), expected.end(), fixture.bytes().begin());
    ADD_FAILURE() << format.name << ' ' << shape.name << (multisample ? " 4x" : "")
                  << (reverse ? " reversed" : "") << (swap ? " swapped" : "") << ": byte " << std::hex
                  << (difference.first - expected.begin()) - TileFixture::kImage - kTarget << " is "
                  << int{*difference.second} << ", expected " << int{*difference.first};
  }
};

TEST_P(RoundTrip, Raster) {
  run({"raster 128x64", Tiling::kRaster, 128, 64, 0}, false, false, false);
  run({"raster 131x67", Tiling::kRaster, 131, 67, 0}, false, false, false);
  run({"raster 1x1", Tiling::kRaster, 1, 1, 0}, false, false, false);
}

TEST_P(RoundTrip, Uif) {
  run({"UIF 128x64", Tiling::kUif, 128, 64, 38}, false, false, false);
  run({"UIF 77x45", Tiling::kUif, 77, 45, 20}, false, false, false);
  run({"UIF XOR 200x70", Tiling::kUifXor, 200, 70, 32}, false, false, false);
  run({"UIF XOR 256x64", Tiling::kUifXor, 256, 64, 32}, false, false, false);
  run({"UIF XOR 84x68", Tiling::kUifXor, 84, 68, 32}, false, false, false);
}

TEST_P(RoundTrip, SmallTiled) {
  const uint32_t uw = tmu::utile_width(GetParam().bytes), uh = tmu::utile_height(GetParam().bytes);
  run({"LT row", Tiling::kLineartile, 5 * uw, uh, 1}, false, false, false);
  run({"LT column", Tiling::kLineartile, uw, 7 * uh - 1, 1}, false, false, false);
  run({"UB1", Tiling::kUblinear1, 2 * uw, 9 * uh, 1}, false, false, false);
  run({"UB2", Tiling::kUblinear2, 4 * uw - 1, 9 * uh, 1}, false, false, false);
}

TEST_P(RoundTrip, Multisample) {
  run({"UIF 64x32", Tiling::kUif, 64, 32, 38}, true, false, false);
  run({"UIF XOR 37x33", Tiling::kUifXor, 37, 33, 32}, true, false, false);
}

/// Reversed and swapped texels survive when the internal type holds all four channels.
class ChannelOrders : public RoundTrip {};

TEST_P(ChannelOrders, KeepTexels) {
  run({"raster", Tiling::kRaster, 72, 34, 0}, false, false, true);
  run({"raster", Tiling::kRaster, 72, 34, 0}, false, true, false);
  run({"UIF", Tiling::kUif, 72, 34, 20}, false, true, true);
}

std::vector<FormatCase> four_channel_formats() {
  std::vector<FormatCase> result;
  for (const FormatCase& format : kFormats) {
    const bool one_word = format.type <= ColorType::k8, two_words = format.type <= ColorType::k16F;
    if (format.bpp == 2 || one_word || (format.bpp == 1 && two_words)) result.push_back(format);
  }
  return result;
}

std::string test_name(const ::testing::TestParamInfo<FormatCase>& test) {
  std::string name = test.param.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Formats, RoundTrip, ::testing::ValuesIn(kFormats), test_name);
INSTANTIATE_TEST_SUITE_P(Formats, ChannelOrders, ::testing::ValuesIn(four_channel_formats()), test_name);

}  // namespace
}  // namespace v3d::tlb
