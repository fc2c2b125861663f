/// Kinds of texture lookups by Vulkan: each of four draws fills a quarter of its own of a 2048 x 2048 target.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "bench/vulkan_device.h"
#include "shaders.h"

namespace {

using namespace harness;
using v3d::bench::gpu;

constexpr uint32_t kTarget = 2048, kTexture = 256;

/// What is looked up, and how.
struct Kind {
  VkFormat format = VK_FORMAT_R8G8B8A8_UNORM;
  uint32_t texel_bytes = 4;
  VkFilter filter = VK_FILTER_LINEAR;
  std::span<const uint32_t> fragment = kQuarterFrag;
  uint32_t width = kTexture, depth = 1, layers = 1;
  bool is_cube = false, compares = false;
  uint32_t levels = 1;  ///< all are filtered
  float times = 1;      ///< so often the texture is repeated
};

/// Texels of a level: finite, whatever the format is.
std::vector<uint8_t> random_texels(const Kind& kind, size_t count) {
  std::vector<uint8_t> bytes(count * kind.texel_bytes);
  uint32_t state = 1;
  const auto next = [&] { return state = state * 1664525u + 1013904223u; };
  if (kind.format == VK_FORMAT_D32_SFLOAT) {
    for (size_t n = 0; n < count; ++n) {
      const float depth = static_cast<float>(next() >> 8) * 0x1p-24f;
      std::memcpy(&bytes[4 * n], &depth, sizeof depth);
    }
    return bytes;
  }
  // Halves are positive and below 2.
  const bool are_halves = kind.format == VK_FORMAT_R16G16B16A16_SFLOAT;
  for (size_t n = 0; n < bytes.size(); ++n)
    bytes[n] = static_cast<uint8_t>(next() >> 24 & (are_halves && n % 2 != 0 ? 0x3f : 0xff));
  return bytes;
}

Image make_texture(const Kind& kind) {
  const Image image = gpu().image(kind.width, kind.width, kind.format,
                                  {.usage = VK_IMAGE_USAGE_SAMPLED_BIT,
                                   .levels = kind.levels,
                                   .layers = kind.layers,
                                   .depth = kind.depth,
                                   .is_cube = kind.is_cube});
  for (uint32_t level = 0; level < kind.levels; ++level) {
    const size_t side = std::max(1u, kind.width >> level);
    const std::vector<uint8_t> texels = random_texels(kind, side * side * kind.depth * kind.layers);
    gpu().upload(image, texels.data(), texels.size(), VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL, level);
  }
  return image;
}

VkSampler make_sampler(const Kind& kind) {
  return gpu().sampler(
      {.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
       .magFilter = kind.filter,
       .minFilter = kind.filter,
       .mipmapMode = kind.levels > 1 ? VK_SAMPLER_MIPMAP_MODE_LINEAR : VK_SAMPLER_MIPMAP_MODE_NEAREST,
       .addressModeU = VK_SAMPLER_ADDRESS_MODE_REPEAT,
       .addressModeV = VK_SAMPLER_ADDRESS_MODE_REPEAT,
       .addressModeW = VK_SAMPLER_ADDRESS_MODE_REPEAT,
       .compareEnable = kind.compares,
       .compareOp = VK_COMPARE_OP_LESS_OR_EQUAL,
       .maxLod = kind.levels > 1 ? VK_LOD_CLAMP_NONE : 0.0f});
}

void look_up(benchmark::State& state, const Kind& kind) {
  const Image image =
      gpu().image(kTarget, kTarget, VK_FORMAT_R8G8B8A8_UNORM, {.usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT});
  const Target target = gpu().target(image);
  const Pipeline pipeline =
      gpu().graphics(target, {.vertex = kQuarterVert,
                              .fragment = kind.fragment,
                              .topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_STRIP,
                              .push_constant_bytes = 20,
                              .descriptors = {VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER}});
  const VkDescriptorSet set = gpu().descriptors(pipeline, {{.type = VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER,
                                                            .view = make_texture(kind).view,
                                                            .sampler = make_sampler(kind)}});
  for (auto _ : state)
    gpu().run([&](VkCommandBuffer c) {
      begin_pass(c, target, {0, 0, 0, 1});
      bind(c, pipeline, set);
      for (int quarter = 0; quarter < 4; ++quarter) {
        const int column = quarter % 2, row = quarter / 2;
        const float x = static_cast<float>(column) - 1, y = static_cast<float>(row) - 1;
        const float push[5] = {x, y, x + 1, y + 1, kind.times};
        vkCmdPushConstants(c, pipeline.layout, VK_SHADER_STAGE_VERTEX_BIT | VK_SHADER_STAGE_FRAGMENT_BIT, 0,
                           sizeof push, push);
        vkCmdDraw(c, 4, 1, 0, 0);
      }
      vkCmdEndRenderPass(c);
    });
  const std::vector<uint8_t> pixels = gpu().download(image, 4);
  if (std::equal(pixels.begin() + 4, pixels.end(), pixels.begin())) state.SkipWithError("nothing is drawn");
  state.counters["texels/s"] = benchmark::Counter(static_cast<double>(state.iterations()) * kTarget * kTarget,
                                                  benchmark::Counter::kIsRate);
}

void texture_rate_bilinear(benchmark::State& state) { look_up(state, {}); }
void texture_rate_nearest(benchmark::State& state) { look_up(state, {.filter = VK_FILTER_NEAREST}); }
/// One and a half texels a pixel: halfway between levels.
void texture_rate_trilinear(benchmark::State& state) { look_up(state, {.levels = 9, .times = 6}); }
void texture_rate_srgb(benchmark::State& state) { look_up(state, {.format = VK_FORMAT_R8G8B8A8_SRGB}); }
void texture_rate_rgba16f(benchmark::State& state) {
  look_up(state, {.format = VK_FORMAT_R16G16B16A16_SFLOAT, .texel_bytes = 8});
}
void texture_rate_shadow(benchmark::State& state) {
  look_up(state, {.format = VK_FORMAT_D32_SFLOAT, .fragment = kQuarterShadowFrag, .compares = true});
}
void texture_rate_cube(benchmark::State& state) {
  look_up(state, {.fragment = kQuarterCubeFrag, .layers = 6, .is_cube = true});
}
void texture_rate_3d(benchmark::State& state) {
  look_up(state, {.fragment = kQuarter3dFrag, .width = 64, .depth = 64});
}

#define V3D_TEXTURE_RATE(name) BENCHMARK(texture_rate_##name)->Unit(benchmark::kMillisecond)->UseRealTime()
V3D_TEXTURE_RATE(bilinear);
V3D_TEXTURE_RATE(nearest);
V3D_TEXTURE_RATE(trilinear);
V3D_TEXTURE_RATE(srgb);
V3D_TEXTURE_RATE(rgba16f);
V3D_TEXTURE_RATE(shadow);
V3D_TEXTURE_RATE(cube);
V3D_TEXTURE_RATE(3d);

}  // namespace
