/// Graphics through the whole driver, each picture compared with one computed here.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>

#include "samples/vulkan/gpu.h"
#include "shaders.h"

namespace e2e {

using namespace harness;

namespace {

constexpr VkFormat kRgba8 = VK_FORMAT_R8G8B8A8_UNORM;
constexpr VkImageUsageFlags kColor = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT;
constexpr float kBlack[4] = {0, 0, 0, 1};

struct Rgba {
  uint8_t r, g, b, a;
  bool operator==(const Rgba&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Rgba& c) {
  return out << "(" << +c.r << "," << +c.g << "," << +c.b << "," << +c.a << ")";
}

/// A downloaded RGBA8 image.
struct Picture {
  Picture(Gpu& gpu, const Image& image, uint32_t level = 0, uint32_t layer = 0)
      : width(std::max(1u, image.width >> level)), texels(gpu.download(image, 4, level, layer)) {}
  Rgba at(uint32_t x, uint32_t y) const {
    Rgba c{};
    std::memcpy(&c, &texels[4 * (size_t{y} * width + x)], 4);
    return c;
  }
  uint32_t width;
  std::vector<uint8_t> texels;
};

uint8_t unorm8(double v) { return static_cast<uint8_t>(std::lround(std::clamp(v, 0.0, 1.0) * 255)); }

/// Every channel within `tolerance`.
testing::AssertionResult near(Rgba a, Rgba b, int tolerance) {
  const auto apart = [](int x, int y) { return std::abs(x - y); };
  if (apart(a.r, b.r) <= tolerance && apart(a.g, b.g) <= tolerance && apart(a.b, b.b) <= tolerance &&
      apart(a.a, b.a) <= tolerance)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << a << " and " << b << " differ by more than " << tolerance;
}

struct FlatVertex {
  float position[4];
  float color[4];
};

PipelineOptions flat_options() {
  PipelineOptions o;
  o.vertex = kFlatVert;
  o.fragment = kFlatFrag;
  o.stride = sizeof(FlatVertex);
  o.attributes = {{VK_FORMAT_R32G32B32A32_SFLOAT, 0}, {VK_FORMAT_R32G32B32A32_SFLOAT, 16}};
  return o;
}

template <typename T>
Buffer vertex_buffer(Gpu& gpu, const std::vector<T>& vertices) {
  Buffer b = gpu.buffer(vertices.size() * sizeof(T), VK_BUFFER_USAGE_VERTEX_BUFFER_BIT |
                                                         VK_BUFFER_USAGE_INDEX_BUFFER_BIT |
                                                         VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT);
  std::memcpy(b.mapped, vertices.data(), vertices.size() * sizeof(T));
  return b;
}

void bind_vertices(VkCommandBuffer commands, const Buffer& buffer, uint32_t binding = 0) {
  const VkDeviceSize zero = 0;
  vkCmdBindVertexBuffers(commands, binding, 1, &buffer.handle, &zero);
}

/// A pass of one draw over black.
void draw_vertices(VkCommandBuffer c, const Target& target, const Pipeline& pipeline, const Buffer& vertices,
                   uint32_t count) {
  begin_pass(c, target, kBlack);
  bind(c, pipeline);
  bind_vertices(c, vertices);
  vkCmdDraw(c, count, 1, 0, 0);
  vkCmdEndRenderPass(c);
}

/// Signed distance of a pixel centre from the line a-b, in pixels; positive on the side of clockwise (rows
/// down) interiors.
double edge_distance(const double (&a)[2], const double (&b)[2], double x, double y) {
  const double dx = b[0] - a[0], dy = b[1] - a[1];
  return (dx * (y - a[1]) - dy * (x - a[0])) / std::hypot(dx, dy);
}

TEST(VulkanGraphics, ClearsEveryPixelOfTheTarget) {
  Gpu gpu;
  for (const auto& [width, height] : {std::pair{64u, 64u}, {1u, 1u}, {257u, 131u}}) {
    const Image image = gpu.image(width, height, kRgba8, {.usage = kColor});
    const Target target = gpu.target(image);
    gpu.run([&](VkCommandBuffer c) {
      begin_pass(c, target, {0.25f, 0.5f, 0.75f, 1.0f});
      vkCmdEndRenderPass(c);
    });
    const Picture picture(gpu, image);
    for (uint32_t y = 0; y < height; ++y)
      for (uint32_t x = 0; x < width; ++x)
        ASSERT_TRUE(near(picture.at(x, y), {64, 128, 191, 255}, 1)) << x << "," << y;
  }
}

/// The driver draws such clears, and chooses the layer with a geometry shader of its own.
TEST(VulkanGraphics, ClearsOfAttachmentsReachTheLayersTheyName) {
  Gpu gpu;
  constexpr uint32_t kSize = 150, kLayers = 5;
  const Image image = gpu.image(kSize, kSize, kRgba8, {.usage = kColor, .layers = kLayers});
  const Target target = gpu.target(image);
  gpu.run([&](VkCommandBuffer c) {
    begin_pass(c, target, kBlack);
    for (const uint32_t layer : {1u, 3u}) {
      const VkClearAttachment clear{.aspectMask = VK_IMAGE_ASPECT_COLOR_BIT,
                                    .clearValue = {{{1, layer == 3 ? 1.0f : 0.0f, 0, 1}}}};
      const VkClearRect rect{{{10, 20}, {100, 90}}, layer, layer == 3 ? 2u : 1u};
      vkCmdClearAttachments(c, 1, &clear, 1, &rect);
    }
    vkCmdEndRenderPass(c);
  });
  for (uint32_t layer = 0; layer < kLayers; ++layer) {
    const Picture picture(gpu, image, 0, layer);
    const Rgba drawn{static_cast<uint8_t>(layer % 2 || layer == 4 ? 255 : 0),
                     static_cast<uint8_t>(layer >= 3 ? 255 : 0), 0, 255};
    for (uint32_t y = 0; y < kSize; ++y)
      for (uint32_t x = 0; x < kSize; ++x) {
        const bool inside = x >= 10 && x < 110 && y >= 20 && y < 110;
        ASSERT_EQ(picture.at(x, y), inside ? drawn : (Rgba{0, 0, 0, 255})) << layer << ": " << x << "," << y;
      }
  }
}

TEST(VulkanGraphics, TriangleCoversItsPixelsAndInterpolatesColors) {
  Gpu gpu;
  constexpr uint32_t kWidth = 200, kHeight = 150;
  const Image image = gpu.image(kWidth, kHeight, kRgba8, {.usage = kColor});
  const Target target = gpu.target(image);
  const std::vector<FlatVertex> vertices = {{{-0.8f, -0.7f, 0, 1}, {1, 0, 0, 1}},
                                            {{0.9f, -0.3f, 0, 1}, {0, 1, 0, 1}},
                                            {{-0.1f, 0.8f, 0, 1}, {0, 0, 1, 1}}};
  const Buffer buffer = vertex_buffer(gpu, vertices);
  const Pipeline pipeline = gpu.graphics(target, flat_options());
  gpu.run([&](VkCommandBuffer c) { draw_vertices(c, target, pipeline, buffer, 3); });
  const Picture picture(gpu, image);
  double corner[3][2];
  for (int i = 0; i < 3; ++i) {
    corner[i][0] = (vertices[static_cast<size_t>(i)].position[0] + 1) / 2 * kWidth;
    corner[i][1] = (vertices[static_cast<size_t>(i)].position[1] + 1) / 2 * kHeight;
  }
  int inside = 0;
  for (uint32_t y = 0; y < kHeight; ++y)
    for (uint32_t x = 0; x < kWidth; ++x) {
      double distance[3], area = 0, weight[3];
      for (int e = 0; e < 3; ++e)
        distance[e] = edge_distance(corner[e], corner[(e + 1) % 3], x + 0.5, y + 0.5);
      const double nearest = std::min({distance[0], distance[1], distance[2]});
      if (std::abs(nearest) < 1.0 / 32) continue;  // the sub-pixel grid decides
      if (nearest < 0) {
        ASSERT_EQ(picture.at(x, y), (Rgba{0, 0, 0, 255})) << x << "," << y;
        continue;
      }
      ++inside;
      for (int i = 0; i < 3; ++i) {
        const int e = (i + 1) % 3;
        weight[i] = distance[e] *
                    std::hypot(corner[(e + 1) % 3][0] - corner[e][0], corner[(e + 1) % 3][1] - corner[e][1]);
        area += weight[i];
      }
      const Rgba expected{unorm8(weight[0] / area), unorm8(weight[1] / area), unorm8(weight[2] / area), 255};
      ASSERT_TRUE(near(picture.at(x, y), expected, 2)) << x << "," << y;
    }
  EXPECT_GT(inside, 5000);
}

struct MeshVertex {
  float position[3];
  float uv[2];
};

/// A row-major 4x4 product with a column vector.
std::array<double, 4> multiply(const std::array<float, 16>& column_major, const float (&p)[3]) {
  std::array<double, 4> r{};
  for (size_t i = 0; i < 4; ++i)
    r[i] = static_cast<double>(column_major[i]) * p[0] + static_cast<double>(column_major[4 + i]) * p[1] +
           static_cast<double>(column_major[8 + i]) * p[2] + static_cast<double>(column_major[12 + i]);
  return r;
}

/// Perspective, looking down -z from z = 3 with a turn about y.
std::array<float, 16> camera(float angle) {
  const float c = std::cos(angle), s = std::sin(angle), f = 1.5f, near_z = 1, far_z = 10;
  const float a = far_z / (near_z - far_z), b = near_z * far_z / (near_z - far_z);
  // clip = P * T(0,0,-3) * Ry
  return {f * c, 0, a * -s, s, 0, f, 0, 0, f * s, 0, a * c, -c, 0, 0, a * -3 + b, 3};
}

TEST(VulkanGraphics, TexturedDepthTestedMesh) {
  Gpu gpu;
  constexpr uint32_t kSize = 128;
  // Two crossing quads, drawn with an index buffer; the texture names each of its 8x8 cells.
  const std::vector<MeshVertex> vertices = {
      {{-1, -1, 0}, {0, 0}},    {{1, -1, 0}, {0.5f, 0}}, {{1, 1, 0}, {0.5f, 1}}, {{-1, 1, 0}, {0, 1}},
      {{0, -1, -1}, {0.5f, 0}}, {{0, -1, 1}, {1, 0}},    {{0, 1, 1}, {1, 1}},    {{0, 1, -1}, {0.5f, 1}}};
  const std::vector<uint16_t> indices = {0, 1, 2, 0, 2, 3, 4, 5, 6, 4, 6, 7};
  std::vector<Rgba> texels(64 * 64);
  for (uint32_t y = 0; y < 64; ++y)
    for (uint32_t x = 0; x < 64; ++x)
      texels[y * 64 + x] = {static_cast<uint8_t>(32 * (x / 8) + 16), static_cast<uint8_t>(32 * (y / 8) + 16),
                            static_cast<uint8_t>(x >= 32 ? 255 : 0), 255};
  const Image texture = gpu.image(64, 64, kRgba8, {.usage = VK_IMAGE_USAGE_SAMPLED_BIT});
  gpu.upload(texture, texels.data(), texels.size() * 4, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL);
  const Image image = gpu.image(kSize, kSize, kRgba8, {.usage = kColor});
  const Image depth =
      gpu.image(kSize, kSize, VK_FORMAT_D32_SFLOAT, {.usage = VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT});
  const Target target = gpu.target(image, &depth);
  const Pipeline pipeline =
      gpu.graphics(target, {.vertex = kMeshVert,
                            .fragment = kTextureFrag,
                            .stride = sizeof(MeshVertex),
                            .attributes = {{VK_FORMAT_R32G32B32_SFLOAT, 0}, {VK_FORMAT_R32G32_SFLOAT, 12}},
                            .depth_test = true,
                            .push_constant_bytes = 64,
                            .descriptors = {VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER}});
  const VkDescriptorSet set = gpu.descriptors(
      pipeline, {{.type = VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER,
                  .view = texture.view,
                  .sampler = gpu.sampler(VK_FILTER_NEAREST, VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE)}});
  const Buffer vertex = vertex_buffer(gpu, vertices), index = vertex_buffer(gpu, indices);
  const std::array<float, 16> transform = camera(0.6f);
  gpu.run([&](VkCommandBuffer c) {
    begin_pass(c, target, kBlack);
    bind(c, pipeline, set);
    bind_vertices(c, vertex);
    vkCmdBindIndexBuffer(c, index.handle, 0, VK_INDEX_TYPE_UINT16);
    vkCmdPushConstants(c, pipeline.layout, VK_SHADER_STAGE_VERTEX_BIT | VK_SHADER_STAGE_FRAGMENT_BIT, 0, 64,
                       transform.data());
    vkCmdDrawIndexed(c, static_cast<uint32_t>(indices.size()), 1, 0, 0, 0);
    vkCmdEndRenderPass(c);
  });
  const Picture picture(gpu, image);

  int compared = 0, covered = 0;
  for (uint32_t y = 0; y < kSize; ++y)
    for (uint32_t x = 0; x < kSize; ++x) {
      // Nearest hit over all triangles; pixels near an edge, a cell border or another depth are left out.
      double best_z = 2, second_z = 2;
      Rgba expected{0, 0, 0, 255};
      bool unsure = false;
      for (size_t t = 0; t < indices.size(); t += 3) {
        double corner[3][2], z[3], inverse_w[3];
        for (size_t i = 0; i < 3; ++i) {
          const auto clip = multiply(transform, vertices[indices[t + i]].position);
          corner[i][0] = (clip[0] / clip[3] + 1) / 2 * kSize;
          corner[i][1] = (clip[1] / clip[3] + 1) / 2 * kSize;
          z[i] = clip[2] / clip[3];
          inverse_w[i] = 1 / clip[3];
        }
        double distance[3];
        for (int e = 0; e < 3; ++e)
          distance[e] = edge_distance(corner[e], corner[(e + 1) % 3], x + 0.5, y + 0.5);
        if (distance[0] + distance[1] < 0 && distance[2] < 0)
          for (double& d : distance) d = -d;
        const double nearest = std::min({distance[0], distance[1], distance[2]});
        const double farthest = std::max({distance[0], distance[1], distance[2]});
        if (std::min(std::abs(nearest), std::abs(farthest)) < 0.1) unsure = true;
        if (nearest < 0) continue;
        double weight[3], area = 0, w = 0, uv[2] = {0, 0}, depth_here = 0;
        for (int i = 0; i < 3; ++i) {
          const int e = (i + 1) % 3;
          weight[i] = distance[e] * std::hypot(corner[(e + 1) % 3][0] - corner[e][0],
                                               corner[(e + 1) % 3][1] - corner[e][1]);
          area += weight[i];
        }
        for (int i = 0; i < 3; ++i) {
          weight[i] /= area;
          depth_here += weight[i] * z[i];
          w += weight[i] * inverse_w[i];
          for (int k = 0; k < 2; ++k)
            uv[k] += weight[i] * inverse_w[i] * vertices[indices[t + static_cast<size_t>(i)]].uv[k];
        }
        const double u = uv[0] / w * 64, v = uv[1] / w * 64;
        const auto cell_distance = [](double p) { return std::abs(p / 8 - std::round(p / 8)) * 8; };
        if (depth_here < best_z) {
          second_z = best_z;
          best_z = depth_here;
          expected = texels[static_cast<size_t>(std::clamp(v, 0.0, 63.0)) * 64 +
                            static_cast<size_t>(std::clamp(u, 0.0, 63.0))];
          if (cell_distance(u) < 0.1 || cell_distance(v) < 0.1) unsure = true;
        } else {
          second_z = std::min(second_z, depth_here);
        }
      }
      if (unsure || (second_z < 2 && second_z - best_z < 1e-4)) continue;
      ++compared;
      covered += best_z < 2;
      ASSERT_EQ(picture.at(x, y), expected) << x << "," << y;
    }
  EXPECT_GT(compared, 12000);
  EXPECT_GT(covered, 2500);
}

TEST(VulkanGraphics, BlendsOverAndAdds) {
  Gpu gpu;
  const Image image = gpu.image(64, 64, kRgba8, {.usage = kColor});
  const Target target = gpu.target(image);
  PipelineOptions over = flat_options();
  over.topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_STRIP;
  over.blend = {VK_TRUE,
                VK_BLEND_FACTOR_SRC_ALPHA,
                VK_BLEND_FACTOR_ONE_MINUS_SRC_ALPHA,
                VK_BLEND_OP_ADD,
                VK_BLEND_FACTOR_ONE,
                VK_BLEND_FACTOR_ZERO,
                VK_BLEND_OP_ADD,
                0xf};
  PipelineOptions add = over;
  add.blend.srcColorBlendFactor = VK_BLEND_FACTOR_ONE;
  add.blend.dstColorBlendFactor = VK_BLEND_FACTOR_ONE;
  const auto quad = [](float x0, float x1, std::array<float, 4> color) {
    std::vector<FlatVertex> q;
    for (float y : {-1.0f, 1.0f})
      for (float x : {x0, x1}) q.push_back({{x, y, 0, 1}, {color[0], color[1], color[2], color[3]}});
    return q;
  };
  std::vector<FlatVertex> vertices = quad(-1, 0.5f, {1, 0.2f, 0, 0.25f});
  for (const FlatVertex& v : quad(-0.5f, 1, {0.5f, 0.5f, 0.9f, 1})) vertices.push_back(v);
  const Buffer buffer = vertex_buffer(gpu, vertices);
  const Pipeline over_pipeline = gpu.graphics(target, over), add_pipeline = gpu.graphics(target, add);
  gpu.run([&](VkCommandBuffer c) {
    begin_pass(c, target, {0, 0.4f, 0.8f, 1});
    bind_vertices(c, buffer);
    bind(c, over_pipeline);
    vkCmdDraw(c, 4, 1, 0, 0);
    bind(c, add_pipeline);
    vkCmdDraw(c, 4, 1, 4, 0);
    vkCmdEndRenderPass(c);
  });
  const Picture picture(gpu, image);
  const double after_over[3] = {0.25, 0.2 * 0.25 + 0.4 * 0.75, 0.8 * 0.75};
  EXPECT_TRUE(
      near(picture.at(4, 10), {unorm8(after_over[0]), unorm8(after_over[1]), unorm8(after_over[2]), 64}, 1));
  EXPECT_TRUE(
      near(picture.at(32, 50), {unorm8(after_over[0] + 0.5), unorm8(after_over[1] + 0.5), 255, 255}, 2));
  EXPECT_TRUE(near(picture.at(60, 33), {128, 230, 255, 255}, 1));
}

TEST(VulkanGraphics, ResolvesFourSamples) {
  Gpu gpu;
  const Image samples = gpu.image(64, 64, kRgba8, {.usage = kColor, .samples = VK_SAMPLE_COUNT_4_BIT});
  const Image image = gpu.image(64, 64, kRgba8, {.usage = kColor});
  const Target target = gpu.target(samples, nullptr, &image);
  // Right of the line from (10.3, 0) to (50.7, 64) white on black.
  const float x0 = 10.3f / 32 - 1, x1 = 50.7f / 32 - 1;
  const std::vector<FlatVertex> vertices = {{{x0, -1, 0, 1}, {1, 1, 1, 1}},
                                            {{3, -1, 0, 1}, {1, 1, 1, 1}},
                                            {{x1, 1, 0, 1}, {1, 1, 1, 1}},
                                            {{3, 1, 0, 1}, {1, 1, 1, 1}}};
  PipelineOptions o = flat_options();
  o.topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_STRIP;
  const Pipeline pipeline = gpu.graphics(target, o);
  const Buffer buffer = vertex_buffer(gpu, vertices);
  gpu.run([&](VkCommandBuffer c) { draw_vertices(c, target, pipeline, buffer, 4); });
  const Picture picture(gpu, image);
  int between = 0;
  double sum = 0;
  for (uint32_t y = 0; y < 64; ++y)
    for (uint32_t x = 0; x < 64; ++x) {
      const double line = 10.3 + (50.7 - 10.3) * (y + 0.5) / 64;
      const Rgba c = picture.at(x, y);
      if (x + 1 < line - 1 || x > line + 1) {
        EXPECT_EQ(c.r, x > line ? 255 : 0) << x << "," << y;
      }
      EXPECT_TRUE(c.r % 64 <= 1 || c.r % 64 == 63) << "not a quarter: " << +c.r;
      between += c.r > 8 && c.r < 247;
      sum += c.r;
    }
  EXPECT_GT(between, 40);
  EXPECT_NEAR(sum / 255, 64 * 64 - 64 * (10.3 + 50.7) / 2, 30);
}

/// Programs that ask for the number of the sample run once for each.
TEST(VulkanGraphics, ShadesEachSample) {
  Gpu gpu({feature::kSampleShading});
  const Image samples = gpu.image(64, 64, kRgba8, {.usage = kColor, .samples = VK_SAMPLE_COUNT_4_BIT});
  const Image image = gpu.image(64, 64, kRgba8, {.usage = kColor});
  const Target target = gpu.target(samples, nullptr, &image);
  const std::vector<FlatVertex> vertices = {
      {{-1, -1, 0, 1}, {1, 1, 1, 1}}, {{1, -1, 0, 1}, {1, 1, 1, 1}}, {{-1, 1, 0, 1}, {1, 1, 1, 1}}};
  PipelineOptions o = flat_options();
  o.fragment = kSamplesFrag;
  const Pipeline pipeline = gpu.graphics(target, o);
  const Buffer buffer = vertex_buffer(gpu, vertices);
  gpu.run([&](VkCommandBuffer c) { draw_vertices(c, target, pipeline, buffer, 3); });
  const Picture picture(gpu, image);
  for (uint32_t y = 0; y < 64; ++y)
    for (uint32_t x = 0; x < 64; ++x) {
      if (x + y == 63) continue;  // on the side, which leaves some of the samples
      // The mean of 0, 1/3, 2/3 and 1.
      const uint8_t tone = x + y < 63 ? 128 : 0;
      EXPECT_TRUE(near(picture.at(x, y), {tone, tone, tone, 255}, 1)) << x << "," << y;
    }
}

TEST(VulkanGraphics, SamplesWhatItRendered) {
  Gpu gpu;
  const Image first = gpu.image(64, 64, kRgba8, {.usage = kColor | VK_IMAGE_USAGE_SAMPLED_BIT});
  const Image second = gpu.image(32, 32, kRgba8, {.usage = kColor});
  const Target first_target = gpu.target(first), second_target = gpu.target(second);
  std::vector<FlatVertex> vertices;
  for (float y : {-1.0f, 1.0f})
    for (float x : {-1.0f, 1.0f}) vertices.push_back({{x, y, 0, 1}, {(x + 1) / 2, (y + 1) / 2, 0.25f, 1}});
  PipelineOptions gradient = flat_options();
  gradient.topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_STRIP;
  PipelineOptions sample;
  sample.vertex = kScreenVert;
  sample.fragment = kTextureFrag;
  sample.descriptors = {VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER};
  const Pipeline draw = gpu.graphics(first_target, gradient), copy = gpu.graphics(second_target, sample);
  const VkDescriptorSet set = gpu.descriptors(
      copy, {{.type = VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER,
              .view = first.view,
              .sampler = gpu.sampler(VK_FILTER_LINEAR, VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE)}});
  const Buffer buffer = vertex_buffer(gpu, vertices);
  gpu.run([&](VkCommandBuffer c) {
    draw_vertices(c, first_target, draw, buffer, 4);
    transition(c, first, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL);
    begin_pass(c, second_target, kBlack);
    bind(c, copy, set);
    vkCmdDraw(c, 3, 1, 0, 0);
    vkCmdEndRenderPass(c);
  });
  const Picture picture(gpu, second);
  for (uint32_t y = 0; y < 32; ++y)
    for (uint32_t x = 0; x < 32; ++x)
      ASSERT_TRUE(near(picture.at(x, y), {unorm8((x + 0.5) / 32), unorm8((y + 0.5) / 32), 64, 255}, 2))
          << x << "," << y;
}

TEST(VulkanGraphics, MipmapsAreBlittedAndSampledByLevel) {
  Gpu gpu;
  constexpr uint32_t kLevels = 7;
  const Image texture = gpu.image(64, 64, kRgba8, {.usage = VK_IMAGE_USAGE_SAMPLED_BIT, .levels = kLevels});
  std::mt19937 random(7);
  std::vector<Rgba> texels(64 * 64);
  for (Rgba& t : texels)
    t = {static_cast<uint8_t>(random()), static_cast<uint8_t>(random()), static_cast<uint8_t>(random()), 255};
  gpu.upload(texture, texels.data(), texels.size() * 4, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
  gpu.run([&](VkCommandBuffer c) {
    for (uint32_t level = 1; level < kLevels; ++level) {
      VkImageMemoryBarrier barrier{.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
                                   .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
                                   .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT,
                                   .oldLayout = VK_IMAGE_LAYOUT_UNDEFINED,
                                   .newLayout = VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL,
                                   .image = texture.handle,
                                   .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, level, 1, 0, 1}};
      const auto apply = [&] {
        vkCmdPipelineBarrier(c, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0,
                             nullptr, 0, nullptr, 1, &barrier);
      };
      apply();
      const int32_t from = 64 >> (level - 1), to = 64 >> level;
      VkImageBlit blit{.srcSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, level - 1, 0, 1},
                       .srcOffsets = {{0, 0, 0}, {from, from, 1}},
                       .dstSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, level, 0, 1},
                       .dstOffsets = {{0, 0, 0}, {to, to, 1}}};
      vkCmdBlitImage(c, texture.handle, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, texture.handle,
                     VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &blit, VK_FILTER_LINEAR);
      barrier.oldLayout = VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL;
      barrier.newLayout = VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL;
      apply();
    }
    transition(c, texture, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL);
  });

  // The same chain here, then every level sampled at its own size.
  std::vector<Rgba> expected = texels;
  for (uint32_t level = 0; level < kLevels; ++level) {
    const uint32_t size = 64 >> level;
    if (level > 0) {
      std::vector<Rgba> smaller(size * size);
      for (uint32_t y = 0; y < size; ++y)
        for (uint32_t x = 0; x < size; ++x) {
          const auto average = [&](auto channel) {
            int sum = 0;
            for (uint32_t k = 0; k < 4; ++k)
              sum += expected[(2 * y + k / 2) * 2 * size + 2 * x + k % 2].*channel;
            return static_cast<uint8_t>((sum + 2) / 4);
          };
          smaller[y * size + x] = {average(&Rgba::r), average(&Rgba::g), average(&Rgba::b), 255};
        }
      expected = smaller;
    }
    const Image image = gpu.image(size, size, kRgba8, {.usage = kColor});
    const Target target = gpu.target(image);
    const Pipeline pipeline =
        gpu.graphics(target, {.vertex = kScreenVert,
                              .fragment = kLevelFrag,
                              .push_constant_bytes = 4,
                              .descriptors = {VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER}});
    const VkDescriptorSet set = gpu.descriptors(
        pipeline, {{.type = VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER,
                    .view = texture.view,
                    .sampler = gpu.sampler(VK_FILTER_NEAREST, VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE)}});
    gpu.run([&](VkCommandBuffer c) {
      begin_pass(c, target, kBlack);
      bind(c, pipeline, set);
      const float lod = static_cast<float>(level);
      vkCmdPushConstants(c, pipeline.layout, VK_SHADER_STAGE_VERTEX_BIT | VK_SHADER_STAGE_FRAGMENT_BIT, 0, 4,
                         &lod);
      vkCmdDraw(c, 3, 1, 0, 0);
      vkCmdEndRenderPass(c);
    });
    const Picture picture(gpu, image);
    // Each level is rounded from a rounded one: one step of 1/255 per level at most.
    for (uint32_t y = 0; y < size; ++y)
      for (uint32_t x = 0; x < size; ++x)
        ASSERT_TRUE(near(picture.at(x, y), expected[y * size + x], static_cast<int>(level)))
            << level << ":" << x << "," << y;
  }
}

TEST(VulkanGraphics, InstancesHaveTheirAttributesAndIndices) {
  Gpu gpu;
  const Image image = gpu.image(64, 64, kRgba8, {.usage = kColor});
  const Target target = gpu.target(image);
  const Pipeline pipeline = gpu.graphics(
      target, {.vertex = kInstancedVert,
               .fragment = kFlatFrag,
               .stride = 8,
               .instance_stride = 16,
               .attributes = {{VK_FORMAT_R32G32_SFLOAT, 0}, {VK_FORMAT_R32G32B32A32_SFLOAT, 0, true}},
               .topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_STRIP});
  const Buffer corners = vertex_buffer<float>(gpu, {-1, -1, 1, -1, -1, 1, 1, 1});
  std::vector<float> instances;
  for (int i = 0; i < 16; ++i) {  // cells of a 4x4 grid
    const int column = i % 4, row = i / 4;
    instances.push_back(-0.75f + 0.5f * static_cast<float>(column));
    instances.push_back(-0.75f + 0.5f * static_cast<float>(row));
    instances.push_back(0.25f);
    instances.push_back(static_cast<float>(i) / 255.0f);
  }
  const Buffer instance = vertex_buffer(gpu, instances);
  gpu.run([&](VkCommandBuffer c) {
    begin_pass(c, target, kBlack);
    bind(c, pipeline);
    bind_vertices(c, corners);
    bind_vertices(c, instance, 1);
    vkCmdDraw(c, 4, 8, 0, 0);
    vkCmdDraw(c, 4, 8, 0, 8);  // first instance 8
    vkCmdEndRenderPass(c);
  });
  const Picture picture(gpu, image);
  for (uint32_t cell = 0; cell < 16; ++cell) {
    const Rgba c = picture.at(cell % 4 * 16 + 8, cell / 4 * 16 + 8);
    EXPECT_EQ(c.r, cell);
    EXPECT_EQ(c.b, cell);
  }
}

TEST(VulkanGraphics, IndirectDrawsReadTheirRecords) {
  Gpu gpu;
  const Image image = gpu.image(64, 64, kRgba8, {.usage = kColor});
  const Target target = gpu.target(image);
  PipelineOptions o = flat_options();
  const Pipeline pipeline = gpu.graphics(target, o);
  std::vector<FlatVertex> vertices;
  for (int i = 0; i < 4; ++i) {  // a quarter of the target each, two triangles
    const float x = i % 2 ? 0.0f : -1.0f, y = i / 2 ? 0.0f : -1.0f, color = static_cast<float>(i + 1) / 4;
    for (const auto& [dx, dy] : {std::pair{0, 0}, {1, 0}, {0, 1}, {0, 1}, {1, 0}, {1, 1}})
      vertices.push_back(
          {{x + static_cast<float>(dx), y + static_cast<float>(dy), 0, 1}, {color, 0, 1 - color, 1}});
  }
  const Buffer buffer = vertex_buffer(gpu, vertices);
  const VkDrawIndirectCommand draw{6, 1, 6, 0};
  const Buffer arguments = vertex_buffer<VkDrawIndirectCommand>(gpu, {draw});
  const std::vector<uint32_t> indices = {0, 1, 2, 3, 4, 5};
  const Buffer index = vertex_buffer(gpu, indices);
  const Buffer indexed = vertex_buffer<VkDrawIndexedIndirectCommand>(gpu, {{6, 1, 0, 12, 0}});
  gpu.run([&](VkCommandBuffer c) {
    begin_pass(c, target, kBlack);
    bind(c, pipeline);
    bind_vertices(c, buffer);
    vkCmdBindIndexBuffer(c, index.handle, 0, VK_INDEX_TYPE_UINT32);
    vkCmdDrawIndirect(c, arguments.handle, 0, 1, 16);
    vkCmdDrawIndexedIndirect(c, indexed.handle, 0, 1, 20);
    vkCmdEndRenderPass(c);
  });
  const Picture picture(gpu, image);
  EXPECT_EQ(picture.at(10, 10), (Rgba{0, 0, 0, 255}));
  EXPECT_TRUE(near(picture.at(50, 10), {128, 0, 128, 255}, 1));
  EXPECT_TRUE(near(picture.at(10, 50), {191, 0, 64, 255}, 1));
  EXPECT_EQ(picture.at(50, 50), (Rgba{0, 0, 0, 255}));
}

TEST(VulkanGraphics, PushConstantsChangeBetweenDraws) {
  Gpu gpu;
  const Image image = gpu.image(96, 40, kRgba8, {.usage = kColor});
  const Target target = gpu.target(image);
  const Pipeline pipeline =
      gpu.graphics(target, {.vertex = kScreenVert, .fragment = kPushFrag, .push_constant_bytes = 32});
  struct Push {
    float color[4];
    int32_t window[4];
  };
  const Push draws[] = {
      {{1, 0, 0, 1}, {3, 5, 40, 31}}, {{0, 1, 0, 1}, {30, 0, 96, 9}}, {{0, 0, 1, 1}, {35, 7, 36, 8}}};
  gpu.run([&](VkCommandBuffer c) {
    begin_pass(c, target, kBlack);
    bind(c, pipeline);
    for (const Push& p : draws) {
      vkCmdPushConstants(c, pipeline.layout, VK_SHADER_STAGE_VERTEX_BIT | VK_SHADER_STAGE_FRAGMENT_BIT, 0,
                         sizeof p, &p);
      vkCmdDraw(c, 3, 1, 0, 0);
    }
    vkCmdEndRenderPass(c);
  });
  const Picture picture(gpu, image);
  for (int y = 0; y < 40; ++y)
    for (int x = 0; x < 96; ++x) {
      Rgba expected{0, 0, 0, 255};
      for (const Push& p : draws)
        if (x >= p.window[0] && y >= p.window[1] && x < p.window[2] && y < p.window[3])
          expected = {unorm8(p.color[0]), unorm8(p.color[1]), unorm8(p.color[2]), 255};
      ASSERT_EQ(picture.at(static_cast<uint32_t>(x), static_cast<uint32_t>(y)), expected) << x << "," << y;
    }
}

TEST(VulkanGraphics, OcclusionQueriesCountSamplesAndTimestampsAdvance) {
  Gpu gpu;
  const Image image = gpu.image(100, 80, kRgba8, {.usage = kColor});
  const Target target = gpu.target(image);
  const Pipeline pipeline =
      gpu.graphics(target, {.vertex = kScreenVert, .fragment = kPushFrag, .push_constant_bytes = 32});
  VkQueryPool occlusion = VK_NULL_HANDLE, time = VK_NULL_HANDLE;
  VkQueryPoolCreateInfo info{.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                             .queryType = VK_QUERY_TYPE_OCCLUSION,
                             .queryCount = 3};
  VULKAN_CHECK(vkCreateQueryPool(gpu.device(), &info, nullptr, &occlusion));
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = 2;
  VULKAN_CHECK(vkCreateQueryPool(gpu.device(), &info, nullptr, &time));
  struct Push {
    float color[4];
    int32_t window[4];
  };
  const Push draws[] = {
      {{1, 0, 0, 1}, {0, 0, 100, 80}}, {{1, 0, 0, 1}, {17, 3, 60, 44}}, {{1, 0, 0, 1}, {5, 5, 5, 5}}};
  gpu.run([&](VkCommandBuffer c) {
    vkCmdResetQueryPool(c, occlusion, 0, 3);
    vkCmdResetQueryPool(c, time, 0, 2);
    vkCmdWriteTimestamp(c, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, time, 0);
    begin_pass(c, target, kBlack);
    bind(c, pipeline);
    for (uint32_t i = 0; i < 3; ++i) {
      vkCmdBeginQuery(c, occlusion, i, VK_QUERY_CONTROL_PRECISE_BIT);
      vkCmdPushConstants(c, pipeline.layout, VK_SHADER_STAGE_VERTEX_BIT | VK_SHADER_STAGE_FRAGMENT_BIT, 0,
                         sizeof(Push), &draws[i]);
      vkCmdDraw(c, 3, 1, 0, 0);
      vkCmdEndQuery(c, occlusion, i);
    }
    vkCmdEndRenderPass(c);
    vkCmdWriteTimestamp(c, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, time, 1);
  });
  uint64_t counts[3] = {}, stamps[2] = {};
  VULKAN_CHECK(vkGetQueryPoolResults(gpu.device(), occlusion, 0, 3, sizeof counts, counts, 8,
                                     VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT));
  VULKAN_CHECK(vkGetQueryPoolResults(gpu.device(), time, 0, 2, sizeof stamps, stamps, 8,
                                     VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT));
  EXPECT_EQ(counts[0], 8000u);
  EXPECT_EQ(counts[1], 43u * 41u);
  EXPECT_EQ(counts[2], 0u);
  EXPECT_GT(stamps[0], 0u);
  EXPECT_GT(stamps[1], stamps[0]);
  EXPECT_LT(static_cast<double>(stamps[1] - stamps[0]) * gpu.timestamp_period(), 60e9);
  vkDestroyQueryPool(gpu.device(), occlusion, nullptr);
  vkDestroyQueryPool(gpu.device(), time, nullptr);
}

}  // namespace
}  // namespace e2e
