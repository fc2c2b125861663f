// What a job that runs is told of itself.
#include "gpu/base/job_context.h"

#include <gtest/gtest.h>

namespace v3d {
namespace {

TEST(ListProgress, InstructionsCountUntilTheListMoves) {
  ListProgress progress(100);
  for (int round = 0; round < 5; ++round) {
    EXPECT_TRUE(progress.spend(60));
    EXPECT_TRUE(progress.spend(39));
    progress.move();
  }
  EXPECT_TRUE(progress.spend(99));
  EXPECT_FALSE(progress.spend(1));
  EXPECT_FALSE(progress.spend(1));  // it stays so
}

TEST(JobControl, OneThatInsistsIsNotHeld) {
  struct Held : JobControl {
    Held() { held_ = attention_ = true; }
    bool attend() override { return true; }
  } control;
  EXPECT_TRUE(control.held());
  EXPECT_TRUE(control.checkpoint());
  control.insist();
  EXPECT_FALSE(control.held());
  EXPECT_FALSE(control.checkpoint());
}

}  // namespace
}  // namespace v3d
