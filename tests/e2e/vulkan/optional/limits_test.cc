/// The largest of what drivers offer: images and targets of 7680, shared memory of 32 KiB, 256 bytes of push
/// constants.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>

#include "shaders.h"
#include "tests/e2e/vulkan/dispatch.h"
#include "tests/e2e/vulkan/optional/require.h"

namespace e2e {

using namespace harness;

namespace {

constexpr uint32_t kLargest = 7680;
constexpr VkImageUsageFlags kColor = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT;

struct Size {
  uint32_t width, height;
};

constexpr Size kExtremes[] = {{kLargest, 5}, {5, kLargest}, {kLargest, 1}, {1, kLargest}};

TEST(VulkanLimits, ImagesOf7680KeepTheirTexels) {
  Gpu gpu;
  REQUIRE_LIMIT(gpu, maxImageDimension2D, kLargest);
  for (const Size& size : kExtremes) {
    std::vector<uint32_t> texels(size_t{size.width} * size.height);
    for (size_t i = 0; i < texels.size(); ++i) texels[i] = static_cast<uint32_t>(i) * 2654435761u;
    const Image image = gpu.image(size.width, size.height, VK_FORMAT_R8G8B8A8_UNORM, {});
    gpu.upload(image, texels.data(), texels.size() * 4, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
    const std::vector<uint8_t> got = gpu.download(image, 4);
    EXPECT_EQ(std::memcmp(got.data(), texels.data(), got.size()), 0) << size.width << "x" << size.height;
  }
}

TEST(VulkanLimits, ShadersFetchFromImagesOf7680) {
  Gpu gpu;
  REQUIRE_LIMIT(gpu, maxImageDimension2D, kLargest);
  constexpr VkDescriptorType kSampled = VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER;
  const Pipeline pipeline = gpu.compute(kFetchComp, {kSampled, kStorage}, 8);
  const VkSampler sampler = gpu.sampler(VK_FILTER_NEAREST, VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE);
  for (const Size& size : kExtremes) {
    const uint32_t count = size.width * size.height;
    std::vector<uint32_t> texels(count);
    for (uint32_t i = 0; i < count; ++i) texels[i] = i * 2654435761u;
    const Image image =
        gpu.image(size.width, size.height, VK_FORMAT_R32_UINT, {.usage = VK_IMAGE_USAGE_SAMPLED_BIT});
    gpu.upload(image, texels.data(), texels.size() * 4, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL);
    const Buffer out = storage_buffer(gpu, size_t{4} * count);
    dispatch(gpu, pipeline, {{kSampled, nullptr, image.view, sampler}, {kStorage, &out}}, &size, 8,
             (count + 63) / 64);
    EXPECT_TRUE(std::ranges::equal(out.as<uint32_t>(), texels)) << size.width << "x" << size.height;
  }
}

TEST(VulkanLimits, FramebuffersOf7680KnowTheirCoordinates) {
  Gpu gpu;
  REQUIRE_LIMIT(gpu, maxFramebufferWidth, kLargest);
  REQUIRE_LIMIT(gpu, maxFramebufferHeight, kLargest);
  for (const Size& size : kExtremes) {
    const Image image = gpu.image(size.width, size.height, VK_FORMAT_R16G16_UINT, {.usage = kColor});
    const Target target = gpu.target(image);
    const Pipeline pipeline = gpu.graphics(target, {.vertex = kWholeVert, .fragment = kCoordinatesFrag});
    gpu.run([&](VkCommandBuffer c) {
      begin_pass(c, target, {0, 0, 0, 0});
      bind(c, pipeline);
      vkCmdDraw(c, 3, 1, 0, 0);
      vkCmdEndRenderPass(c);
    });
    const std::vector<uint8_t> got = gpu.download(image, 4);
    for (uint32_t i = 0; i < size.width * size.height; ++i) {
      uint32_t texel = 0;
      std::memcpy(&texel, &got[size_t{4} * i], 4);
      ASSERT_EQ(texel, i % size.width | i / size.width << 16) << size.width << "x" << size.height;
    }
  }
}

TEST(VulkanLimits, FramebufferOf7680By7680) {
  Gpu gpu;
  REQUIRE_LIMIT(gpu, maxFramebufferWidth, kLargest);
  REQUIRE_LIMIT(gpu, maxFramebufferHeight, kLargest);
  const Image image = gpu.image(kLargest, kLargest, VK_FORMAT_R8_UNORM, {.usage = kColor});
  const Target target = gpu.target(image);
  struct Push {
    float rectangle[4], color[4], size[2];
  };
  const Pipeline pipeline = gpu.graphics(target, {.vertex = kRectangleVert,
                                                  .fragment = kRectangleFrag,
                                                  .topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_STRIP,
                                                  .push_constant_bytes = sizeof(Push)});
  // Left, top, right and bottom; the corners, the middle and a band along the last rows.
  constexpr uint32_t kRectangles[][4] = {{0, 0, 37, 21},           {7600, 0, 7680, 50},
                                         {0, 7671, 300, 7680},     {7679, 7600, 7680, 7680},
                                         {3800, 3700, 3900, 3850}, {4095, 4090, 4100, 4099}};
  gpu.run([&](VkCommandBuffer c) {
    begin_pass(c, target, {0.2f, 0, 0, 0});
    bind(c, pipeline);
    float red = 100;
    for (const auto& r : kRectangles) {
      Push push{{}, {red++ / 255, 0, 0, 1}, {kLargest, kLargest}};
      std::ranges::transform(r, push.rectangle, [](uint32_t v) { return static_cast<float>(v); });
      vkCmdPushConstants(c, pipeline.layout, VK_SHADER_STAGE_VERTEX_BIT | VK_SHADER_STAGE_FRAGMENT_BIT, 0,
                         sizeof push, &push);
      vkCmdDraw(c, 4, 1, 0, 0);
    }
    vkCmdEndRenderPass(c);
  });
  std::vector<uint8_t> expected(size_t{kLargest} * kLargest, 51);
  uint8_t red = 100;
  for (const auto& r : kRectangles) {
    for (uint32_t y = r[1]; y < r[3]; ++y)
      std::fill_n(&expected[size_t{y} * kLargest + r[0]], r[2] - r[0], red);
    ++red;
  }
  const std::vector<uint8_t> got = gpu.download(image, 1);
  const auto at = static_cast<size_t>(std::ranges::mismatch(got, expected).in1 - got.begin());
  EXPECT_EQ(at, got.size()) << "first difference at " << at % kLargest << "," << at / kLargest;
}

TEST(VulkanLimits, SharedMemoryOf32KiB) {
  Gpu gpu;
  REQUIRE_LIMIT(gpu, maxComputeSharedMemorySize, 32768u);
  constexpr uint32_t kGroups = 9, kWords = 8192;
  std::vector<uint32_t> seeds(kGroups);
  for (uint32_t g = 0; g < kGroups; ++g) seeds[g] = g * 77777 + 5;
  const std::vector<uint32_t> results = compute<uint32_t>(
      gpu, kSharedMemoryComp, {storage_buffer_of(gpu, seeds)}, size_t{kGroups} * kWords, kGroups);
  for (uint32_t g = 0; g < kGroups; ++g)
    for (uint32_t i = 0; i < kWords; ++i) {
      const uint32_t from = (i * 5 + 4099) & (kWords - 1);
      ASSERT_EQ(results[g * kWords + i], seeds[g] * (from * 2654435761u + 1)) << g << "." << i;
    }
}

TEST(VulkanLimits, PushConstantsOf256BytesInCompute) {
  Gpu gpu;
  REQUIRE_LIMIT(gpu, maxPushConstantsSize, 256u);
  uint32_t words[64];
  for (uint32_t i = 0; i < 64; ++i) words[i] = i * 0x01010101u + 0x1000;
  const Buffer out = storage_buffer(gpu, 512);
  dispatch(gpu, gpu.compute(kPush256Comp, {kStorage}, 256), {{kStorage, &out}}, words, 256, 1);
  for (uint32_t i = 0; i < 64; ++i) {
    EXPECT_EQ(out.as<uint32_t>()[i], words[i]) << i;
    EXPECT_EQ(out.as<uint32_t>()[64 + i], i * words[63] + words[0] + words[33] + words[30]) << i;
  }
}

TEST(VulkanLimits, PushConstantsOf256BytesInFragments) {
  Gpu gpu;
  REQUIRE_LIMIT(gpu, maxPushConstantsSize, 256u);
  const Image image = gpu.image(32, 4, VK_FORMAT_R8G8B8A8_UNORM, {.usage = kColor});
  const Target target = gpu.target(image);
  const Pipeline pipeline =
      gpu.graphics(target, {.vertex = kWholeVert, .fragment = kPush256Frag, .push_constant_bytes = 256});
  float colors[64];
  for (uint32_t i = 0; i < 64; ++i) colors[i] = static_cast<float>(i * 3) / 255;
  gpu.run([&](VkCommandBuffer c) {
    begin_pass(c, target, {0, 0, 0, 0});
    bind(c, pipeline);
    vkCmdPushConstants(c, pipeline.layout, VK_SHADER_STAGE_VERTEX_BIT | VK_SHADER_STAGE_FRAGMENT_BIT, 0, 256,
                       colors);
    vkCmdDraw(c, 3, 1, 0, 0);
    vkCmdEndRenderPass(c);
  });
  const std::vector<uint8_t> got = gpu.download(image, 4);
  for (uint32_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], (i / 4 % 16 * 4 + i % 4) * 3) << i;
}

}  // namespace
}  // namespace e2e
