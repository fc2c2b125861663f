#include <algorithm>
#include <bit>

#include "samples/common/pictures.h"
#include "samples/common/textures.h"
#include "samples/vulkan/scene_buffers.h"
#include "shaders.h"

namespace samples {

using namespace harness;

namespace {

constexpr uint32_t kTextureSize = 512;
constexpr float kAnisotropy = 8;  ///< texels along the longer side of a pixel's footprint

/// With all mipmap levels, ready to be sampled.
Image upload_mipmapped(Gpu* gpu, Texture level) {
  const auto levels = static_cast<uint32_t>(std::bit_width(level.size));
  const Image image = gpu->image(level.size, level.size, VK_FORMAT_R8G8B8A8_UNORM,
                                 {.usage = VK_IMAGE_USAGE_SAMPLED_BIT, .levels = levels});
  for (uint32_t i = 0; i < levels; ++i) {
    gpu->upload(image, level.texels.data(), level.texels.size(), VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL, i);
    level = half_size(level);
  }
  return image;
}

VkSampler mipmapping_sampler(Gpu* gpu, float anisotropy) {
  return gpu->sampler({.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
                       .magFilter = VK_FILTER_LINEAR,
                       .minFilter = VK_FILTER_LINEAR,
                       .mipmapMode = VK_SAMPLER_MIPMAP_MODE_LINEAR,
                       .anisotropyEnable = anisotropy > 1,
                       .maxAnisotropy = std::min(anisotropy, gpu->properties().limits.maxSamplerAnisotropy),
                       .maxLod = VK_LOD_CLAMP_NONE});
}

Pixels draw_bricks(Size size, float anisotropy) {
  Gpu gpu;
  const SceneBuffers scene(&gpu, normal_map_scene(), size.aspect());
  BrickTextures bricks = brick_textures(kTextureSize);
  const Image color_map = upload_mipmapped(&gpu, std::move(bricks.color));
  const Image normal_map = upload_mipmapped(&gpu, std::move(bricks.normal));
  const VkSampler sampler = mipmapping_sampler(&gpu, anisotropy);
  const Image color = gpu.image(size.width, size.height, VK_FORMAT_R8G8B8A8_UNORM,
                                {.usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT});
  const Image depth = gpu.image(size.width, size.height, VK_FORMAT_D32_SFLOAT,
                                {.usage = VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT});
  const Target target = gpu.target(color, &depth);
  const Pipeline pipeline = gpu.graphics(target, scene_pipeline(kTexturedVert, kNormalMapFrag, 2));
  const VkDescriptorSet set = gpu.descriptors(
      pipeline, {scene.uniforms(),
                 {VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, nullptr, color_map.view, sampler},
                 {VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, nullptr, normal_map.view, sampler}});
  gpu.run([&](VkCommandBuffer commands) { scene.draw_pass(commands, target, pipeline, set); });
  return read_pixels(&gpu, color);
}

}  // namespace

Pixels draw_normal_map(Size size) { return draw_bricks(size, kAnisotropy); }

Pixels draw_normal_map_trilinear(Size size) { return draw_bricks(size, 1); }

}  // namespace samples
