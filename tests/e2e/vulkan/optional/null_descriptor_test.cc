/// Null descriptors and texels outside images (VK_EXT_robustness2).
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "shaders.h"
#include "tests/e2e/vulkan/dispatch.h"
#include "tests/e2e/vulkan/optional/require.h"

namespace e2e {

using namespace harness;

namespace {

constexpr uint32_t kCount = 16;
constexpr VkDescriptorType kUniform = VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
constexpr VkDescriptorType kSampled = VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER;
constexpr VkDescriptorType kImage = VK_DESCRIPTOR_TYPE_STORAGE_IMAGE;

TEST(VulkanNullDescriptors, BuffersReadAsZeroAndKeepNothing) {
  Gpu gpu({feature::kNullDescriptor});
  REQUIRE_FEATURES(gpu);
  const Buffer out = storage_buffer(gpu, kCount * 16);
  dispatch(gpu, gpu.compute(kNullBufferComp, {kUniform, kStorage, kStorage}),
           {{kUniform}, {kStorage}, {kStorage, &out}}, nullptr, 0, 1);
  for (uint32_t i = 0; i < kCount * 4; ++i) EXPECT_EQ(out.as<uint32_t>()[i], 0u) << i;
}

TEST(VulkanNullDescriptors, ImagesReadAsZeroAndHaveNoSize) {
  Gpu gpu({feature::kNullDescriptor});
  REQUIRE_FEATURES(gpu);
  const Buffer out = storage_buffer(gpu, kCount * 6 * 16);
  const VkSampler sampler = gpu.sampler(VK_FILTER_LINEAR, VK_SAMPLER_ADDRESS_MODE_REPEAT);
  dispatch(gpu, gpu.compute(kNullImageComp, {kSampled, kImage, kImage, kStorage}),
           {{kSampled, nullptr, VK_NULL_HANDLE, sampler}, {kImage}, {kImage}, {kStorage, &out}}, nullptr, 0,
           1);
  for (uint32_t i = 0; i < kCount * 6 * 4; ++i)
    EXPECT_EQ(out.as<float>()[i], 0.0f)
        << "invocation " << i / 24 << ", result " << i / 4 % 6 << "." << i % 4;
}

TEST(VulkanNullDescriptors, VertexBuffersReadAsZero) {
  Gpu gpu({feature::kNullDescriptor});
  REQUIRE_FEATURES(gpu);
  const Image image =
      gpu.image(kCount, 1, VK_FORMAT_R8G8B8A8_UNORM, {.usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT});
  const Target target = gpu.target({&image, 1});
  const Pipeline pipeline = gpu.graphics(target, {.vertex = kNullAttributeVert,
                                                  .fragment = kNullAttributeFrag,
                                                  .stride = 16,
                                                  .attributes = {{VK_FORMAT_R32G32B32A32_SFLOAT, 0}},
                                                  .topology = VK_PRIMITIVE_TOPOLOGY_POINT_LIST});
  gpu.run([&](VkCommandBuffer c) {
    begin_pass(c, target, {1, 1, 1, 1});
    bind(c, pipeline);
    const VkBuffer none = VK_NULL_HANDLE;
    const VkDeviceSize zero = 0;
    vkCmdBindVertexBuffers(c, 0, 1, &none, &zero);
    vkCmdDraw(c, kCount, 1, 0, 0);
    vkCmdEndRenderPass(c);
  });
  const std::vector<uint8_t> got = gpu.download(image, 4);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(+got[i], 0) << i;
}

TEST(VulkanRobustImages, TexelsOutsideReadAsZeroAndStoresVanish) {
  Gpu gpu({feature::kRobustImageAccess2});
  REQUIRE_FEATURES(gpu);
  constexpr uint32_t kSize = 13;
  const std::vector<uint8_t> texels(kSize * kSize * 4, 0x55);
  const Image image = gpu.image(kSize, kSize, VK_FORMAT_R8G8B8A8_UNORM,
                                {.usage = VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_STORAGE_BIT});
  const Image sampled =
      gpu.image(kSize, kSize, VK_FORMAT_R8G8B8A8_UNORM, {.usage = VK_IMAGE_USAGE_SAMPLED_BIT});
  gpu.upload(image, texels.data(), texels.size(), VK_IMAGE_LAYOUT_GENERAL);
  gpu.upload(sampled, texels.data(), texels.size(), VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL);
  const VkSampler sampler = gpu.sampler(VK_FILTER_NEAREST, VK_SAMPLER_ADDRESS_MODE_REPEAT);
  const Buffer out = storage_buffer(gpu, kCount * 2 * 16);
  dispatch(gpu, gpu.compute(kOutsideComp, {kSampled, kImage, kStorage}),
           {{kSampled, nullptr, sampled.view, sampler}, {kImage, nullptr, image.view}, {kStorage, &out}},
           nullptr, 0, 1);
  for (uint32_t i = 0; i < kCount * 2 * 4; ++i)
    EXPECT_EQ(out.as<float>()[i], 0.0f) << "invocation " << i / 8 << "." << i % 8;
  gpu.run([&](VkCommandBuffer c) {
    transition(c, image, VK_IMAGE_LAYOUT_GENERAL, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
  });
  EXPECT_EQ(gpu.download(image, 4), texels);
}

}  // namespace
}  // namespace e2e
