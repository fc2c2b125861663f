#include "tools/xproxy/placements.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace v3d::xproxy {
namespace {

constexpr int kOwn = 0, kClient = 1;

Placement of_width(int width) { return {0, 0, static_cast<uint16_t>(width), 1}; }

TEST(Placements, FirstIsKnownToAll) {
  Placements placements(&kClient, of_width(24));
  EXPECT_FALSE(placements.tell(&kOwn, of_width(24)));
  EXPECT_FALSE(placements.tell(&kClient, of_width(24)));
}

TEST(Placements, WhoIsBehindTellsNothingNew) {
  Placements placements(&kClient, of_width(24));
  EXPECT_TRUE(placements.tell(&kClient, of_width(25)));
  EXPECT_FALSE(placements.tell(&kOwn, of_width(24)));
  EXPECT_FALSE(placements.tell(&kOwn, of_width(25)));
  EXPECT_TRUE(placements.tell(&kOwn, of_width(24)));
  EXPECT_FALSE(placements.tell(&kClient, of_width(24)));
}

TEST(Placements, ChangesOfRankAreNoNews) {
  Placements placements(&kClient, of_width(24));
  EXPECT_FALSE(placements.tell(&kOwn, of_width(24)));
  EXPECT_TRUE(placements.tell(&kClient, of_width(25)));
  EXPECT_FALSE(placements.tell(&kOwn, of_width(24)));
  EXPECT_FALSE(placements.tell(&kOwn, of_width(25)));
  EXPECT_FALSE(placements.tell(&kOwn, of_width(25)));
}

TEST(Placements, WhoComesLateCatchesUp) {
  Placements placements(&kOwn, of_width(0));
  for (int width = 1; width < 1000; ++width) EXPECT_TRUE(placements.tell(&kOwn, of_width(width)));
  EXPECT_FALSE(placements.tell(&kClient, of_width(999)));
  EXPECT_TRUE(placements.tell(&kClient, of_width(1000)));
}

// Connections that hear of the same changes at any speed: each change is news once, in order.
TEST(Placements, OrderOfChangesIsKept) {
  std::mt19937 random(5);
  for (int run = 0; run < 200; ++run) {
    std::vector<Placement> changes;
    for (int i = 0; i < 40; ++i) {
      const Placement next = of_width(static_cast<int>(random() % 3));
      if (changes.empty() || !(changes.back() == next)) changes.push_back(next);
    }
    Placements placements(&kClient, changes[0]);
    std::vector<Placement> news{changes[0]};
    size_t heard[2] = {0, 0};
    while (heard[0] < changes.size() || heard[1] < changes.size()) {
      const size_t who = random() % 2;
      if (heard[who] == changes.size()) continue;
      const Placement& change = changes[heard[who]++];
      if (placements.tell(who == 0 ? &kOwn : &kClient, change)) news.push_back(change);
    }
    EXPECT_EQ(news, changes);
  }
}

}  // namespace
}  // namespace v3d::xproxy
