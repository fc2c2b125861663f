/// Frames as vkmark draws them, by Vulkan, 800x600 off-screen: each is submitted and waited for.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "bench/vulkan_device.h"
#include "samples/common/scene.h"
#include "shaders.h"

namespace {

using namespace harness;
using v3d::bench::gpu;

constexpr uint32_t kWidth = 800, kHeight = 600;
constexpr float kSky[4] = {0.1f, 0.1f, 0.2f, 1};

/// An RGBA8 image with depth.
struct Screen {
  Image color =
      gpu().image(kWidth, kHeight, VK_FORMAT_R8G8B8A8_UNORM, {.usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT});
  Image depth = gpu().image(kWidth, kHeight, VK_FORMAT_D32_SFLOAT,
                            {.usage = VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT});
  Target target = gpu().target(color, &depth);

  template <typename Draw>
  void frame(const Draw& draw) const {
    gpu().run([&](VkCommandBuffer c) {
      begin_pass(c, target, kSky);
      draw(c);
      vkCmdEndRenderPass(c);
    });
  }

  /// Fails the benchmark if the last frame is of one colour.
  void check(benchmark::State& state) const {
    const std::vector<uint8_t> pixels = gpu().download(color, 4);
    if (std::equal(pixels.begin() + 4, pixels.end(), pixels.begin())) state.SkipWithError("nothing is drawn");
  }
};

/// A checked picture with some noise, to be sampled.
class Picture {
 public:
  Picture(const Pipeline& pipeline, uint32_t size, VkFilter filter) {
    const Image image =
        gpu().image(size, size, VK_FORMAT_R8G8B8A8_UNORM, {.usage = VK_IMAGE_USAGE_SAMPLED_BIT});
    std::vector<uint32_t> texels(size_t{size} * size);
    for (uint32_t i = 0; i < texels.size(); ++i) {
      const bool dark = ((i % size) / 32 + (i / size) / 32) % 2 != 0;
      texels[i] = (dark ? 0xff404040 : 0xffc0a080) + (i * 2654435761u >> 28);
    }
    gpu().upload(image, texels.data(), texels.size() * 4, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL);
    set_ = gpu().descriptors(pipeline, {{.type = VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER,
                                         .view = image.view,
                                         .sampler = gpu().sampler(filter, VK_SAMPLER_ADDRESS_MODE_REPEAT)}});
  }

  VkDescriptorSet set() const { return set_; }

 private:
  VkDescriptorSet set_ = VK_NULL_HANDLE;
};

/// A mesh that turns by a degree each frame.
class Turning {
 public:
  Turning(const Screen& screen, const samples::Mesh& mesh, std::span<const uint32_t> fragment,
          bool is_textured = false)
      : count_(static_cast<uint32_t>(mesh.indices.size())),
        vertices_(filled(mesh.vertices, VK_BUFFER_USAGE_VERTEX_BUFFER_BIT)),
        indices_(filled(mesh.indices, VK_BUFFER_USAGE_INDEX_BUFFER_BIT)) {
    PipelineOptions options{.vertex = kShapeVert,
                            .fragment = fragment,
                            .stride = sizeof(samples::Vertex),
                            .attributes = {{VK_FORMAT_R32G32B32_SFLOAT, offsetof(samples::Vertex, position)},
                                           {VK_FORMAT_R32G32B32_SFLOAT, offsetof(samples::Vertex, normal)},
                                           {VK_FORMAT_R32G32_SFLOAT, offsetof(samples::Vertex, u)}},
                            .depth_test = true,
                            .push_constant_bytes = sizeof(samples::Mat4) * 2};
    if (is_textured) options.descriptors = {VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER};
    pipeline_ = gpu().graphics(screen.target, options);
  }

  const Pipeline& pipeline() const { return pipeline_; }

  void draw(VkCommandBuffer c, VkDescriptorSet set = VK_NULL_HANDLE) {
    const samples::Mat4 push[2] = {samples::rotation(samples::normalize({0.3f, 1, 0.1f}),
                                                     samples::kPi / 180 * static_cast<float>(++angle_)),
                                   samples::perspective(0.6f, static_cast<float>(kWidth) / kHeight, 1, 20) *
                                       samples::translation({0, 0, -5})};
    bind(c, pipeline_, set);
    vkCmdPushConstants(c, pipeline_.layout, VK_SHADER_STAGE_VERTEX_BIT | VK_SHADER_STAGE_FRAGMENT_BIT, 0,
                       sizeof push, push);
    const VkDeviceSize offset = 0;
    vkCmdBindVertexBuffers(c, 0, 1, &vertices_.handle, &offset);
    vkCmdBindIndexBuffer(c, indices_.handle, 0, VK_INDEX_TYPE_UINT32);
    vkCmdDrawIndexed(c, count_, 1, 0, 0, 0);
  }

 private:
  template <typename T>
  static Buffer filled(const std::vector<T>& values, VkBufferUsageFlags usage) {
    const Buffer buffer = gpu().buffer(values.size() * sizeof(T), usage);
    std::memcpy(buffer.mapped, values.data(), values.size() * sizeof(T));
    return buffer;
  }

  uint32_t count_, angle_ = 0;
  Buffer vertices_, indices_;
  Pipeline pipeline_;
};

void scene_clear(benchmark::State& state) {
  const Screen screen;
  for (auto _ : state) screen.frame([](VkCommandBuffer) {});
}
BENCHMARK(scene_clear)->Unit(benchmark::kMillisecond)->UseRealTime();

void turn(benchmark::State& state, const samples::Mesh& mesh, std::span<const uint32_t> fragment) {
  const Screen screen;
  Turning turning(screen, mesh, fragment);
  for (auto _ : state) screen.frame([&](VkCommandBuffer c) { turning.draw(c); });
  screen.check(state);
}

/// Some 40,000 triangles, lit by the vertex program.
void scene_vertex(benchmark::State& state) { turn(state, samples::torus(0.4f, 100, 200), kSmoothFrag); }
BENCHMARK(scene_vertex)->Unit(benchmark::kMillisecond)->UseRealTime();

/// Some 8,000, lit for each fragment.
void scene_shading(benchmark::State& state) { turn(state, samples::torus(0.4f, 40, 100), kPhongFrag); }
BENCHMARK(scene_shading)->Unit(benchmark::kMillisecond)->UseRealTime();

void turn_textured(benchmark::State& state, const samples::Mesh& mesh, uint32_t texels, VkFilter filter) {
  const Screen screen;
  Turning turning(screen, mesh, kTexturedFrag, /*is_textured=*/true);
  const Picture picture(turning.pipeline(), texels, filter);
  for (auto _ : state) screen.frame([&](VkCommandBuffer c) { turning.draw(c, picture.set()); });
  screen.check(state);
}

/// A box that fills the middle, with a bilinear texture.
void scene_texture(benchmark::State& state) { turn_textured(state, samples::box(), 512, VK_FILTER_LINEAR); }
BENCHMARK(scene_texture)->Unit(benchmark::kMillisecond)->UseRealTime();

/// vkcube's: the same box with a small texture, unfiltered.
void scene_cube(benchmark::State& state) { turn_textured(state, samples::box(), 256, VK_FILTER_NEAREST); }
BENCHMARK(scene_cube)->Unit(benchmark::kMillisecond)->UseRealTime();

/// Textured rectangles from corner to corner of the push constant.
Pipeline windows(const Screen& screen, std::span<const uint32_t> fragment,
                 const VkPipelineColorBlendAttachmentState& blend) {
  return gpu().graphics(screen.target, {.vertex = kWindowVert,
                                        .fragment = fragment,
                                        .topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_STRIP,
                                        .blend = blend,
                                        .push_constant_bytes = 16,
                                        .descriptors = {VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER}});
}

struct Rectangle {
  float from[2], to[2];
};
constexpr Rectangle kWhole{{-1, -1}, {1, 1}};

void draw(VkCommandBuffer c, const Pipeline& pipeline, const Rectangle& where) {
  vkCmdPushConstants(c, pipeline.layout, VK_SHADER_STAGE_VERTEX_BIT | VK_SHADER_STAGE_FRAGMENT_BIT, 0,
                     sizeof where, &where);
  vkCmdDraw(c, 4, 1, 0, 0);
}

/// A blur of 5x5 texels over the whole screen.
void scene_effect2d(benchmark::State& state) {
  const Screen screen;
  const Pipeline pipeline = windows(screen, kConvolveFrag, {});
  const Picture picture(pipeline, 512, VK_FILTER_NEAREST);
  for (auto _ : state)
    screen.frame([&](VkCommandBuffer c) {
      bind(c, pipeline, picture.set());
      draw(c, pipeline, kWhole);
    });
  screen.check(state);
}
BENCHMARK(scene_effect2d)->Unit(benchmark::kMillisecond)->UseRealTime();

/// A background and four windows through which it is seen.
void scene_desktop(benchmark::State& state) {
  const Screen screen;
  const Pipeline background = windows(screen, kWindowFrag, {}),
                 blended = windows(screen, kWindowFrag,
                                   {.blendEnable = VK_TRUE,
                                    .srcColorBlendFactor = VK_BLEND_FACTOR_SRC_ALPHA,
                                    .dstColorBlendFactor = VK_BLEND_FACTOR_ONE_MINUS_SRC_ALPHA,
                                    .srcAlphaBlendFactor = VK_BLEND_FACTOR_ONE,
                                    .dstAlphaBlendFactor = VK_BLEND_FACTOR_ZERO,
                                    .colorWriteMask = 0xf});
  const Picture wallpaper(background, 512, VK_FILTER_LINEAR), content(blended, 256, VK_FILTER_LINEAR);
  uint32_t step = 0;
  for (auto _ : state)
    screen.frame([&](VkCommandBuffer c) {
      bind(c, background, wallpaper.set());
      draw(c, background, kWhole);
      bind(c, blended, content.set());
      for (uint32_t window = 0; window < 4; ++window) {
        const float x = static_cast<float>((step + window * 40) % 160) / 100 - 1,
                    y = static_cast<float>(window) * 0.3f - 1;
        draw(c, blended, {{x, y}, {x + 0.8f, y + 0.8f}});
      }
      ++step;
    });
  screen.check(state);
}
BENCHMARK(scene_desktop)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
