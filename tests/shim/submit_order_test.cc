// Who waits goes on after those who submit.
#include "shim/link/submit_order.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

namespace v3d::shim {
namespace {

using namespace std::chrono_literals;

/// Whether a thread that waited for `waited` goes on while this one submits with `signals`.
bool goes_on(SyncobjSet signals, SyncobjSet waited) {
  std::atomic<bool> is_over{false};
  std::optional<SubmitOrder::Scope> scope(std::in_place);
  scope->begin(signals);
  std::thread waits([&] {
    SubmitOrder::let_others_go_on(waited);
    is_over = true;
  });
  for (int n = 0; n < 20 && !is_over; ++n) std::this_thread::sleep_for(1ms);
  const bool went_on = is_over;
  scope.reset();
  waits.join();
  return went_on;
}

TEST(SubmitOrder, WaitsForTheAnswersOfOthers) {
  EXPECT_FALSE(goes_on(set_of(3) | set_of(4), set_of(4)));
  EXPECT_FALSE(goes_on(set_of(3), kAnySyncobj));
  EXPECT_TRUE(goes_on(set_of(3), set_of(4)));
  EXPECT_TRUE(goes_on(0, kAnySyncobj));
}

TEST(SubmitOrder, GoesOnWithoutThoseThatAreGone) {
  SubmitOrder::Scope never_ends;
  never_ends.begin(set_of(1));
  SubmitOrder::forget();
  const auto begin = std::chrono::steady_clock::now();
  std::thread waits([] { SubmitOrder::let_others_go_on(set_of(1)); });
  waits.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s);  // as long as it would wait for one that is there
}

}  // namespace
}  // namespace v3d::shim
