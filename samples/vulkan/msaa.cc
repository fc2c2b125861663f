#include "samples/common/pictures.h"
#include "samples/vulkan/scene_buffers.h"
#include "shaders.h"

namespace samples {

using namespace harness;

Pixels draw_msaa(Size size) {
  constexpr VkSampleCountFlagBits kSamples = VK_SAMPLE_COUNT_4_BIT;
  Gpu gpu;
  const SceneBuffers scene(&gpu, msaa_scene(), size.aspect());
  const Image samples = gpu.image(size.width, size.height, VK_FORMAT_R8G8B8A8_UNORM,
                                  {.usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT, .samples = kSamples});
  const Image depth = gpu.image(size.width, size.height, VK_FORMAT_D32_SFLOAT,
                                {.usage = VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT, .samples = kSamples});
  const Image resolved = gpu.image(size.width, size.height, VK_FORMAT_R8G8B8A8_UNORM,
                                   {.usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT});
  const Target target = gpu.target(samples, &depth, &resolved);
  const Pipeline pipeline = gpu.graphics(target, scene_pipeline(kMeshVert, kMeshFrag));
  const VkDescriptorSet set = gpu.descriptors(pipeline, {scene.uniforms()});
  gpu.run([&](VkCommandBuffer commands) { scene.draw_pass(commands, target, pipeline, set); });
  return read_pixels(&gpu, resolved);
}

}  // namespace samples
