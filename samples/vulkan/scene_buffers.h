/// A scene in buffers of the device, and what every pipeline that draws it has in common.
#pragma once

#include "samples/common/program.h"
#include "samples/common/scene.h"
#include "samples/vulkan/gpu.h"

namespace samples {

class SceneBuffers {
 public:
  /// Prints the name of the device.
  SceneBuffers(harness::Gpu* gpu, const Scene& scene, float aspect);

  /// Inside a pass, with a pipeline bound.
  void draw(VkCommandBuffer commands) const;

  /// The uniform block; binding 0 of every pipeline.
  harness::Binding uniforms() const { return {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, &uniforms_}; }

  /// Clear colour in the encoding of the screen.
  const float (&background() const)[4] { return background_; }

 private:
  std::vector<Draw> draws_;
  harness::Buffer vertices_, indices_, instances_, uniforms_;
  float background_[4];
};

/// Attributes of Vertex and Instance, depth test, front faces only, uniforms at binding 0, further textures
/// from 1.
harness::PipelineOptions scene_pipeline(std::span<const uint32_t> vertex, std::span<const uint32_t> fragment,
                                        uint32_t textures = 0);

/// The picture in a colour attachment after its pass.
Pixels read_pixels(harness::Gpu* gpu, const harness::Image& image);

}  // namespace samples
