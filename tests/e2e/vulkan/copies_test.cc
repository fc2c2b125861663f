/// Copies and blits among formats, every texel compared.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <ostream>
#include <random>

#include "samples/vulkan/gpu.h"

namespace e2e {

using namespace harness;

namespace {

struct Format {
  VkFormat format;
  const char* name;
  uint32_t bytes;
  bool is_float = false;
};

void PrintTo(const Format& f, std::ostream* out) { *out << f.name; }

constexpr Format kFormats[] = {{VK_FORMAT_R8_UNORM, "R8_UNORM", 1},
                               {VK_FORMAT_R8G8_UNORM, "R8G8_UNORM", 2},
                               {VK_FORMAT_R8G8B8A8_UNORM, "R8G8B8A8_UNORM", 4},
                               {VK_FORMAT_B8G8R8A8_UNORM, "B8G8R8A8_UNORM", 4},
                               {VK_FORMAT_R8G8B8A8_UINT, "R8G8B8A8_UINT", 4},
                               {VK_FORMAT_R5G6B5_UNORM_PACK16, "R5G6B5_UNORM", 2},
                               {VK_FORMAT_A2B10G10R10_UNORM_PACK32, "A2B10G10R10_UNORM", 4},
                               {VK_FORMAT_R16_SFLOAT, "R16_SFLOAT", 2, true},
                               {VK_FORMAT_R16G16B16A16_SFLOAT, "R16G16B16A16_SFLOAT", 8, true},
                               {VK_FORMAT_R32_UINT, "R32_UINT", 4},
                               {VK_FORMAT_R32G32_SFLOAT, "R32G32_SFLOAT", 8, true},
                               {VK_FORMAT_R32G32B32A32_SFLOAT, "R32G32B32A32_SFLOAT", 16, true}};

std::vector<uint8_t> random_texels(const Format& f, uint32_t count) {
  std::mt19937 random(f.format);
  std::vector<uint8_t> bytes(size_t{count} * f.bytes);
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
  if (f.is_float)  // exponents that no format widens to infinity or NaN
    for (size_t i = 1; i < bytes.size(); i += 2) bytes[i] = static_cast<uint8_t>((bytes[i] & 0x83) | 0x34);
  return bytes;
}

class Copies : public testing::TestWithParam<Format> {};

/// Without filtering, of all channels; the target is read next. Two corners of each image.
void blit(Gpu& gpu, const Image& from, const std::array<VkOffset3D, 2>& source, const Image& to,
          const std::array<VkOffset3D, 2>& target) {
  gpu.run([&](VkCommandBuffer c) {
    transition(c, to, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL);
    const VkImageBlit region{.srcSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1},
                             .srcOffsets = {source[0], source[1]},
                             .dstSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1},
                             .dstOffsets = {target[0], target[1]}};
    vkCmdBlitImage(c, from.handle, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, to.handle,
                   VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &region, VK_FILTER_NEAREST);
    transition(c, to, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
  });
}

TEST_P(Copies, BufferToImageToImageToBuffer) {
  const Format f = GetParam();
  Gpu gpu;
  for (const auto& size : {std::pair{64u, 64u}, {37u, 19u}, {200u, 3u}}) {
    const uint32_t width = size.first, height = size.second;
    const std::vector<uint8_t> texels = random_texels(f, width * height);
    const Image first = gpu.image(width, height, f.format, {}),
                second = gpu.image(width, height, f.format, {});
    gpu.upload(first, texels.data(), texels.size(), VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
    gpu.run([&](VkCommandBuffer c) {
      transition(c, second, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL);
      const VkImageSubresourceLayers layers{VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
      VkImageCopy copy{layers, {0, 0, 0}, layers, {0, 0, 0}, {width, height, 1}};
      vkCmdCopyImage(c, first.handle, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, second.handle,
                     VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &copy);
      transition(c, second, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
    });
    ASSERT_EQ(gpu.download(second, f.bytes), texels) << width << "x" << height;
  }
}

TEST_P(Copies, PartOfAnImageLandsWhereItShould) {
  const Format f = GetParam();
  Gpu gpu;
  const std::vector<uint8_t> a = random_texels(f, 50 * 40), b(60 * 30 * f.bytes, 0);
  const Image from = gpu.image(50, 40, f.format, {}), to = gpu.image(60, 30, f.format, {});
  gpu.upload(from, a.data(), a.size(), VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
  gpu.upload(to, b.data(), b.size(), VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL);
  gpu.run([&](VkCommandBuffer c) {
    const VkImageSubresourceLayers layers{VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
    VkImageCopy copy{layers, {7, 11, 0}, layers, {20, 3, 0}, {31, 23, 1}};
    vkCmdCopyImage(c, from.handle, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, to.handle,
                   VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &copy);
    transition(c, to, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
  });
  std::vector<uint8_t> expected = b;
  for (size_t y = 0; y < 23; ++y)
    std::memcpy(&expected[((y + 3) * 60 + 20) * f.bytes], &a[((y + 11) * 50 + 7) * f.bytes], 31 * f.bytes);
  EXPECT_EQ(gpu.download(to, f.bytes), expected);
}

TEST_P(Copies, BlitMirrorsWithoutFiltering) {
  const Format f = GetParam();
  Gpu gpu;
  const std::vector<uint8_t> texels = random_texels(f, 32 * 24);
  const Image from = gpu.image(32, 24, f.format, {.usage = VK_IMAGE_USAGE_SAMPLED_BIT});
  const Image to = gpu.image(32, 24, f.format, {.usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT});
  gpu.upload(from, texels.data(), texels.size(), VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
  blit(gpu, from, {{{32, 0, 0}, {0, 24, 1}}}, to, {{{0, 0, 0}, {32, 24, 1}}});
  std::vector<uint8_t> expected(texels.size());
  for (size_t y = 0; y < 24; ++y)
    for (size_t x = 0; x < 32; ++x)
      std::memcpy(&expected[(y * 32 + x) * f.bytes], &texels[(y * 32 + 31 - x) * f.bytes], f.bytes);
  EXPECT_EQ(gpu.download(to, f.bytes), expected);
}

TEST_P(Copies, ClearsWithACommand) {
  const Format f = GetParam();
  Gpu gpu;
  const Image image = gpu.image(45, 33, f.format, {});
  gpu.run([&](VkCommandBuffer c) {
    transition(c, image, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL);
    VkClearColorValue value{};
    for (uint32_t i = 0; i < 4; ++i) {
      if (f.format == VK_FORMAT_R32_UINT || f.format == VK_FORMAT_R8G8B8A8_UINT)
        value.uint32[i] = 1;
      else
        value.float32[i] = 1.0f;
    }
    const VkImageSubresourceRange range{VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
    vkCmdClearColorImage(c, image.handle, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, &value, 1, &range);
    transition(c, image, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
  });
  std::vector<uint8_t> one;
  switch (f.format) {
    case VK_FORMAT_R16_SFLOAT:
    case VK_FORMAT_R16G16B16A16_SFLOAT:
      one = {0x00, 0x3c};
      break;
    case VK_FORMAT_R32G32_SFLOAT:
    case VK_FORMAT_R32G32B32A32_SFLOAT:
      one = {0, 0, 0x80, 0x3f};
      break;
    case VK_FORMAT_R32_UINT:
      one = {1, 0, 0, 0};
      break;
    case VK_FORMAT_R8G8B8A8_UINT:
      one = {1};
      break;
    default:
      one = {0xff};
  }
  const std::vector<uint8_t> texels = gpu.download(image, f.bytes);
  for (size_t i = 0; i < texels.size(); ++i) ASSERT_EQ(texels[i], one[i % one.size()]) << i;
}

INSTANTIATE_TEST_SUITE_P(Formats, Copies, testing::ValuesIn(kFormats),
                         [](const auto& format) { return std::string(format.param.name); });

TEST(Blits, ConvertAmongUnormFormats) {
  Gpu gpu;
  struct Channels {
    VkFormat format;
    uint32_t bytes;
  };
  std::mt19937 random(3);
  std::vector<uint8_t> texels(16 * 16 * 4);
  for (uint8_t& t : texels) t = static_cast<uint8_t>(random());
  const Image from = gpu.image(16, 16, VK_FORMAT_R8G8B8A8_UNORM, {.usage = VK_IMAGE_USAGE_SAMPLED_BIT});
  gpu.upload(from, texels.data(), texels.size(), VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
  for (const Channels& c :
       {Channels{VK_FORMAT_B8G8R8A8_UNORM, 4}, Channels{VK_FORMAT_R5G6B5_UNORM_PACK16, 2},
        Channels{VK_FORMAT_A2B10G10R10_UNORM_PACK32, 4}, Channels{VK_FORMAT_R32G32B32A32_SFLOAT, 16}}) {
    const Image to = gpu.image(16, 16, c.format, {.usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT});
    blit(gpu, from, {{{0, 0, 0}, {16, 16, 1}}}, to, {{{0, 0, 0}, {16, 16, 1}}});
    const std::vector<uint8_t> out = gpu.download(to, c.bytes);
    for (size_t i = 0; i < 256; ++i) {
      double got[4] = {0, 0, 0, 1}, step[3] = {};
      uint32_t word = 0;
      float floats[4];
      std::memcpy(&word, &out[i * c.bytes], std::min<size_t>(4, c.bytes));
      switch (c.format) {
        case VK_FORMAT_B8G8R8A8_UNORM:
          for (int k = 0; k < 3; ++k) got[k] = ((word >> (16 - 8 * k)) & 255) / 255.0, step[k] = 1 / 255.0;
          break;
        case VK_FORMAT_R5G6B5_UNORM_PACK16:
          got[0] = (word >> 11) / 31.0, got[1] = ((word >> 5) & 63) / 63.0, got[2] = (word & 31) / 31.0;
          step[0] = step[2] = 1 / 31.0, step[1] = 1 / 63.0;
          break;
        case VK_FORMAT_A2B10G10R10_UNORM_PACK32:
          for (int k = 0; k < 3; ++k) got[k] = ((word >> (10 * k)) & 1023) / 1023.0, step[k] = 1 / 1023.0;
          break;
        default:
          std::memcpy(floats, &out[i * 16], 16);
          for (int k = 0; k < 3; ++k) got[k] = floats[k], step[k] = 1 / 1023.0;
      }
      for (size_t k = 0; k < 3; ++k)
        ASSERT_NEAR(got[k], texels[i * 4 + k] / 255.0, step[k] + 1e-3) << i << "." << k;
    }
  }
}

TEST(Copies, FillAndUpdateBuffers) {
  Gpu gpu;
  const Buffer buffer = gpu.buffer(10000, 0), other = gpu.buffer(10000, 0);
  std::vector<uint8_t> data(1000);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(i * 7);
  std::memset(buffer.mapped, 0x11, 10000);
  std::memset(other.mapped, 0x22, 10000);
  gpu.run([&](VkCommandBuffer c) {
    vkCmdFillBuffer(c, buffer.handle, 400, 4000, 0xdeadbeef);
    full_barrier(c);
    vkCmdUpdateBuffer(c, buffer.handle, 1204, data.size(), data.data());
    full_barrier(c);
    const VkBufferCopy regions[] = {{401, 13, 3001}, {9000, 5000, 999}};
    vkCmdCopyBuffer(c, buffer.handle, other.handle, 2, regions);
  });
  std::vector<uint8_t> expected(10000, 0x11), copied(10000, 0x22);
  for (size_t i = 400; i < 4400; ++i) expected[i] = std::array<uint8_t, 4>{0xef, 0xbe, 0xad, 0xde}[i % 4];
  std::memcpy(&expected[1204], data.data(), data.size());
  std::memcpy(&copied[13], &expected[401], 3001);
  std::memcpy(&copied[5000], &expected[9000], 999);
  EXPECT_TRUE(std::ranges::equal(buffer.as<uint8_t>(), expected));
  EXPECT_TRUE(std::ranges::equal(other.as<uint8_t>(), copied));
}

}  // namespace
}  // namespace e2e
