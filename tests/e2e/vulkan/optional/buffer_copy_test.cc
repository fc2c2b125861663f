/// vkCmdCopyBuffer, vkCmdFillBuffer and vkCmdUpdateBuffer at sizes and offsets that no format is aligned to.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>

#include "shaders.h"
#include "tests/e2e/vulkan/dispatch.h"
#include "tests/e2e/vulkan/optional/require.h"

namespace e2e {

using namespace harness;

namespace {

std::vector<uint8_t> random_bytes(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(count);
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
  return bytes;
}

/// Makes `expected` of `regions` and compares it with the whole destination, so that a byte too many shows.
void copy_and_compare(Gpu& gpu, size_t size, const std::vector<VkBufferCopy>& regions) {
  const std::vector<uint8_t> source = random_bytes(size, 1);
  std::vector<uint8_t> expected = random_bytes(size, 2);
  const Buffer from = storage_buffer_of(gpu, source), to = storage_buffer_of(gpu, expected);
  for (const VkBufferCopy& r : regions) std::memcpy(&expected[r.dstOffset], &source[r.srcOffset], r.size);
  gpu.run([&](VkCommandBuffer c) {
    vkCmdCopyBuffer(c, from.handle, to.handle, static_cast<uint32_t>(regions.size()), regions.data());
  });
  const auto got = to.as<uint8_t>();
  for (size_t i = 0; i < size; ++i) ASSERT_EQ(+got[i], +expected[i]) << "byte " << i;
}

TEST(VulkanBufferCopies, OddSizesAndOffsets) {
  Gpu gpu;
  for (const VkDeviceSize size :
       {1u, 2u, 3u, 4u, 5u, 7u, 15u, 16u, 17u, 37u, 63u, 64u, 65u, 255u, 257u, 4095u, 4097u})
    for (const auto& [from, to] : {std::pair{0u, 0u}, {1u, 0u}, {0u, 1u}, {3u, 5u}, {2u, 6u}, {37u, 101u}}) {
      SCOPED_TRACE(testing::Message() << size << " bytes from " << from << " to " << to);
      copy_and_compare(gpu, 8192, {{from, to, size}});
      if (testing::Test::HasFatalFailure()) return;
    }
}

TEST(VulkanBufferCopies, ManyRegionsOfOneCommand) {
  Gpu gpu;
  std::vector<VkBufferCopy> regions;
  for (uint32_t i = 0; i < 40; ++i) regions.push_back({i * 97, 5000 - i * 113, 1 + i * 2});
  copy_and_compare(gpu, 8192, regions);
}

TEST(VulkanBufferCopies, LongerThanTheWidestRow) {
  Gpu gpu;  // rows of the hardware's copies end at 16384 texels
  for (const VkDeviceSize size : {16383u, 16384u, 16385u, 65535u, 65537u, 100003u, 1000000u})
    for (const VkDeviceSize offset : {0u, 1u, 4u}) {
      SCOPED_TRACE(testing::Message() << size << " bytes from " << offset);
      copy_and_compare(gpu, 1 << 20, {{offset, offset * 3, size}});
      if (testing::Test::HasFatalFailure()) return;
    }
}

TEST(VulkanBufferFills, SizesAndOffsetsOfWords) {
  Gpu gpu;
  constexpr size_t kSize = 300007;
  for (const VkDeviceSize size : {4u, 8u, 12u, 36u, 252u, 256u, 260u, 65532u, 65536u, 262148u})
    for (const VkDeviceSize offset : {0u, 4u, 20u, 4100u}) {
      std::vector<uint8_t> expected = random_bytes(kSize, 3);
      const Buffer to = storage_buffer_of(gpu, expected);
      const uint32_t word = 0x89abcdef ^ static_cast<uint32_t>(size);
      gpu.run([&](VkCommandBuffer c) { vkCmdFillBuffer(c, to.handle, offset, size, word); });
      for (VkDeviceSize i = 0; i < size; i += 4) std::memcpy(&expected[offset + i], &word, 4);
      const auto got = to.as<uint8_t>();
      for (size_t i = 0; i < kSize; ++i)
        ASSERT_EQ(+got[i], +expected[i]) << "byte " << i << " of " << size << " at " << offset;
    }
}

TEST(VulkanBufferFills, TheRestOfABufferWithoutItsOddBytes) {
  Gpu gpu;
  constexpr size_t kSize = 1027;
  std::vector<uint8_t> expected = random_bytes(kSize, 4);
  const Buffer to = storage_buffer_of(gpu, expected);
  const uint32_t word = 0x01020304;
  gpu.run([&](VkCommandBuffer c) { vkCmdFillBuffer(c, to.handle, 8, VK_WHOLE_SIZE, word); });
  for (size_t i = 8; i < 1024; i += 4) std::memcpy(&expected[i], &word, 4);
  EXPECT_TRUE(std::ranges::equal(to.as<uint8_t>(), expected));
}

TEST(VulkanBufferFills, UpdatesFromTheCommandBuffer) {
  Gpu gpu;
  constexpr size_t kSize = 70000;
  std::vector<uint8_t> expected = random_bytes(kSize, 5);
  const std::vector<uint8_t> data = random_bytes(65536, 6);
  const Buffer to = storage_buffer_of(gpu, expected);
  gpu.run([&](VkCommandBuffer c) {
    vkCmdUpdateBuffer(c, to.handle, 4, 65536, data.data());
    vkCmdUpdateBuffer(c, to.handle, 65544, 12, data.data());
  });
  std::ranges::copy(data, expected.begin() + 4);
  std::copy_n(data.begin(), 12, expected.begin() + 65544);
  EXPECT_TRUE(std::ranges::equal(to.as<uint8_t>(), expected));
}

TEST(VulkanBufferCopies, EachSeesWhatTheOneBeforeWrote) {
  Gpu gpu;
  const std::vector<uint8_t> source = random_bytes(1001, 7);
  const Buffer a = storage_buffer_of(gpu, source), b = storage_buffer(gpu, 1001),
               c = storage_buffer(gpu, 1001);
  gpu.run([&](VkCommandBuffer commands) {
    const VkBufferCopy first{0, 0, 1001}, second{1, 0, 1000};
    vkCmdCopyBuffer(commands, a.handle, b.handle, 1, &first);
    full_barrier(commands);
    vkCmdFillBuffer(commands, b.handle, 4, 4, 0);
    full_barrier(commands);
    vkCmdCopyBuffer(commands, b.handle, c.handle, 1, &second);
  });
  for (size_t i = 0; i < 1000; ++i)
    ASSERT_EQ(+c.as<uint8_t>()[i], i + 1 >= 4 && i + 1 < 8 ? 0 : +source[i + 1]) << i;
}

}  // namespace
}  // namespace e2e
