#include "daemon/predictor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <utility>

namespace v3d::daemon {
namespace {

class PredictorTest : public testing::Test {
 protected:
  PredictorTest() : predictor_(std::make_unique<Predictor>()) {}
  ~PredictorTest() override { open(); }

  /// A job whose prediction is made once the gate is open, on the predictor's thread alone.
  device::JobResult gated(uint64_t bytes = 0) {
    device::JobResult result;
    result.recorded_bytes = bytes;
    result.later = [this, test = std::this_thread::get_id()](device::JobResult&) {
      EXPECT_NE(std::this_thread::get_id(), test);
      ++begun_;
      opened_.wait();
      ++made_;
    };
    return result;
  }
  /// Whether take() makes the prediction of such a job itself.
  bool makes_at_once(uint64_t bytes = 0) {
    auto made = std::make_shared<std::atomic<bool>>(false);
    device::JobResult result;
    result.recorded_bytes = bytes;
    result.later = [made](device::JobResult&) { *made = true; };
    predictor_->take(std::move(result));
    return *made;
  }
  void open() {
    if (!std::exchange(is_open_, true)) gate_.set_value();
  }
  void wait_for(const std::atomic<int>& count, int value) {
    while (count < value) std::this_thread::yield();
  }

  std::promise<void> gate_;
  std::shared_future<void> opened_ = gate_.get_future();
  bool is_open_ = false;
  std::atomic<int> begun_{0}, made_{0};
  std::unique_ptr<Predictor> predictor_;  // before the others: its thread uses them
};

TEST_F(PredictorTest, NobodyWaitsForIt) {
  predictor_->take(gated());
  predictor_->take(gated());
  EXPECT_EQ(made_, 0);
  open();
  wait_for(made_, 2);
}

TEST_F(PredictorTest, AJobWithNothingToPredictIsNothing) { predictor_->take({}); }

TEST_F(PredictorTest, WhoIsOneTooManyMakesItsOwn) {
  for (size_t i = 0; i < Predictor::kMostJobs; ++i) predictor_->take(gated());
  EXPECT_TRUE(makes_at_once());
  open();
  wait_for(made_, Predictor::kMostJobs);
}

TEST_F(PredictorTest, SoDoesWhoIsTooLarge) {
  EXPECT_TRUE(makes_at_once(Predictor::kMostBytes + 1));
  EXPECT_TRUE(makes_at_once(~uint64_t{0}));
  predictor_->take(gated(Predictor::kMostBytes - 10));
  EXPECT_TRUE(makes_at_once(11));
  predictor_->take(gated(10));
  EXPECT_TRUE(makes_at_once(1));
  open();
  wait_for(made_, 2);
  while (makes_at_once(Predictor::kMostBytes)) std::this_thread::yield();  // there is room again
}

TEST_F(PredictorTest, WhatWaitsAtTheEndIsDropped) {
  predictor_->take(gated());
  predictor_->take(gated());
  wait_for(begun_, 1);
  auto end = std::async(std::launch::async, [this] { predictor_.reset(); });
  EXPECT_EQ(end.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  open();
  end.wait();
  EXPECT_LE(made_, 2);
  EXPECT_GE(made_, 1);
}

}  // namespace
}  // namespace v3d::daemon
