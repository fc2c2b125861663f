#include "samples/common/pictures.h"
#include "samples/vulkan/scene_buffers.h"
#include "shaders.h"

namespace samples {

using namespace harness;

namespace {

constexpr uint32_t kMapSize = 1024;

/// Compares instead of fetching; outside of the map nothing is in shadow.
VkSampler shadow_sampler(Gpu* gpu) {
  return gpu->sampler({.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
                       .magFilter = VK_FILTER_LINEAR,
                       .minFilter = VK_FILTER_LINEAR,
                       .addressModeU = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER,
                       .addressModeV = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER,
                       .addressModeW = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER,
                       .compareEnable = VK_TRUE,
                       .compareOp = VK_COMPARE_OP_LESS_OR_EQUAL,
                       .borderColor = VK_BORDER_COLOR_FLOAT_OPAQUE_WHITE});
}

}  // namespace

Pixels draw_shadow(Size size) {
  Gpu gpu;
  const SceneBuffers scene(&gpu, shadow_scene(), size.aspect());
  const Image map =
      gpu.image(kMapSize, kMapSize, VK_FORMAT_D32_SFLOAT,
                {.usage = VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT | VK_IMAGE_USAGE_SAMPLED_BIT});
  const Image color = gpu.image(size.width, size.height, VK_FORMAT_R8G8B8A8_UNORM,
                                {.usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT});
  const Image depth = gpu.image(size.width, size.height, VK_FORMAT_D32_SFLOAT,
                                {.usage = VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT});
  const Target map_target = gpu.depth_target(map), target = gpu.target(color, &depth);

  PipelineOptions map_options = scene_pipeline(kDepthVert, {});
  map_options.depth_bias = 4;  // keeps surfaces from shading themselves
  map_options.depth_bias_slope = 2.5f;
  const Pipeline map_pipeline = gpu.graphics(map_target, map_options);
  const Pipeline pipeline = gpu.graphics(target, scene_pipeline(kMeshVert, kShadowFrag, 1));
  const VkDescriptorSet map_set = gpu.descriptors(map_pipeline, {scene.uniforms()});
  const VkDescriptorSet set = gpu.descriptors(
      pipeline, {scene.uniforms(),
                 {VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, nullptr, map.view, shadow_sampler(&gpu)}});
  gpu.run([&](VkCommandBuffer commands) {
    scene.draw_pass(commands, map_target, map_pipeline, map_set);
    full_barrier(commands);
    scene.draw_pass(commands, target, pipeline, set);
  });
  return read_pixels(&gpu, color);
}

}  // namespace samples
