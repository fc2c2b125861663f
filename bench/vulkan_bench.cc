/// Figures of a whole device as an application sees them, through Vulkan. Run it under the shim for the
/// emulated Pi and with lavapipe's driver for the peer; the ratio of the two is what counts:
///
///   build/release/bin/v3demu run -- build/release/bin/vulkan_bench
///   VK_ICD_FILENAMES=/usr/share/vulkan/icd.d/lvp_icd.x86_64.json build/release/bin/vulkan_bench
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>

#include "bench/vulkan_device.h"
#include "shaders.h"

namespace {

using namespace harness;
using v3d::bench::gpu;

void empty_submit(benchmark::State& state) {
  for (auto _ : state) gpu().run([](VkCommandBuffer) {});
}
BENCHMARK(empty_submit)->Unit(benchmark::kMicrosecond)->UseRealTime();

/// vkQueueSubmit without command buffers.
void empty_queue_submit(benchmark::State& state) {
  VkFenceCreateInfo info{.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  VkFence fence = VK_NULL_HANDLE;
  VULKAN_CHECK(vkCreateFence(gpu().device(), &info, nullptr, &fence));
  for (auto _ : state) {
    VULKAN_CHECK(vkQueueSubmit(gpu().queue(), 0, nullptr, fence));
    VULKAN_CHECK(vkWaitForFences(gpu().device(), 1, &fence, VK_TRUE, UINT64_MAX));
    VULKAN_CHECK(vkResetFences(gpu().device(), 1, &fence));
  }
  vkDestroyFence(gpu().device(), fence, nullptr);
}
BENCHMARK(empty_queue_submit)->Unit(benchmark::kMicrosecond)->UseRealTime();

/// y = a x + y.
class Saxpy {
 public:
  explicit Saxpy(uint32_t count)
      : push_{2.0f, count},
        x_(gpu().buffer(VkDeviceSize{count} * 4, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT)),
        y_(gpu().buffer(VkDeviceSize{count} * 4, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT)),
        pipeline_(gpu().compute(kSaxpyComp, {kStorage, kStorage}, sizeof(Push))),
        set_(gpu().descriptors(pipeline_, {{kStorage, &x_}, {kStorage, &y_}})) {
    for (uint32_t i = 0; i < count; ++i) x_.as<float>()[i] = static_cast<float>(i % 1000);
  }

  /// Dispatches of all elements in one command buffer, submitted and waited for.
  void run(uint32_t dispatches = 1) {
    gpu().run([&](VkCommandBuffer c) {
      bind(c, pipeline_, set_);
      vkCmdPushConstants(c, pipeline_.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push_, &push_);
      for (uint32_t i = 0; i < dispatches; ++i) vkCmdDispatch(c, push_.count / 64, 1, 1);
    });
  }

  void check(benchmark::State& state) {
    std::ranges::fill(y_.as<float>(), 1.0f);
    run();
    for (uint32_t i = 0; i < push_.count; ++i)
      if (y_.as<float>()[i] != 2 * x_.as<float>()[i] + 1) return state.SkipWithError("wrong result");
  }

 private:
  static constexpr VkDescriptorType kStorage = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  const struct Push {
    float a;
    uint32_t count;
  } push_;
  const Buffer x_, y_;
  const Pipeline pipeline_;
  const VkDescriptorSet set_;
};

/// One workgroup of 64 invocations, submitted and waited for.
void dispatch_one_workgroup(benchmark::State& state) {
  Saxpy program(64);
  for (auto _ : state) program.run();
  program.check(state);
}
BENCHMARK(dispatch_one_workgroup)->Unit(benchmark::kMicrosecond)->UseRealTime();

/// 10,000 of them in one command buffer.
void dispatch_many(benchmark::State& state) {
  Saxpy program(64);
  for (auto _ : state) program.run(10000);
  program.check(state);
}
BENCHMARK(dispatch_many)->Unit(benchmark::kMillisecond)->UseRealTime();

/// 1 Mi elements.
void saxpy(benchmark::State& state) {
  constexpr uint32_t kCount = 1 << 20;
  Saxpy program(kCount);
  for (auto _ : state) program.run();
  program.check(state);
  state.SetBytesProcessed(state.iterations() * int64_t{kCount} * 12);
}
BENCHMARK(saxpy)->Unit(benchmark::kMillisecond)->UseRealTime();

/// Frames of full-screen triangles with interpolated coordinates, one colour from a push constant.
/// @param size  of the square image, in pixels
void draw_triangles(benchmark::State& state, uint32_t size, uint32_t draws) {
  const Image image =
      gpu().image(size, size, VK_FORMAT_R8G8B8A8_UNORM, {.usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT});
  const Target target = gpu().target(image);
  const Pipeline pipeline =
      gpu().graphics(target, {.vertex = kScreenVert, .fragment = kPushFrag, .push_constant_bytes = 32});
  const struct {
    float color[4] = {1, 0.5f, 0.25f, 1};
    int32_t window[4];
  } push{.window = {0, 0, static_cast<int32_t>(size), static_cast<int32_t>(size)}};
  for (auto _ : state)
    gpu().run([&](VkCommandBuffer c) {
      begin_pass(c, target, {0, 0, 0, 1});
      bind(c, pipeline);
      vkCmdPushConstants(c, pipeline.layout, VK_SHADER_STAGE_VERTEX_BIT | VK_SHADER_STAGE_FRAGMENT_BIT, 0,
                         sizeof push, &push);
      for (uint32_t i = 0; i < draws; ++i) vkCmdDraw(c, 3, 1, 0, 0);
      vkCmdEndRenderPass(c);
    });
  state.counters["pixels/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * draws * size * size, benchmark::Counter::kIsRate);
}

/// One draw of one tile, submitted and waited for.
void draw_one(benchmark::State& state) { draw_triangles(state, 16, 1); }
BENCHMARK(draw_one)->Unit(benchmark::kMicrosecond)->UseRealTime();

void fill_rate(benchmark::State& state) { draw_triangles(state, 1024, 8); }
BENCHMARK(fill_rate)->Unit(benchmark::kMillisecond)->UseRealTime();

/// The same with a bilinear RGBA8 texture.
void texture_rate(benchmark::State& state) {
  constexpr uint32_t kSize = 1024;
  const Image image =
      gpu().image(kSize, kSize, VK_FORMAT_R8G8B8A8_UNORM, {.usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT});
  const Image texture =
      gpu().image(256, 256, VK_FORMAT_R8G8B8A8_UNORM, {.usage = VK_IMAGE_USAGE_SAMPLED_BIT});
  std::vector<uint32_t> texels(256 * 256);
  for (uint32_t i = 0; i < texels.size(); ++i) texels[i] = i * 2654435761u;
  gpu().upload(texture, texels.data(), texels.size() * 4, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL);
  const Target target = gpu().target(image);
  const Pipeline pipeline =
      gpu().graphics(target, {.vertex = kScreenVert,
                              .fragment = kTextureFrag,
                              .descriptors = {VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER}});
  const VkDescriptorSet set = gpu().descriptors(
      pipeline, {{.type = VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER,
                  .view = texture.view,
                  .sampler = gpu().sampler(VK_FILTER_LINEAR, VK_SAMPLER_ADDRESS_MODE_REPEAT)}});
  for (auto _ : state)
    gpu().run([&](VkCommandBuffer c) {
      begin_pass(c, target, {0, 0, 0, 1});
      bind(c, pipeline, set);
      for (int i = 0; i < 4; ++i) vkCmdDraw(c, 3, 1, 0, 0);
      vkCmdEndRenderPass(c);
    });
  state.counters["texels/s"] = benchmark::Counter(static_cast<double>(state.iterations()) * 4 * kSize * kSize,
                                                  benchmark::Counter::kIsRate);
}
BENCHMARK(texture_rate)->Unit(benchmark::kMillisecond)->UseRealTime();

/// Small triangles of about eight pixels each.
void triangle_rate(benchmark::State& state) {
  constexpr uint32_t kSize = 512, kPerSide = 128;
  const Image image =
      gpu().image(kSize, kSize, VK_FORMAT_R8G8B8A8_UNORM, {.usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT});
  const Target target = gpu().target(image);
  struct Vertex {
    float position[4], color[4];
  };
  std::vector<Vertex> vertices;
  for (uint32_t y = 0; y < kPerSide; ++y)
    for (uint32_t x = 0; x < kPerSide; ++x)
      for (uint32_t corner : {0u, 1u, 2u, 2u, 1u, 3u}) {
        const float px = static_cast<float>(x + (corner & 1)) / kPerSide * 2 - 1;
        const float py = static_cast<float>(y + (corner >> 1)) / kPerSide * 2 - 1;
        vertices.push_back({{px, py, 0, 1}, {px, py, 0.5f, 1}});
      }
  Buffer buffer = gpu().buffer(vertices.size() * sizeof(Vertex), VK_BUFFER_USAGE_VERTEX_BUFFER_BIT);
  std::memcpy(buffer.mapped, vertices.data(), vertices.size() * sizeof(Vertex));
  const Pipeline pipeline = gpu().graphics(
      target, {.vertex = kFlatVert,
               .fragment = kFlatFrag,
               .stride = sizeof(Vertex),
               .attributes = {{VK_FORMAT_R32G32B32A32_SFLOAT, 0}, {VK_FORMAT_R32G32B32A32_SFLOAT, 16}}});
  for (auto _ : state)
    gpu().run([&](VkCommandBuffer c) {
      begin_pass(c, target, {0, 0, 0, 1});
      bind(c, pipeline);
      const VkDeviceSize zero = 0;
      vkCmdBindVertexBuffers(c, 0, 1, &buffer.handle, &zero);
      vkCmdDraw(c, static_cast<uint32_t>(vertices.size()), 1, 0, 0);
      vkCmdEndRenderPass(c);
    });
  state.counters["triangles/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * static_cast<double>(vertices.size()) / 3,
                         benchmark::Counter::kIsRate);
}
BENCHMARK(triangle_rate)->Unit(benchmark::kMillisecond)->UseRealTime();

/// Memory allocated, mapped, touched and freed: CREATE_BO, MMAP_BO, mmap, GEM_CLOSE below.
void allocate_and_map(benchmark::State& state) {
  for (auto _ : state) {
    VkMemoryAllocateInfo info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = 1 << 20};
    VkDeviceMemory memory = VK_NULL_HANDLE;
    VULKAN_CHECK(vkAllocateMemory(gpu().device(), &info, nullptr, &memory));
    void* mapped = nullptr;
    VULKAN_CHECK(vkMapMemory(gpu().device(), memory, 0, VK_WHOLE_SIZE, 0, &mapped));
    *static_cast<volatile uint32_t*>(mapped) = 1;
    vkFreeMemory(gpu().device(), memory, nullptr);
  }
}
BENCHMARK(allocate_and_map)->Unit(benchmark::kMicrosecond)->UseRealTime();

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  benchmark::AddCustomContext("device", gpu().properties().deviceName);
  benchmark::RunSpecifiedBenchmarks();
}
