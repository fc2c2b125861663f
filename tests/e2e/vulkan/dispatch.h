/// Tests of compute shaders share these functions.
#pragma once

#include <vulkan/vulkan.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "samples/vulkan/gpu.h"

namespace e2e {

constexpr VkDescriptorType kStorage = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;

/// Groups of `pipeline` over the bindings; returns when they are done.
inline void dispatch(harness::Gpu& gpu, const harness::Pipeline& pipeline,
                     const std::vector<harness::Binding>& bindings, const void* push, uint32_t push_bytes,
                     uint32_t x, uint32_t y = 1, uint32_t z = 1) {
  const VkDescriptorSet set = gpu.descriptors(pipeline, bindings);
  gpu.run([&](VkCommandBuffer c) {
    harness::bind(c, pipeline, set);
    if (push_bytes) vkCmdPushConstants(c, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, push_bytes, push);
    vkCmdDispatch(c, x, y, z);
  });
}

/// A storage buffer of `bytes`, every byte 0xcd so that what a shader leaves out shows.
inline harness::Buffer storage_buffer(harness::Gpu& gpu, size_t bytes) {
  const harness::Buffer buffer = gpu.buffer(bytes, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
  std::ranges::fill(buffer.as<uint8_t>(), uint8_t{0xcd});
  return buffer;
}

/// A storage buffer that holds `values`.
template <typename T>
harness::Buffer storage_buffer_of(harness::Gpu& gpu, const std::vector<T>& values) {
  const harness::Buffer buffer = storage_buffer(gpu, values.size() * sizeof(T));
  std::ranges::copy(values, buffer.as<T>().begin());
  return buffer;
}

/// Runs a shader whose bindings are storage buffers, the last of them its output: `count` values of T.
template <typename T>
std::vector<T> compute(harness::Gpu& gpu, std::span<const uint32_t> code, std::vector<harness::Buffer> inputs,
                       size_t count, uint32_t groups) {
  const harness::Buffer out = storage_buffer(gpu, count * sizeof(T));
  inputs.push_back(out);
  std::vector<harness::Binding> bindings;
  for (const harness::Buffer& b : inputs) bindings.push_back({kStorage, &b});
  const harness::Pipeline pipeline =
      gpu.compute(code, std::vector<VkDescriptorType>(inputs.size(), kStorage));
  dispatch(gpu, pipeline, bindings, nullptr, 0, groups);
  return {out.as<T>().begin(), out.as<T>().end()};
}

}  // namespace e2e
