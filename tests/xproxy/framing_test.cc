#include "tools/xproxy/framing.h"

#include <gtest/gtest.h>

#include <random>

#include "tools/xproxy/limits.h"

namespace v3d::xproxy {
namespace {

constexpr uint8_t kGeneric = 35, kKeymap = 11, kSent = 0x80;

TEST(Framing, GreetingsNameTheirByteOrder) {
  const uint8_t little[] = {'l', 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  const uint8_t big[] = {'B', 0, 0, 11, 0, 0, 0, 5, 0, 16, 0, 0};
  Greeting greeting;
  ASSERT_EQ(find_greeting(little, &greeting), Found::kPacket);
  EXPECT_EQ(greeting.order, Order::kLittle);
  EXPECT_EQ(greeting.major, 11);
  EXPECT_EQ(greeting.size, 12u);
  EXPECT_EQ(find_greeting(big, &greeting), Found::kNothing);  // its 24 bytes of authorization
  EXPECT_EQ(greeting.order, Order::kBig);
  EXPECT_EQ(greeting.size, 12u + 8 + 16);
}

TEST(Framing, GreetingsOfNoOrderOrBeyondTheLimitAreBroken) {
  const uint8_t wrong[] = {'x', 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  const uint8_t large[] = {'l', 0, 11, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0};
  Greeting greeting;
  EXPECT_EQ(find_greeting(wrong, &greeting), Found::kBroken);
  EXPECT_EQ(find_greeting(large, &greeting), Found::kBroken);
  EXPECT_EQ(find_greeting(Bytes(wrong).first(11), &greeting), Found::kNothing);
}

TEST(Framing, RequestsHaveLengthsInUnitsOfFour) {
  const uint8_t bytes[] = {98, 1, 3, 0};
  RequestHead head;
  ASSERT_EQ(find_request(bytes, Order::kLittle, false, &head), Found::kPacket);
  EXPECT_EQ(head.major, 98);
  EXPECT_EQ(head.minor, 1);
  EXPECT_EQ(head.head, 4u);
  EXPECT_EQ(head.size, 12u);
  ASSERT_EQ(find_request(bytes, Order::kBig, false, &head), Found::kPacket);
  EXPECT_EQ(head.size, 0x300u * 4);
  EXPECT_EQ(find_request(Bytes(bytes).first(3), Order::kLittle, false, &head), Found::kNothing);
}

TEST(Framing, LengthZeroIsBigRequestsAlone) {
  const uint8_t bytes[] = {72, 2, 0, 0, 0xff, 0xff, 0xff, 0xff};
  const uint8_t small[] = {72, 2, 0, 0, 1, 0, 0, 0};
  RequestHead head;
  EXPECT_EQ(find_request(bytes, Order::kLittle, false, &head), Found::kBroken);
  ASSERT_EQ(find_request(bytes, Order::kLittle, true, &head), Found::kPacket);
  EXPECT_EQ(head.head, 8u);
  EXPECT_EQ(head.size, 0xffffffffull * 4);
  EXPECT_EQ(find_request(small, Order::kLittle, true, &head), Found::kBroken);  // shorter than its own head
  EXPECT_EQ(find_request(Bytes(bytes).first(7), Order::kLittle, true, &head), Found::kNothing);
}

TEST(Framing, OnlyRepliesAndGenericEventsAreLonger) {
  std::vector<uint8_t> bytes(kPacketSize);
  bytes[2] = 0x34;
  bytes[3] = 0x12;
  bytes[4] = 3;
  ResponseHead head;
  const auto find = [&](uint8_t type) {
    bytes[0] = type;
    EXPECT_EQ(find_response(bytes, Order::kLittle, &head), Found::kPacket);
  };
  find(0);
  EXPECT_EQ(head.kind, ResponseKind::kError);
  EXPECT_EQ(head.size, kPacketSize);
  EXPECT_EQ(head.sequence, 0x1234);
  find(1);
  EXPECT_EQ(head.kind, ResponseKind::kReply);
  EXPECT_EQ(head.size, kPacketSize + 12);
  find(kGeneric);
  EXPECT_EQ(head.kind, ResponseKind::kEvent);
  EXPECT_EQ(head.size, kPacketSize + 12);
  find(kGeneric | kSent);
  EXPECT_EQ(head.size, kPacketSize + 12);
  find(2);
  EXPECT_EQ(head.size, kPacketSize);
  find(1 | kSent);  // no reply: a client has sent it
  EXPECT_EQ(head.kind, ResponseKind::kEvent);
  find(kKeymap);
  EXPECT_FALSE(head.sequence.has_value());
}

TEST(Framing, NothingIsReadBehindWhatArrived) {
  std::mt19937 random(20261125);
  for (int i = 0; i < 100000; ++i) {
    // Of its own size, for AddressSanitizer.
    std::vector<uint8_t> bytes(random() % 48);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() % 3 ? random() : random() % 2);
    const Order order = random() % 2 ? Order::kLittle : Order::kBig;
    Greeting greeting;
    RequestHead request;
    SetupHead setup;
    ResponseHead response;
    if (find_greeting(bytes, &greeting) == Found::kPacket) {
      EXPECT_LE(greeting.size, bytes.size());
      EXPECT_LE(greeting.size, kMostSetup);
    }
    if (find_request(bytes, order, random() % 2, &request) == Found::kPacket) {
      EXPECT_GE(request.size, request.head);
    }
    if (find_setup(bytes, order, &setup) == Found::kPacket) {
      EXPECT_LE(setup.size, bytes.size());
    }
    if (find_response(bytes, order, &response) == Found::kPacket) {
      EXPECT_GE(response.size, kPacketSize);
    }
  }
}

}  // namespace
}  // namespace v3d::xproxy
