#include "daemon/debug_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/base/log.h"

namespace v3d::daemon {
namespace {

class DebugWatchTest : public testing::Test {
 protected:
  ~DebugWatchTest() override { g_debug_mask = 0; }
};

TEST_F(DebugWatchTest, FollowsDebugCategories) {
  g_debug_mask = 0;
  EXPECT_EQ(debug_watch(chip::Generation::k71, {}), nullptr);
  for (const char* category : {"qpu", "hazard", "strict"}) {
    g_debug_mask = 0;
    ASSERT_TRUE(set_debug(category).ok());
    EXPECT_NE(debug_watch(chip::Generation::k71, {}), nullptr) << category;
  }
}

TEST_F(DebugWatchTest, NamesASelectionThatItDoesNotUnderstand) {
  ASSERT_TRUE(set_debug("qpu").ok());
  testing::internal::CaptureStderr();
  EXPECT_EQ(debug_watch(chip::Generation::k71, {.trace = "nonsense", .hazards = ""}), nullptr);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("V3DEMU_TRACE_QPU: trace selection: \"nonsense\""));
  g_debug_mask = 0;
  ASSERT_TRUE(set_debug("hazard").ok());
  testing::internal::CaptureStderr();
  EXPECT_EQ(debug_watch(chip::Generation::k71, {.trace = "", .hazards = "nonsense"}), nullptr);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("V3DEMU_HAZARDS: \"nonsense\" is no kind of hazard"));
}

}  // namespace
}  // namespace v3d::daemon
