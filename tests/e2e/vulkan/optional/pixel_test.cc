/// Fragments: eight render targets, dual-source blending, quads whose helper invocations count.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "shaders.h"
#include "tests/e2e/vulkan/dispatch.h"
#include "tests/e2e/vulkan/optional/require.h"

namespace e2e {

using namespace harness;

namespace {

constexpr uint32_t kWidth = 70, kHeight = 40, kTargets = 8;
constexpr VkShaderStageFlags kStages = VK_SHADER_STAGE_VERTEX_BIT | VK_SHADER_STAGE_FRAGMENT_BIT;
constexpr VkImageUsageFlags kColor = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT;
constexpr VkFormat kRgba8 = VK_FORMAT_R8G8B8A8_UNORM;

PipelineOptions whole(std::span<const uint32_t> fragment) {
  PipelineOptions o;
  o.vertex = kWholeVert;
  o.fragment = fragment;
  return o;
}

void draw(Gpu& gpu, const Target& target, const PipelineOptions& options, uint32_t times = 1) {
  const Pipeline pipeline = gpu.graphics(target, options);
  gpu.run([&](VkCommandBuffer c) {
    begin_pass(c, target, {0, 0, 0, 0});
    bind(c, pipeline);
    for (uint32_t i = 0; i < times; ++i) vkCmdDraw(c, 3, 1, 0, 0);
    vkCmdEndRenderPass(c);
  });
}

/// Draws eight_targets.frag `times` times and expects sums of what it writes.
void draw_eight(const VkPipelineColorBlendAttachmentState& blend, uint32_t times) {
  Gpu gpu;
  REQUIRE_LIMIT(gpu, maxFragmentOutputAttachments, kTargets);
  REQUIRE_LIMIT(gpu, maxColorAttachments, kTargets);
  std::vector<Image> images;
  for (uint32_t i = 0; i < kTargets; ++i)
    images.push_back(gpu.image(kWidth, kHeight, kRgba8, {.usage = kColor}));
  PipelineOptions o = whole(kEightTargetsFrag);
  o.blend = blend;
  draw(gpu, gpu.target(images), o, times);
  for (uint32_t t = 0; t < kTargets; ++t) {
    const std::vector<uint8_t> got = gpu.download(images[t], 4);
    for (uint32_t i = 0; i < kWidth * kHeight; ++i) {
      const uint32_t x = i % kWidth, y = i / kWidth, expected[] = {x, y, x + y, 64};
      for (uint32_t k = 0; k < 4; ++k)
        ASSERT_EQ(got[4 * i + k], times * (expected[k] + t))
            << "target " << t << " at " << x << "," << y << "." << k;
    }
  }
}

TEST(VulkanEightTargets, EachGetsItsOwnColor) { draw_eight({}, 1); }

TEST(VulkanEightTargets, EachBlendsWithItsOwnContents) {
  draw_eight({.blendEnable = VK_TRUE,
              .srcColorBlendFactor = VK_BLEND_FACTOR_ONE,
              .dstColorBlendFactor = VK_BLEND_FACTOR_ONE,
              .srcAlphaBlendFactor = VK_BLEND_FACTOR_ONE,
              .dstAlphaBlendFactor = VK_BLEND_FACTOR_ONE},
             2);
}

uint16_t half_of_integer(uint32_t v) {  // exact below 2048
  if (v == 0) return 0;
  const auto exponent = static_cast<uint32_t>(std::ilogb(v));
  return static_cast<uint16_t>((exponent + 15) << 10 | ((v << (10 - exponent)) & 1023));
}

TEST(VulkanEightTargets, OfEightKindsOfFormats) {
  Gpu gpu;
  REQUIRE_LIMIT(gpu, maxFragmentOutputAttachments, kTargets);
  REQUIRE_LIMIT(gpu, maxColorAttachments, kTargets);
  const struct {
    VkFormat format;
    uint32_t bytes;
    uint32_t (*expected)(uint32_t x, uint32_t y);
  } kinds[kTargets] = {
      {kRgba8, 4, [](uint32_t x, uint32_t y) { return x | y << 8 | y << 16 | x << 24; }},
      {VK_FORMAT_R8_UNORM, 1, [](uint32_t x, uint32_t) { return x; }},
      {VK_FORMAT_R16G16_SFLOAT, 4,  // halves of coordinates: one less in the exponent
       [](uint32_t x, uint32_t y) {
         return (x ? half_of_integer(x) - 0x400u : 0u) | (y ? half_of_integer(y) - 0x400u : 0u) << 16;
       }},
      {VK_FORMAT_R32_UINT, 4, [](uint32_t x, uint32_t y) { return x * 0x01020304u + y; }},
      {VK_FORMAT_R8G8B8A8_UINT, 4,
       [](uint32_t x, uint32_t y) { return x | y << 8 | (x + 100) << 16 | (y + 100) << 24; }},
      {VK_FORMAT_A2B10G10R10_UNORM_PACK32, 4,
       [](uint32_t x, uint32_t y) { return 4 * x | 4 * y << 10 | y << 20 | 1u << 30; }},
      {VK_FORMAT_R32_SFLOAT, 4,
       [](uint32_t x, uint32_t y) {
         return std::bit_cast<uint32_t>(static_cast<float>(x) * 1000.25f + static_cast<float>(y));
       }},
      {VK_FORMAT_R16G16_SINT, 4, [](uint32_t x, uint32_t y) {
         return (static_cast<uint32_t>(-100 * static_cast<int32_t>(x)) & 0xffff) |
                static_cast<uint32_t>(-100 * static_cast<int32_t>(y)) << 16;
       }}};
  std::vector<Image> images;
  for (const auto& kind : kinds) images.push_back(gpu.image(kWidth, kHeight, kind.format, {.usage = kColor}));
  draw(gpu, gpu.target(images), whole(kEightKindsFrag));
  for (uint32_t t = 0; t < kTargets; ++t) {
    const std::vector<uint8_t> got = gpu.download(images[t], kinds[t].bytes);
    for (uint32_t i = 0; i < kWidth * kHeight; ++i) {
      uint32_t texel = 0;
      std::memcpy(&texel, &got[size_t{i} * kinds[t].bytes], kinds[t].bytes);
      ASSERT_EQ(texel, kinds[t].expected(i % kWidth, i / kWidth)) << "target " << t << ", texel " << i;
    }
  }
}

/// out = color * source_factor + contents * second output, twice over the clear colour.
void draw_dual_source(VkBlendFactor source, VkBlendFactor destination, bool one_minus) {
  Gpu gpu({feature::kDualSource});
  REQUIRE_FEATURES(gpu);
  const Image image = gpu.image(kWidth, kHeight, kRgba8, {.usage = kColor});
  const Target target = gpu.target({&image, 1});
  PipelineOptions o = whole(kDualSourceFrag);
  o.push_constant_bytes = 32;
  o.blend = {.blendEnable = VK_TRUE,
             .srcColorBlendFactor = source,
             .dstColorBlendFactor = destination,
             .srcAlphaBlendFactor = source,
             .dstAlphaBlendFactor = destination};
  const Pipeline pipeline = gpu.graphics(target, o);
  const float push[8] = {0.25f, 0.5f, 0.125f, 0.3f, 0, 0.75f, 0.5f, 0.4f}, clear[4] = {1, 0.6f, 0.2f, 0.8f};
  gpu.run([&](VkCommandBuffer c) {
    begin_pass(c, target, clear);
    bind(c, pipeline);
    vkCmdPushConstants(c, pipeline.layout, kStages, 0, sizeof push, push);
    for (int i = 0; i < 2; ++i) vkCmdDraw(c, 3, 1, 0, 0);
    vkCmdEndRenderPass(c);
  });
  const std::vector<uint8_t> got = gpu.download(image, 4);
  for (uint32_t i = 0; i < kWidth * kHeight; ++i)
    for (uint32_t k = 0; k < 4; ++k) {
      const double second = k == 0 ? std::fmod((i % kWidth + 0.5) / 16, 1) : push[4 + k];
      double value = clear[k];
      for (int pass = 0; pass < 2; ++pass) {
        const double factor = one_minus ? 1 - second : second;
        value = push[k] * (source == VK_BLEND_FACTOR_ONE ? 1 : second) + value * factor;
        value = std::round(std::clamp(value, 0.0, 1.0) * 255) / 255;
      }
      ASSERT_NEAR(got[4 * i + k], value * 255, 1.01) << i << "." << k;
    }
}

TEST(VulkanDualSource, ContentsTimesTheSecondColor) {
  draw_dual_source(VK_BLEND_FACTOR_ONE, VK_BLEND_FACTOR_SRC1_COLOR, false);
}

TEST(VulkanDualSource, BothFactorsFromTheSecondColor) {
  draw_dual_source(VK_BLEND_FACTOR_SRC1_COLOR, VK_BLEND_FACTOR_ONE_MINUS_SRC1_COLOR, true);
}

TEST(VulkanQuadControl, HelperInvocationsTakePart) {
  Gpu gpu({feature::kMemoryModel, feature::kMaximalReconvergence, feature::kQuadControl});
  REQUIRE_FEATURES(gpu);
  const Image image = gpu.image(64, 64, VK_FORMAT_R16G16B16A16_UINT, {.usage = kColor});
  const Target target = gpu.target({&image, 1});
  PipelineOptions o;
  o.vertex = kRectangleVert;
  o.fragment = kQuadControlFrag;
  o.topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_STRIP;
  const float push[10] = {3, 5, 42, 38, 0, 0, 0, 0, 64, 64};  // edges that cut quads
  o.push_constant_bytes = sizeof push;
  const Pipeline pipeline = gpu.graphics(target, o);
  gpu.run([&](VkCommandBuffer c) {
    begin_pass(c, target, {0, 0, 0, 0});
    bind(c, pipeline);
    vkCmdPushConstants(c, pipeline.layout, kStages, 0, sizeof push, push);
    vkCmdDraw(c, 4, 1, 0, 0);
    vkCmdEndRenderPass(c);
  });
  const std::vector<uint8_t> got = gpu.download(image, 8);
  for (uint32_t y = 5; y < 38; ++y)
    for (uint32_t x = 3; x < 42; ++x) {
      uint16_t texel[4];
      std::memcpy(texel, &got[size_t{8} * (y * 64 + x)], 8);
      const uint32_t quad_x = x & ~1u, quad_y = y & ~1u;
      ASSERT_EQ(texel[0], quad_x + 1 + (quad_y + 1) * 64) << x << "," << y;
      ASSERT_EQ(texel[1] & 1, (quad_x + quad_y + 2) % 3 == 0) << x << "," << y;
      ASSERT_EQ(texel[1] >> 1, quad_x % 6 == 0) << x << "," << y;
      ASSERT_EQ(texel[2], x ^ 1) << x << "," << y;
      ASSERT_EQ(texel[3], y ^ 1) << x << "," << y;
    }
}

}  // namespace
}  // namespace e2e
