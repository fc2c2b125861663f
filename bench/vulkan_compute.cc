/// Compute through Vulkan: programs as applications write them, in sizes that a laptop's user would run. Each
/// checks its result. (saxpy and the cost of dispatches: vulkan_bench.cc.)
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "bench/vulkan_device.h"
#include "shaders.h"

namespace {

using namespace harness;
using v3d::bench::gpu;

constexpr VkDescriptorType kStorage = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;

template <typename T>
Buffer storage(const std::vector<T>& values) {
  const Buffer buffer = gpu().buffer(values.size() * sizeof(T), VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
  std::ranges::copy(values, buffer.as<T>().begin());
  return buffer;
}

std::vector<uint32_t> random_words(size_t count) {
  std::mt19937 random(1);
  std::vector<uint32_t> words(count);
  for (uint32_t& word : words) word = static_cast<uint32_t>(random());
  return words;
}

std::vector<float> random_floats(size_t count) {
  std::mt19937 random(2);
  std::uniform_real_distribution<float> value(-1, 1);
  std::vector<float> floats(count);
  for (float& f : floats) f = value(random);
  return floats;
}

bool is_near(float a, float b) { return std::abs(a - b) <= 1e-3f * std::max(1.0f, std::abs(b)); }

/// A pipeline whose bindings are storage buffers, with what is bound to it.
class Program {
 public:
  Program(std::span<const uint32_t> code, std::initializer_list<const Buffer*> buffers,
          uint32_t push_bytes = 0)
      : pipeline_(gpu().compute(code, std::vector<VkDescriptorType>(buffers.size(), kStorage), push_bytes)) {
    std::vector<Binding> bindings;
    for (const Buffer* buffer : buffers) bindings.push_back({kStorage, buffer});
    set_ = gpu().descriptors(pipeline_, bindings);
  }

  void bind(VkCommandBuffer c) const { harness::bind(c, pipeline_, set_); }
  template <typename Push>
  void bind(VkCommandBuffer c, const Push& push) const {
    bind(c);
    vkCmdPushConstants(c, pipeline_.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
  }

 private:
  const Pipeline pipeline_;
  VkDescriptorSet set_ = VK_NULL_HANDLE;
};

/// The sum of 16 Mi words, in two passes.
void reduction(benchmark::State& state) {
  constexpr uint32_t kCount = 1 << 24, kGroup = 4096;
  const std::vector<uint32_t> words = random_words(kCount);
  const Buffer values = storage(words);
  const Buffer sums = storage(std::vector<uint32_t>(kCount / kGroup)),
               sum = storage(std::vector<uint32_t>(1));
  const Program first(kSumComp, {&values, &sums}), second(kSumComp, {&sums, &sum});
  for (auto _ : state)
    gpu().run([&](VkCommandBuffer c) {
      first.bind(c);
      vkCmdDispatch(c, kCount / kGroup, 1, 1);
      full_barrier(c);
      second.bind(c);
      vkCmdDispatch(c, kCount / kGroup / kGroup, 1, 1);
    });
  if (sum.as<uint32_t>()[0] != std::accumulate(words.begin(), words.end(), 0u))
    state.SkipWithError("wrong result");
  state.SetBytesProcessed(state.iterations() * int64_t{kCount} * 4);
}
BENCHMARK(reduction)->Unit(benchmark::kMillisecond)->UseRealTime();

/// 512 x 512 floats.
void matrix_product(benchmark::State& state) {
  constexpr uint32_t kN = 512;
  const std::vector<float> left = random_floats(kN * kN);
  const std::vector<float> right(left.rbegin(), left.rend());
  const Buffer a = storage(left), b = storage(right), c = storage(std::vector<float>(kN * kN));
  const Program program(kMatrixComp, {&a, &b, &c}, sizeof kN);
  for (auto _ : state)
    gpu().run([&](VkCommandBuffer commands) {
      program.bind(commands, kN);
      vkCmdDispatch(commands, kN / 16, kN / 16, 1);
    });
  for (const uint32_t i : random_words(1000)) {
    const uint32_t row = i % kN, column = i / kN % kN;
    float sum = 0;
    for (uint32_t k = 0; k < kN; ++k) sum += left[row * kN + k] * right[k * kN + column];
    if (!is_near(c.as<float>()[row * kN + column], sum)) state.SkipWithError("wrong result");
  }
  state.counters["flop/s"] =
      benchmark::Counter(2.0 * kN * kN * kN, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(matrix_product)->Unit(benchmark::kMillisecond)->UseRealTime();

/// 256 bins of 4 Mi bytes.
void histogram(benchmark::State& state) {
  constexpr uint32_t kWords = 1 << 20;
  const std::vector<uint32_t> words = random_words(kWords);
  const Buffer values = storage(words), bins = storage(std::vector<uint32_t>(256));
  const Program program(kBinsComp, {&values, &bins});
  const auto run = [&] {
    gpu().run([&](VkCommandBuffer c) {
      program.bind(c);
      vkCmdDispatch(c, kWords / 2048, 1, 1);
    });
  };
  for (auto _ : state) run();
  std::ranges::fill(bins.as<uint32_t>(), 0u);
  run();
  std::array<uint32_t, 256> expected{};
  for (const uint32_t word : words)
    for (uint32_t shift = 0; shift < 32; shift += 8) ++expected[word >> shift & 255];
  if (!std::ranges::equal(bins.as<uint32_t>(), expected)) state.SkipWithError("wrong result");
  state.SetBytesProcessed(state.iterations() * int64_t{kWords} * 4);
}
BENCHMARK(histogram)->Unit(benchmark::kMillisecond)->UseRealTime();

/// Of a pixel, in rows of `size`.
size_t index_of(int x, int y, int size) {
  return static_cast<size_t>(y) * static_cast<size_t>(size) + static_cast<size_t>(x);
}

constexpr std::array<float, 5> kBinomial{1 / 16.0f, 4 / 16.0f, 6 / 16.0f, 4 / 16.0f, 1 / 16.0f};

/// What kBlurComp makes of a pixel's channel.
float blurred(const std::vector<uint32_t>& texels, int size, int x, int y, int channel) {
  float sum = 0;
  for (size_t j = 0; j < 5; ++j)
    for (size_t i = 0; i < 5; ++i) {
      const int at_x = std::clamp(x + static_cast<int>(i) - 2, 0, size - 1);
      const int at_y = std::clamp(y + static_cast<int>(j) - 2, 0, size - 1);
      const uint32_t texel = texels[index_of(at_x, at_y, size)];
      sum += kBinomial[i] * kBinomial[j] * static_cast<float>(texel >> (8 * channel) & 255);
    }
  return sum;
}

/// 5 x 5 on 1024 x 1024 pixels.
void image_filter(benchmark::State& state) {
  constexpr int kSize = 1024;
  const std::vector<uint32_t> texels = random_words(kSize * kSize);
  const Image source = gpu().image(kSize, kSize, VK_FORMAT_R8G8B8A8_UNORM,
                                   {.usage = VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT});
  const Image result = gpu().image(kSize, kSize, VK_FORMAT_R8G8B8A8_UNORM,
                                   {.usage = VK_IMAGE_USAGE_STORAGE_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT});
  gpu().upload(source, texels.data(), texels.size() * 4, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL);
  const Buffer kernel = gpu().buffer(25 * 16, VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT);
  for (size_t i = 0; i < 25; ++i) kernel.as<float>()[4 * i] = kBinomial[i / 5] * kBinomial[i % 5];
  const std::vector<VkDescriptorType> types{VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER,
                                            VK_DESCRIPTOR_TYPE_STORAGE_IMAGE,
                                            VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER};
  const Pipeline pipeline = gpu().compute(kBlurComp, types);
  const VkDescriptorSet set = gpu().descriptors(
      pipeline, {{.type = types[0],
                  .view = source.view,
                  .sampler = gpu().sampler(VK_FILTER_NEAREST, VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE)},
                 {.type = types[1], .view = result.view},
                 {.type = types[2], .buffer = &kernel}});
  gpu().run(
      [&](VkCommandBuffer c) { transition(c, result, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_GENERAL); });
  for (auto _ : state)
    gpu().run([&](VkCommandBuffer c) {
      bind(c, pipeline, set);
      vkCmdDispatch(c, kSize / 8, kSize / 8, 1);
    });
  gpu().run([&](VkCommandBuffer c) {
    transition(c, result, VK_IMAGE_LAYOUT_GENERAL, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
  });
  const std::vector<uint8_t> got = gpu().download(result, 4);
  for (const uint32_t i : random_words(1000)) {
    const int x = static_cast<int>(i % kSize), y = static_cast<int>(i / kSize % kSize);
    for (int channel = 0; channel < 4; ++channel) {
      const auto value = static_cast<float>(got[4 * index_of(x, y, kSize) + static_cast<size_t>(channel)]);
      if (std::abs(value - blurred(texels, kSize, x, y, channel)) > 1) state.SkipWithError("wrong result");
    }
  }
  state.counters["pixels/s"] =
      benchmark::Counter(kSize * kSize, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(image_filter)->Unit(benchmark::kMillisecond)->UseRealTime();

/// 4096 bodies.
void n_body(benchmark::State& state) {
  constexpr uint32_t kCount = 4096;
  const std::vector<float> values = random_floats(4 * kCount);
  const Buffer bodies = storage(values), accelerations = storage(std::vector<float>(4 * kCount));
  const Program program(kBodiesComp, {&bodies, &accelerations}, sizeof kCount);
  for (auto _ : state)
    gpu().run([&](VkCommandBuffer c) {
      program.bind(c, kCount);
      vkCmdDispatch(c, kCount / 128, 1, 1);
    });
  for (size_t i = 0; i < kCount; i += 37) {
    std::array<double, 3> sum{};
    for (size_t j = 0; j < kCount; ++j) {
      std::array<double, 3> to;
      double square = 0.01;
      for (size_t k = 0; k < 3; ++k) {
        to[k] = double{values[4 * j + k]} - values[4 * i + k];
        square += to[k] * to[k];
      }
      for (size_t k = 0; k < 3; ++k) sum[k] += to[k] * values[4 * j + 3] / (square * std::sqrt(square));
    }
    for (size_t k = 0; k < 3; ++k)
      if (std::abs(accelerations.as<float>()[4 * i + k] - sum[k]) > 0.01 * std::max(1.0, std::abs(sum[k])))
        state.SkipWithError("wrong result");
  }
  state.counters["pairs/s"] =
      benchmark::Counter(double{kCount} * kCount, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(n_body)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
