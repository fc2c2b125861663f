#include "tools/cli/captures/render_images.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace v3d::tools
