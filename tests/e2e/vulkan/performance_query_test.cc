/// VK_KHR_performance_query through the whole driver: counters of the hardware against what was drawn.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "samples/vulkan/gpu.h"
#include "shaders.h"

namespace e2e {

using namespace harness;

namespace {

template <typename Function>
Function entry(Gpu& gpu, const char* name) {
  const auto function = reinterpret_cast<Function>(vkGetInstanceProcAddr(gpu.instance(), name));
  if (function == nullptr) ADD_FAILURE() << name;
  return function;
}

/// Names of the counters of queue family 0; the position is the counter's index.
std::vector<std::string> counter_names(Gpu& gpu) {
  const auto enumerate = entry<PFN_vkEnumeratePhysicalDeviceQueueFamilyPerformanceQueryCountersKHR>(
      gpu, "vkEnumeratePhysicalDeviceQueueFamilyPerformanceQueryCountersKHR");
  uint32_t count = 0;
  VULKAN_CHECK(enumerate(gpu.physical(), 0, &count, nullptr, nullptr));
  std::vector<VkPerformanceCounterKHR> counters(count, {.sType = VK_STRUCTURE_TYPE_PERFORMANCE_COUNTER_KHR});
  std::vector<VkPerformanceCounterDescriptionKHR> texts(
      count, {.sType = VK_STRUCTURE_TYPE_PERFORMANCE_COUNTER_DESCRIPTION_KHR});
  VULKAN_CHECK(enumerate(gpu.physical(), 0, &count, counters.data(), texts.data()));
  std::vector<std::string> names;
  for (const auto& text : texts) names.emplace_back(text.name);
  return names;
}

/// A query of the named counters around what is recorded: their values by name.
std::map<std::string, uint64_t> measure(Gpu& gpu, const std::vector<std::string>& wanted,
                                        const std::function<void(VkCommandBuffer)>& record) {
  const std::vector<std::string> names = counter_names(gpu);
  std::vector<uint32_t> indices;
  for (const std::string& name : wanted) {
    const auto at = std::find(names.begin(), names.end(), name);
    EXPECT_NE(at, names.end()) << name;
    indices.push_back(static_cast<uint32_t>(at - names.begin()));
  }
  const VkQueryPoolPerformanceCreateInfoKHR counters{
      .sType = VK_STRUCTURE_TYPE_QUERY_POOL_PERFORMANCE_CREATE_INFO_KHR,
      .counterIndexCount = static_cast<uint32_t>(indices.size()),
      .pCounterIndices = indices.data()};
  const VkQueryPoolCreateInfo info{.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                   .pNext = &counters,
                                   .queryType = VK_QUERY_TYPE_PERFORMANCE_QUERY_KHR,
                                   .queryCount = 1};
  VkQueryPool pool = VK_NULL_HANDLE;
  VULKAN_CHECK(vkCreateQueryPool(gpu.device(), &info, nullptr, &pool));
  const VkAcquireProfilingLockInfoKHR lock{.sType = VK_STRUCTURE_TYPE_ACQUIRE_PROFILING_LOCK_INFO_KHR,
                                           .timeout = UINT64_MAX};
  VULKAN_CHECK(entry<PFN_vkAcquireProfilingLockKHR>(gpu, "vkAcquireProfilingLockKHR")(gpu.device(), &lock));
  gpu.run([&](VkCommandBuffer c) { vkCmdResetQueryPool(c, pool, 0, 1); });
  gpu.run([&](VkCommandBuffer c) {
    vkCmdBeginQuery(c, pool, 0, 0);
    record(c);
    vkCmdEndQuery(c, pool, 0);
  });
  std::vector<VkPerformanceCounterResultKHR> results(indices.size());
  VULKAN_CHECK(vkGetQueryPoolResults(gpu.device(), pool, 0, 1, results.size() * sizeof results[0],
                                     results.data(), results.size() * sizeof results[0],
                                     VK_QUERY_RESULT_WAIT_BIT));
  entry<PFN_vkReleaseProfilingLockKHR>(gpu, "vkReleaseProfilingLockKHR")(gpu.device());
  vkDestroyQueryPool(gpu.device(), pool, nullptr);
  std::map<std::string, uint64_t> values;
  for (size_t i = 0; i < wanted.size(); ++i) values[wanted[i]] = results[i].uint64;
  return values;
}

TEST(VulkanPerformanceQuery, EveryCounterOfTheChipIsOffered) {
  Gpu gpu;
  ASSERT_TRUE(gpu.has_performance_query());
  const bool rpi4 = std::string_view(gpu.properties().deviceName).starts_with("V3D 4.2");
  EXPECT_EQ(counter_names(gpu).size(), rpi4 ? 87u : 93u);
}

TEST(VulkanPerformanceQuery, CountersOfADrawAreThoseOfItsGeometry) {
  Gpu gpu;
  ASSERT_TRUE(gpu.has_performance_query());
  constexpr uint32_t kSize = 128, kDraws = 5, kQuads = kSize * kSize / 4;
  const Image image =
      gpu.image(kSize, kSize, VK_FORMAT_R8G8B8A8_UNORM, {.usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT});
  const Target target = gpu.target(image);
  const Pipeline pipeline =
      gpu.graphics(target, {.vertex = kScreenVert, .fragment = kPushFrag, .push_constant_bytes = 32});
  const struct {
    float color[4] = {1, 0.5f, 0.25f, 1};
    int32_t window[4] = {0, 0, kSize, kSize};
  } push;
  const auto counts = measure(
      gpu,
      {"TLB-quads-written-to-color-buffer", "TLB-partial-quads-written-to-color-buffer",
       "TLB-quads-passing-z-and-stencil-test", "PTB-primitives-binned",
       "PTB-primitives-discarded-outside-viewport", "FEP-valid-quads"},
      [&](VkCommandBuffer c) {
        begin_pass(c, target, {0, 0, 0, 1});
        bind(c, pipeline);
        vkCmdPushConstants(c, pipeline.layout, VK_SHADER_STAGE_VERTEX_BIT | VK_SHADER_STAGE_FRAGMENT_BIT, 0,
                           sizeof push, &push);
        for (uint32_t i = 0; i < kDraws; ++i) vkCmdDraw(c, 3, 1, 0, 0);
        vkCmdEndRenderPass(c);
      });
  EXPECT_EQ(counts.at("PTB-primitives-binned"), kDraws);
  EXPECT_EQ(counts.at("PTB-primitives-discarded-outside-viewport"), 0u);
  EXPECT_EQ(counts.at("FEP-valid-quads"), kDraws * kQuads);
  EXPECT_EQ(counts.at("TLB-quads-passing-z-and-stencil-test"), kDraws * kQuads);
  EXPECT_EQ(counts.at("TLB-quads-written-to-color-buffer"), kDraws * kQuads);
  EXPECT_EQ(counts.at("TLB-partial-quads-written-to-color-buffer"), 0u);
}

}  // namespace
}  // namespace e2e
