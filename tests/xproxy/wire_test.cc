#include "tools/xproxy/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xcb/present.h>

#include "tools/xproxy/events.h"

namespace v3d::xproxy {
namespace {

using testing::ElementsAre;

TEST(Wire, PutsNumbersInEitherOrder) {
  Message little(Order::kLittle, 8), big(Order::kBig, 8);
  little.u8(0, 1).u16(2, 0x0203).u32(4, 0x04050607);
  big.u8(0, 1).u16(2, 0x0203).u32(4, 0x04050607);
  EXPECT_THAT(little.bytes(), ElementsAre(1, 0, 3, 2, 7, 6, 5, 4));
  EXPECT_THAT(big.bytes(), ElementsAre(1, 0, 2, 3, 4, 5, 6, 7));
}

TEST(Wire, ReadsWhatItPuts) {
  for (const Order order : {Order::kLittle, Order::kBig}) {
    Message message(order, 24);
    message.u64(0, 0x0102030405060708).s16(8, -2).u32(12, 0xfffffffe);
    const Reader reader(message.bytes(), order);
    EXPECT_EQ(reader.u64(0), 0x0102030405060708u);
    EXPECT_EQ(reader.s16(8), -2);
    EXPECT_EQ(reader.u32(12), 0xfffffffeu);
  }
}

TEST(Wire, ReadsZeroBehindTheEnd) {
  const uint8_t bytes[] = {1, 2, 3};
  const Reader reader(bytes, Order::kBig);
  EXPECT_EQ(reader.u32(0), 0x01020300u);
  EXPECT_EQ(reader.u32(3), 0u);
  EXPECT_EQ(reader.u64(1000), 0u);
}

TEST(Wire, RefusesToPutBehindTheEnd) {
  Message message(Order::kLittle, 4);
  EXPECT_THROW(message.u32(2, 1), std::out_of_range);
}

TEST(Wire, ErrorsAreAsTheProtocolEncodesThem) {
  const Message error = make_error(Order::kBig, 0x1234, {11, 0x55667788, 0x0102, 200});
  const Bytes bytes = error.bytes();
  ASSERT_EQ(bytes.size(), kPacketSize);
  EXPECT_THAT(bytes.first(11), ElementsAre(0, 11, 0x12, 0x34, 0x55, 0x66, 0x77, 0x88, 1, 2, 200));
}

TEST(Wire, CompleteNotifyHasTheLayoutOfItsDefinition) {
  const Message event = make_complete_notify(Order::kLittle, {7, 9}, {1, 2, 3, 4, 5});
  ASSERT_EQ(event.bytes().size(), 40u);
  // libxcb's structure has four bytes more, in front of the frame's number.
  const auto* complete = reinterpret_cast<const xcb_present_complete_notify_event_t*>(event.bytes().data());
  EXPECT_EQ(complete->response_type, 35);
  EXPECT_EQ(complete->length, 2u);
  EXPECT_EQ(complete->event_type, XCB_PRESENT_COMPLETE_NOTIFY);
  EXPECT_EQ(complete->kind, 1);
  EXPECT_EQ(complete->mode, 2);
  EXPECT_EQ(complete->event, 7u);
  EXPECT_EQ(complete->window, 9u);
  EXPECT_EQ(complete->serial, 3u);
  EXPECT_EQ(complete->ust, 4u);
  EXPECT_EQ(Reader(event.bytes(), Order::kLittle).u64(32), 5u);
}

TEST(Wire, ConfigureNotifyHasTheLayoutOfItsDefinition) {
  const Message event = make_configure_notify(Order::kLittle, {7, 9}, {-1, 2, 300, 200});
  ASSERT_EQ(event.bytes().size(), 40u);
  const auto* configure = reinterpret_cast<const xcb_present_configure_notify_event_t*>(event.bytes().data());
  EXPECT_EQ(configure->event_type, XCB_PRESENT_CONFIGURE_NOTIFY);
  EXPECT_EQ(configure->x, -1);
  EXPECT_EQ(configure->y, 2);
  EXPECT_EQ(configure->width, 300);
  EXPECT_EQ(configure->height, 200);
  const Reader reader(event.bytes(), Order::kLittle);
  EXPECT_EQ(reader.u16(32), 300);
  EXPECT_EQ(reader.u16(34), 200);
}

TEST(Wire, IdleNotifyHasTheLayoutOfItsDefinition) {
  const Message event = make_idle_notify(Order::kLittle, {7, 9}, 3, 11, 12);
  ASSERT_EQ(event.bytes().size(), 32u);
  const auto* idle = reinterpret_cast<const xcb_present_idle_notify_event_t*>(event.bytes().data());
  EXPECT_EQ(idle->length, 0u);
  EXPECT_EQ(idle->event_type, XCB_PRESENT_EVENT_IDLE_NOTIFY);
  EXPECT_EQ(idle->serial, 3u);
  EXPECT_EQ(idle->pixmap, 11u);
  EXPECT_EQ(idle->idle_fence, 12u);
}

}  // namespace
}  // namespace v3d::xproxy
