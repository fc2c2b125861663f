#include "gpu/csd/qpu_slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace v3d::csd {
namespace {

std::vector<uint32_t> take(QpuSlots& slots, int count) {
  std::vector<uint32_t> taken;
  for (int i = 0; i < count; ++i) taken.push_back(slots.take());
  return taken;
}

TEST(QpuSlots, EveryQpuOnceBeforeAnyTwice) {
  QpuSlots slots(*chip::find_profile("rpi5"), false);
  EXPECT_EQ(slots.capacity(), 24u);
  std::vector<uint32_t> expected;
  for (uint32_t thread : {0u, 2u})
    for (uint32_t qpu = 0; qpu < 12; ++qpu) expected.push_back(qpu << 2 | thread);
  EXPECT_EQ(take(slots, 24), expected);
}

TEST(QpuSlots, FourThreadsUseAllValuesBelowFourTimesTheQpus) {
  for (const char* name : {"rpi5", "rpi5-16", "rpi4"}) {
    const chip::Profile& profile = *chip::find_profile(name);
    QpuSlots slots(profile, true);
    ASSERT_EQ(slots.capacity(), 4u * static_cast<uint32_t>(profile.qpu_count()));
    std::vector<bool> seen(slots.capacity());
    for (uint32_t tidx : take(slots, static_cast<int>(slots.capacity()))) {
      ASSERT_LT(tidx, seen.size());
      ASSERT_FALSE(seen[tidx]);
      seen[tidx] = true;
    }
  }
}

TEST(QpuSlots, AFreedThreadIsTakenAgain) {
  QpuSlots slots(*chip::find_profile("rpi5"), false);
  take(slots, 24);
  slots.give_back(5 << 2 | 2);
  EXPECT_EQ(slots.occupied(), 23u);
  EXPECT_EQ(slots.take(), 5u << 2 | 2);
  slots.give_back(7 << 2);
  slots.give_back(3 << 2);
  slots.give_back(7 << 2 | 2);
  EXPECT_EQ(slots.take(), 7u << 2) << "the emptiest QPU first";
}

TEST(QpuSlots, TheOrderIsKnownBeforehand) {
  chip::Profile rpi4 = chip::default_profile();
  rpi4.generation = chip::Generation::k42;
  rpi4.slices = 2;
  for (const chip::Profile& profile : {chip::default_profile(), *chip::find_profile("rpi5-16"), rpi4})
    for (const bool four_threads : {false, true}) {
      QpuSlots slots(profile, four_threads);
      for (uint32_t n = 0; n < slots.capacity(); ++n) {
        const uint32_t expected = slots.nth(n);
        ASSERT_EQ(slots.take(), expected) << n;
      }
    }
}

TEST(QpuSlots, AThreadOfTheCallersChoiceIsNotTakenAgain) {
  QpuSlots slots(*chip::find_profile("rpi5"), false);
  slots.take(0);
  slots.take(2 << 2 | 2);
  EXPECT_EQ(slots.occupied(), 2u);
  const std::vector<uint32_t> rest = take(slots, 22);
  EXPECT_EQ(rest.front(), 1u << 2);
  EXPECT_EQ(std::count(rest.begin(), rest.end(), 2u << 2 | 2), 0);
}

TEST(QpuSlots, SlicesTakeTurnsOn42) {
  QpuSlots slots(*chip::find_profile("rpi4"), false);
  std::vector<uint32_t> qpus;
  for (uint32_t tidx : take(slots, 8)) qpus.push_back(tidx >> 2);
  EXPECT_EQ(qpus, (std::vector<uint32_t>{0, 4, 1, 5, 2, 6, 3, 7}));
}

}  // namespace
}  // namespace v3d::csd
