/// Compute through the whole driver, each result compared with one computed here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "samples/vulkan/gpu.h"
#include "shaders.h"
#include "tests/e2e/vulkan/dispatch.h"

namespace e2e {

using namespace harness;

namespace {

constexpr VkBufferUsageFlags kUsage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;

TEST(VulkanCompute, Saxpy) {
  Gpu gpu;
  constexpr uint32_t kCount = 10007;
  const Buffer x = gpu.buffer(kCount * 4, kUsage), y = gpu.buffer(kCount * 4, kUsage);
  std::mt19937 random(1);
  std::uniform_real_distribution<float> value(-10, 10);
  std::vector<float> expected(kCount);
  const struct {
    float a;
    uint32_t count;
  } push{1.5f, kCount - 3};
  for (uint32_t i = 0; i < kCount; ++i) {
    x.as<float>()[i] = value(random);
    y.as<float>()[i] = expected[i] = value(random);
    if (i < push.count) {
      const float product = push.a * x.as<float>()[i];
      expected[i] = product + expected[i];
    }
  }
  const Pipeline pipeline = gpu.compute(kSaxpyComp, {kStorage, kStorage}, 8);
  dispatch(gpu, pipeline, {{kStorage, &x}, {kStorage, &y}}, &push, 8, (kCount + 63) / 64);
  for (uint32_t i = 0; i < kCount; ++i) ASSERT_NEAR(y.as<float>()[i], expected[i], 4e-6f) << i;
}

TEST(VulkanCompute, TreeReductionWithSharedMemoryAndBarriers) {
  Gpu gpu;
  constexpr uint32_t kGroups = 37;
  const Buffer values = gpu.buffer(kGroups * 1024, kUsage), sums = gpu.buffer(kGroups * 4, kUsage);
  std::mt19937 random(2);
  for (uint32_t& v : values.as<uint32_t>()) v = static_cast<uint32_t>(random());
  const Pipeline pipeline = gpu.compute(kReduceComp, {kStorage, kStorage});
  dispatch(gpu, pipeline, {{kStorage, &values}, {kStorage, &sums}}, nullptr, 0, kGroups);
  for (uint32_t g = 0; g < kGroups; ++g) {
    const auto part = values.as<uint32_t>().subspan(g * 256, 256);
    EXPECT_EQ(sums.as<uint32_t>()[g], std::accumulate(part.begin(), part.end(), 0u)) << g;
  }
}

TEST(VulkanCompute, HistogramWithAtomics) {
  Gpu gpu;
  constexpr uint32_t kCount = 128 * 50;
  const Buffer values = gpu.buffer(kCount * 4, kUsage), bins = gpu.buffer(33 * 4, kUsage);
  std::vector<uint32_t> expected(33, 0);
  std::mt19937 random(3);
  std::ranges::fill(bins.as<uint32_t>(), 0);
  for (uint32_t& v : values.as<uint32_t>()) {
    v = static_cast<uint32_t>(random());
    ++expected[v >> 27];
    expected[32] = std::max(expected[32], v);
  }
  const Pipeline pipeline = gpu.compute(kHistogramComp, {kStorage, kStorage});
  dispatch(gpu, pipeline, {{kStorage, &values}, {kStorage, &bins}}, nullptr, 0, kCount / 128);
  EXPECT_TRUE(std::ranges::equal(bins.as<uint32_t>(), expected));
}

TEST(VulkanCompute, MatrixProduct) {
  Gpu gpu;
  constexpr uint32_t kN = 64;
  const Buffer a = gpu.buffer(kN * kN * 4, kUsage), b = gpu.buffer(kN * kN * 4, kUsage),
               c = gpu.buffer(kN * kN * 4, kUsage);
  std::mt19937 random(4);
  std::uniform_real_distribution<float> value(-1, 1);
  for (float& v : a.as<float>()) v = value(random);
  for (float& v : b.as<float>()) v = value(random);
  const Pipeline pipeline = gpu.compute(kMatmulComp, {kStorage, kStorage, kStorage}, 4);
  const uint32_t n = kN;
  dispatch(gpu, pipeline, {{kStorage, &a}, {kStorage, &b}, {kStorage, &c}}, &n, 4, kN / 8, kN / 8);
  for (uint32_t y = 0; y < kN; ++y)
    for (uint32_t x = 0; x < kN; ++x) {
      double sum = 0;
      for (uint32_t k = 0; k < kN; ++k)
        sum += static_cast<double>(a.as<float>()[y * kN + k]) * b.as<float>()[k * kN + x];
      ASSERT_NEAR(c.as<float>()[y * kN + x], sum, 1e-5) << x << "," << y;
    }
}

TEST(VulkanCompute, IndirectDispatchReadsItsCounts) {
  Gpu gpu;
  constexpr uint32_t kCount = 64 * 20;
  const Buffer x = gpu.buffer(kCount * 4, kUsage), y = gpu.buffer(kCount * 4, kUsage);
  const Buffer counts = gpu.buffer(32, VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT);
  std::ranges::fill(x.as<float>(), 1.0f);
  std::ranges::fill(y.as<float>(), 0.0f);
  const uint32_t groups[] = {0, 0, 13, 1, 1};
  std::ranges::copy(groups, counts.as<uint32_t>().begin());
  const struct {
    float a;
    uint32_t count;
  } push{2.0f, kCount};
  const Pipeline pipeline = gpu.compute(kSaxpyComp, {kStorage, kStorage}, 8);
  const VkDescriptorSet set = gpu.descriptors(pipeline, {{kStorage, &x}, {kStorage, &y}});
  gpu.run([&](VkCommandBuffer c) {
    bind(c, pipeline, set);
    vkCmdPushConstants(c, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 8, &push);
    vkCmdDispatchIndirect(c, counts.handle, 8);
    full_barrier(c);
    vkCmdDispatchIndirect(c, counts.handle, 0);  // zero groups: nothing
  });
  for (uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(y.as<float>()[i], i < 13 * 64 ? 2.0f : 0.0f) << i;
}

}  // namespace
}  // namespace e2e
