#include "samples/vulkan/scene_buffers.h"

#include <cstddef>
#include <cstdio>
#include <cstring>

namespace samples {

using namespace harness;

namespace {

template <typename T>
Buffer filled(Gpu* gpu, std::span<const T> values, VkBufferUsageFlags usage) {
  Buffer buffer = gpu->buffer(values.size_bytes(), usage);
  std::memcpy(buffer.mapped, values.data(), values.size_bytes());
  return buffer;
}

}  // namespace

SceneBuffers::SceneBuffers(Gpu* gpu, const Scene& scene, float aspect) : draws_(scene.draws) {
  std::printf("%s\n", gpu->properties().deviceName);
  const Uniforms u = samples::uniforms(scene, aspect, ClipSpace::kVulkan);
  vertices_ = filled<Vertex>(gpu, scene.vertices, VK_BUFFER_USAGE_VERTEX_BUFFER_BIT);
  indices_ = filled<uint32_t>(gpu, scene.indices, VK_BUFFER_USAGE_INDEX_BUFFER_BIT);
  instances_ = filled<Instance>(gpu, scene.instances, VK_BUFFER_USAGE_VERTEX_BUFFER_BIT);
  uniforms_ = filled<Uniforms>(gpu, {&u, 1}, VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT);
  const Vec4 background = screen_color(scene.sky);
  std::memcpy(background_, &background, sizeof background_);
}

void SceneBuffers::draw_pass(VkCommandBuffer commands, const harness::Target& target,
                             const harness::Pipeline& pipeline, VkDescriptorSet set) const {
  begin_pass(commands, target, background_);
  bind(commands, pipeline, set);
  const VkBuffer buffers[] = {vertices_.handle, instances_.handle};
  const VkDeviceSize offsets[] = {0, 0};
  vkCmdBindVertexBuffers(commands, 0, 2, buffers, offsets);
  vkCmdBindIndexBuffer(commands, indices_.handle, 0, VK_INDEX_TYPE_UINT32);
  for (const Draw& d : draws_)
    vkCmdDrawIndexed(commands, d.index_count, d.instance_count, d.first_index, 0, d.first_instance);
  vkCmdEndRenderPass(commands);
}

PipelineOptions scene_pipeline(std::span<const uint32_t> vertex, std::span<const uint32_t> fragment,
                               uint32_t textures) {
  PipelineOptions options;
  options.vertex = vertex;
  options.fragment = fragment;
  options.stride = sizeof(Vertex);
  options.instance_stride = sizeof(Instance);
  options.attributes = {{VK_FORMAT_R32G32B32_SFLOAT, offsetof(Vertex, position)},
                        {VK_FORMAT_R32G32B32_SFLOAT, offsetof(Vertex, normal)},
                        {VK_FORMAT_R32G32B32A32_SFLOAT, offsetof(Vertex, tangent)},
                        {VK_FORMAT_R32G32_SFLOAT, offsetof(Vertex, u)}};
  for (uint32_t i = 0; i < 4; ++i) {  // of each instance
    const uint32_t offset = i * uint32_t{sizeof(Vec4)};
    options.attributes.push_back({VK_FORMAT_R32G32B32A32_SFLOAT, offset, true});
  }
  options.depth_test = true;
  options.cull = VK_CULL_MODE_BACK_BIT;
  options.descriptors = {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER};
  options.descriptors.resize(1 + textures, VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER);
  return options;
}

Pixels read_pixels(Gpu* gpu, const Image& image) { return gpu->download(image, 4); }

}  // namespace samples
