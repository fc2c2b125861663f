#include "tools/xproxy/sequence.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace v3d::xproxy {
namespace {

TEST(Sequence, CountsOnBeyondSixteenBits) {
  Sequence sequence;
  for (int i = 0; i < 70000; ++i) sequence.pass();
  EXPECT_EQ(sequence.receive(60000), 60000u);
  EXPECT_EQ(sequence.receive(70000 & 0xffff), 70000u);
  EXPECT_EQ(sequence.to_client(70000), 70000u);
}

TEST(Sequence, TheClientDoesNotCountWhatIsInjected) {
  Sequence sequence;
  EXPECT_EQ(sequence.pass(), 1u);
  EXPECT_EQ(sequence.inject(), 2u);
  EXPECT_EQ(sequence.inject(), 3u);
  EXPECT_EQ(sequence.pass(), 4u);
  EXPECT_EQ(sequence.to_client(1), 1u);
  EXPECT_EQ(sequence.to_client(2), 1u);
  EXPECT_EQ(sequence.to_client(3), 1u);
  EXPECT_EQ(sequence.to_client(4), 2u);
  sequence.receive(4);
  EXPECT_EQ(sequence.to_client(4), 2u);
  EXPECT_EQ(sequence.seen_by_client(), 2u);
}

TEST(Sequence, ANumberThatWasNotSentTeachesNothing) {
  Sequence sequence;
  sequence.pass();
  EXPECT_EQ(sequence.receive(1), 1u);
  EXPECT_EQ(sequence.receive(500), 1u);
  sequence.pass();
  EXPECT_EQ(sequence.receive(2), 2u);
}

TEST(Sequence, IsRightForAnyMixture) {
  std::mt19937 random(20261125);
  Sequence sequence;
  std::map<uint64_t, uint64_t> client_of;  // of the requests that the client made
  uint64_t sent = 0, client = 0, told = 0;
  for (int i = 0; i < 300000; ++i) {
    const bool injected = random() % 4 == 0;
    sent = injected ? sequence.inject() : sequence.pass();
    if (!injected) ++client;
    client_of[sent] = client;
    if (random() % 8 || sent == told) continue;
    told += 1 + random() % (sent - told);
    ASSERT_EQ(sequence.receive(static_cast<uint16_t>(told)), told);
    ASSERT_EQ(sequence.to_client(told), client_of[told]);
    ASSERT_EQ(sequence.seen_by_client(), client_of[told]);
  }
}

}  // namespace
}  // namespace v3d::xproxy
