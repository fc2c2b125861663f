#include "tools/cli/captures/render_images.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>

#include "gpu/chip/generation.h"
#include "gpu/mmu/address_space.h"

namespace v3d::tools {
namespace {

tlb::LoadStore at(GpuAddr address, bool rb_swap = false) {
  tlb::LoadStore packet;
  packet.address = address;
  packet.rb_swap = rb_swap;
  return packet;
}

TEST(ByteOrders, GoWithCopiesOfBytes) {
  constexpr GpuAddr kImage = 0x1000, kCopy = 0x2000, kNext = 0x3000;
  ByteOrders orders;
  const tlb::LoadStore image = at(kImage), copy = at(kCopy), drawn = at(kImage, true);
  EXPECT_FALSE(orders.store(copy, &image));  // nothing is known of it
  EXPECT_FALSE(orders.store(drawn, nullptr));
  EXPECT_TRUE(orders.store(copy, &image));
  EXPECT_TRUE(orders.store(at(kNext), &copy));
  EXPECT_FALSE(orders.store(at(kNext), &drawn));        // converted
  EXPECT_FALSE(orders.store(at(kNext, true), &drawn));  // the packet says it
  EXPECT_FALSE(orders.store(copy, nullptr));            // drawn with red first
  EXPECT_FALSE(orders.store(at(kNext), &copy));
}

// Memory that held such an image, and is drawn to as another one.
TEST(ByteOrders, EndWhereAnImageIsDrawnUpon) {
  constexpr GpuAddr kImage = 0x1000;
  ByteOrders orders;
  const tlb::LoadStore image = at(kImage);
  orders.store(at(kImage, true), nullptr);
  EXPECT_FALSE(orders.store(image, &image));
  EXPECT_FALSE(orders.store(at(0x2000), &image));
}

// Lists that store one image after another, as no driver makes them.
TEST(StoredImages, AreNotMoreThanAnyJobHas) {
  constexpr GpuAddr kLists = 0x100000;
  constexpr uint32_t kStoresOfList = 250, kNumLists = 20, kRoom = 4096;
  const auto space = *mmu::AddressSpace::create();
  ASSERT_TRUE(space->map_zeros(kLists, (kNumLists + 1) * kRoom).ok());
  const Memory memory = space->memory();
  const auto put = [&](GpuAddr* at, uint8_t opcode, std::initializer_list<uint32_t> words) {
    memory.store<uint8_t>((*at)++, opcode);
    for (const uint32_t word : words) {
      memory.write(*at, &word, sizeof word);
      *at += sizeof word;
    }
  };
  GpuAddr list = kLists;
  for (uint32_t n = 1; n <= kNumLists; ++n) {
    GpuAddr tile = kLists + n * kRoom;
    for (uint32_t i = 0; i < kStoresOfList; ++i) put(&tile, 29, {27 << 12, 64, (n * 256 + i) * 64});
    put(&list, 20, {kLists + n * kRoom, tile});
  }
  ByteOrders orders;
  EXPECT_EQ(stored_images(memory, chip::Generation::k71, kLists, kLists + 9, &orders).size(), kStoresOfList);
  EXPECT_EQ(stored_images(memory, chip::Generation::k71, kLists, list, &orders).size(), 4096u);
}

}  // namespace
}  // namespace v3d::tools
