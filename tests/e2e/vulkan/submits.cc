/// Submits nothing so many times, and waits each time: submits N. For tests/e2e/submit_calls_test.py.
#include <cstdlib>

#include "samples/vulkan/gpu.h"

int main(int argc, char** argv) {
  using namespace harness;
  if (argc != 2) return 2;
  Gpu gpu;
  const VkFenceCreateInfo info{.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  VkFence fence = VK_NULL_HANDLE;
  VULKAN_CHECK(vkCreateFence(gpu.device(), &info, nullptr, &fence));
  for (long n = std::atol(argv[1]); n > 0; --n) {
    VULKAN_CHECK(vkQueueSubmit(gpu.queue(), 0, nullptr, fence));
    VULKAN_CHECK(vkWaitForFences(gpu.device(), 1, &fence, VK_TRUE, UINT64_MAX));
    VULKAN_CHECK(vkResetFences(gpu.device(), 1, &fence));
  }
  vkDestroyFence(gpu.device(), fence, nullptr);
  return 0;
}
