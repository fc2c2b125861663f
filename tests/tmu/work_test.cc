/// Lookups that take long look at their job.
#include <gtest/gtest.h>

#include "gpu/base/work_meter.h"
#include "tests/base/counting_control.h"
#include "tests/tmu/test_texture.h"

namespace v3d::tmu {
namespace {

constexpr uint32_t kAstc12x12 = 77;

class LookupWork : public testing::Test {
 protected:
  LookupWork() {
    job_.error = &error_;
    job_.cancel = &control_.cancelled();
    job_.control = &control_;
  }
  /// Sixteen probes in two levels of blocks of which hardly any two lanes have one in common.
  TextureLookup longest() {
    gpu_.randomize(8 << 20, 1);
    TestTexture texture(gpu_, {.type = kAstc12x12,
                               .cpp = 16,
                               .width = 6144,
                               .height = 6144,
                               .block_width = 12,
                               .block_height = 12,
                               .max_level = 10});
    texture.set_sampler({.anisotropy = true, .max_anisotropy = 3, .bias = -4});
    TextureLookup lookup = texture.lookup(Launcher::kS, kT);
    lookup.s =
        lanes_of([](int lane) { return 0.23f * static_cast<float>(lane >> 2) + (lane & 1 ? 0.05f : 0); });
    lookup.t =
        lanes_of([](int lane) { return 0.19f * static_cast<float>(lane >> 2) + (lane & 2 ? 5e-4f : 0); });
    return lookup;
  }

  GpuMemory gpu_;
  CountingControl control_;
  JobError error_;
  JobContext job_{};
};

TEST_F(LookupWork, ManyBlocksToDecodeAreManyLooks) {
  const TextureLookup lookup = longest();
  Unit unit(gpu_.memory(), chip::Generation::k71);
  unit.set_job(&job_);
  Lanes out[4];
  for (int n = 0; n < 50; ++n) unit.texture(lookup, out);
  EXPECT_GE(control_.looks(), 100u);  // twice a lookup, at least
}

TEST_F(LookupWork, PlainOnesAreFewLooks) {
  TestTexture texture(gpu_, {.width = 64, .height = 64});
  texture.set_sampler({});
  Unit unit(gpu_.memory(), chip::Generation::k71);
  unit.set_job(&job_);
  const TextureLookup lookup = texture.lookup(Launcher::kS, kT);
  Lanes out[4];
  for (int n = 0; n < 10'000; ++n) unit.texture(lookup, out);
  EXPECT_GE(control_.looks(), 10u);
  EXPECT_LT(control_.looks(), 500u);
}

TEST_F(LookupWork, GivesZerosWhenTheJobIsOver) {
  const TextureLookup lookup = longest();
  Unit unit(gpu_.memory(), chip::Generation::k71);
  unit.set_job(&job_);
  control_.cancel_at(1);
  Lanes out[4];
  for (int n = 0; n < 2; ++n) unit.texture(lookup, out);
  const uint64_t looks = control_.looks();
  for (Lanes& word : out) word = splat(~0u);
  int words = 0;
  for (int n = 0; n < 100; ++n) words = unit.texture(lookup, out);
  ASSERT_GT(words, 0);
  for (int w = 0; w < words; ++w) EXPECT_EQ(nonzero(out[w]), 0);
  EXPECT_LE(control_.looks(), looks + 100);
}

TEST_F(LookupWork, UnmappedPagesAreLooks) {
  Unit unit(gpu_.memory(), chip::Generation::k71);
  unit.set_job(&job_);
  GeneralLookup store;
  store.num_data = 1;
  Lanes out[4];
  for (uint32_t n = 0; n < 50; ++n) {
    store.address = splat(0x8000'0000u + (n << 20)) + (kLaneIndex << 14);
    unit.general(store, out);
  }
  EXPECT_EQ(gpu_.take_faults(), 50u * 16);
  static_assert(16 * kFaultCost >= WorkMeter::kSlice);
  EXPECT_GE(control_.looks(), 49u);  // the next lookup sees what one cost
}

}  // namespace
}  // namespace v3d::tmu
