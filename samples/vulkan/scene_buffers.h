/// These buffers of the device hold a scene, with what every pipeline that draws it has in common.
#pragma once

#include "samples/common/program.h"
#include "samples/common/scene.h"
#include "samples/vulkan/gpu.h"

namespace samples {

class SceneBuffers {
 public:
  /// Prints the name of the device.
  SceneBuffers(harness::Gpu* gpu, const Scene& scene, float aspect);

  /// A whole pass: clears the target to the background (depth to 1) and draws the scene.
  void draw_pass(VkCommandBuffer commands, const harness::Target& target, const harness::Pipeline& pipeline,
                 VkDescriptorSet set) const;

  /// The uniform block; binding 0 of every pipeline.
  harness::Binding uniforms() const { return {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, &uniforms_}; }

 private:
  std::vector<Draw> draws_;
  harness::Buffer vertices_, indices_, instances_, uniforms_;
  float background_[4];  // in the encoding of the screen
};

/// Attributes of Vertex and Instance, depth test, front faces only, uniforms at binding 0, further textures
/// from 1.
harness::PipelineOptions scene_pipeline(std::span<const uint32_t> vertex, std::span<const uint32_t> fragment,
                                        uint32_t textures = 0);

/// The picture in a colour attachment after its pass.
Pixels read_pixels(harness::Gpu* gpu, const harness::Image& image);

}  // namespace samples
