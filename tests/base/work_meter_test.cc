#include "gpu/base/work_meter.h"

#include <gtest/gtest.h>

#include "tests/base/counting_control.h"

namespace v3d {
namespace {

class Meter : public testing::Test {
 protected:
  Meter() {
    job_.error = &error_;
    job_.cancel = &control_.cancelled();
    job_.control = &control_;
  }
  CountingControl control_;
  JobError error_;
  JobContext job_{};
  WorkMeter meter_{&job_};
};

TEST_F(Meter, LooksAtTheJobAfterASliceOfWork) {
  for (uint32_t n = 1; n < WorkMeter::kSlice; ++n) EXPECT_TRUE(meter_.charge(1));
  EXPECT_EQ(control_.looks(), 0u);
  EXPECT_TRUE(meter_.charge(1));
  EXPECT_EQ(control_.looks(), 1u);
  EXPECT_TRUE(meter_.charge(5 * WorkMeter::kSlice));
  EXPECT_EQ(control_.looks(), 2u);
}

TEST_F(Meter, TellsThatTheJobHasEnded) {
  control_.cancel_at(1);
  EXPECT_FALSE(meter_.charge(WorkMeter::kSlice));
  EXPECT_TRUE(meter_.ended());
  EXPECT_FALSE(meter_.charge(0));
  error_.set("wrong");
  WorkMeter other(&job_);
  EXPECT_FALSE(other.charge(WorkMeter::kSlice));
}

TEST_F(Meter, CountsFaultsOfItsThread) {
  t_fault_cost += WorkMeter::kSlice;
  EXPECT_TRUE(meter_.charge(0));
  EXPECT_EQ(control_.looks(), 1u);
  EXPECT_EQ(t_fault_cost, 0u);
}

TEST_F(Meter, ForgetsFaultsOfFormerJobs) {
  t_fault_cost += WorkMeter::kSlice;
  WorkMeter next(&job_);
  EXPECT_TRUE(next.charge(0));
  EXPECT_EQ(control_.looks(), 0u);
}

TEST_F(Meter, LeavesHowMuchWasDoneWithoutALook) {
  const uint32_t before = g_longest_charged.cost();
  meter_.charge(before + WorkMeter::kSlice);
  EXPECT_EQ(g_longest_charged.cost(), before + WorkMeter::kSlice);
  meter_.charge(WorkMeter::kSlice);
  EXPECT_EQ(g_longest_charged.cost(), before + WorkMeter::kSlice);
}

TEST(WorkMeterOfNobody, LooksAtNothing) {
  WorkMeter meter;
  EXPECT_TRUE(meter.charge(10 * WorkMeter::kSlice));
}

}  // namespace
}  // namespace v3d
