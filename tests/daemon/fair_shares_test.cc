// Who of those that compete has had least.
#include "daemon/fair_shares.h"

#include <gtest/gtest.h>

namespace v3d::daemon {
namespace {

void enter(FairShares& shares, uint64_t key) {
  shares.make_place(key);
  shares.enter(key);
}

TEST(FairShares, NewcomersAreServedSoon) {
  FairShares shares(10);
  enter(shares, 1);
  shares.charge(1, 1000, 1);
  shares.advance_to(shares.clock(1));  // the only one that competes
  EXPECT_LT(shares.clock(2), shares.clock(1));
  EXPECT_GE(shares.clock(2), shares.clock(1) - 10);  // no more than that
}

TEST(FairShares, ThoseWhoWereAwayHaveSavedNothingUp) {
  FairShares shares(10);
  enter(shares, 1);
  enter(shares, 2);
  shares.charge(1, 5, 1);
  shares.charge(2, 100'000, 1);
  shares.advance_to(shares.clock(2));  // the only one that competes
  EXPECT_GE(shares.clock(1), shares.clock(2) - 10);
}

TEST(FairShares, AFloodOfNewcomersPassesNobodyForEver) {
  FairShares shares(1000);
  enter(shares, 1);
  shares.charge(1, 800, 1);
  uint64_t newcomer = 2;
  const auto is_ahead = [&] { return shares.clock(newcomer) < shares.clock(1); };
  EXPECT_TRUE(is_ahead());
  for (; is_ahead() && newcomer < 1000; ++newcomer) {
    enter(shares, newcomer);
    shares.charge(newcomer, 100, 2);
  }
  EXPECT_LT(newcomer, 30u);
}

}  // namespace
}  // namespace v3d::daemon
