#include "gpu/csd/batch_generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "gpu/chip/profile.h"

namespace v3d::csd {
namespace {

struct Expected {
  std::array<uint32_t, 16> word0, word1;
  uint32_t live;
};

/// The rule of compute-and-timing.md 2.1, word for word; all supergroups in slot 0.
std::vector<Expected> by_the_book(const std::array<uint32_t, 7>& cfg, int revision) {
  const uint32_t n[3] = {cfg[0] >> 16 ? cfg[0] >> 16 : 65536, cfg[1] >> 16 ? cfg[1] >> 16 : 65536,
                         cfg[2] >> 16 ? cfg[2] >> 16 : 65536};
  const uint32_t s = cfg[3] & 255 ? cfg[3] & 255 : 256, w_max = cfg[3] >> 8 & 15 ? cfg[3] >> 8 & 15 : 16;
  const uint32_t p = (cfg[3] >> 12 & 255) + 1, batches = cfg[4] + (revision < 6);
  uint32_t lb = 6;
  while ((1u << lb) < s) ++lb;
  uint32_t x = 0, y = 0, z = 0, l = 0, w = 0, k = 0;
  std::vector<Expected> all;
  for (uint32_t b = 0; b < batches; ++b) {
    if (k == 0) w = 0;
    bool closed = false;
    Expected e{};
    for (uint32_t lane = 0; lane < 16 && !closed; ++lane) {
      e.live |= 1u << lane;
      e.word0[lane] = y << 16 | x;
      e.word1[lane] = (z & 0xffff) | (l << (16 - lb) | w) << 16;
      if (++l != s) continue;
      l = 0;
      const bool last = x == n[0] - 1 && y == n[1] - 1 && z == n[2] - 1;
      if (++x == n[0]) {
        x = 0;
        if (++y == n[1]) y = 0, ++z;
      }
      if (++w == w_max || last) closed = true;
    }
    if (w == w_max) w = 0;
    if (++k == p) k = 0;
    all.push_back(e);
  }
  return all;
}

std::array<uint32_t, 7> registers(std::array<uint32_t, 3> grid, uint32_t wg_size, uint32_t wgs,
                                  uint32_t batches, uint32_t total) {
  return {grid[0] << 16,
          grid[1] << 16,
          grid[2] << 16,
          (wg_size & 255) | (wgs & 15) << 8 | ((batches - 1) & 255) << 12,
          total,
          0x10000,
          0};
}

std::vector<Batch> generate(const std::array<uint32_t, 7>& cfg, uint32_t slot = 0) {
  BatchGenerator generator(decode(cfg, chip::default_profile()));
  std::vector<Batch> all;
  while (!generator.done()) generator.next(slot, &all.emplace_back());
  return all;
}

void expect_equal(const std::vector<Batch>& actual, const std::vector<Expected>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t b = 0; b < expected.size(); ++b) {
    ASSERT_EQ(actual[b].live, expected[b].live) << "batch " << b;
    for (int lane = 0; lane < 16; ++lane) {
      if (!(expected[b].live >> lane & 1)) continue;
      ASSERT_EQ(actual[b].workgroup_xy[lane], expected[b].word0[static_cast<size_t>(lane)])
          << b << "," << lane;
      ASSERT_EQ(actual[b].workgroup_z_lii[lane], expected[b].word1[static_cast<size_t>(lane)])
          << b << "," << lane;
    }
  }
}

TEST(Configuration, ZeroFieldsMeanTheirMaximum) {
  const Configuration c = decode({0, 0, 0, 0, 5, 0x12345677, 0x1003}, chip::default_profile());
  EXPECT_EQ(c.wg_count, (std::array<uint32_t, 3>{65536, 65536, 65536}));
  EXPECT_EQ(c.wg_size, 256u);
  EXPECT_EQ(c.wgs_per_sg, 16u);
  EXPECT_EQ(c.batches_per_sg, 1u);
  EXPECT_EQ(c.batches, 5u);
  EXPECT_EQ(c.code, 0x12345670u);
  EXPECT_TRUE(c.four_threads);
  EXPECT_TRUE(c.single_segment);
  EXPECT_EQ(c.uniforms, 0x1000u);
}

TEST(Configuration, OlderRevisionsGiveOneBatchLess) {
  chip::Profile old = chip::default_profile();
  old.revision = 5;
  EXPECT_EQ(decode({0, 0, 0, 0, 0xffffffff, 0, 0}, old).batches, uint64_t{1} << 32);
  EXPECT_EQ(decode({0, 0, 0, 0, 0xffffffff, 0, 0}, chip::default_profile()).batches, 0xffffffffu);
}

TEST(BatchGenerator, FollowsTheRuleForAnyConfiguration) {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::array<uint32_t, 7> cfg{};
    for (size_t axis = 0; axis < 3; ++axis) cfg[axis] = random() % 5 << 16;
    const uint32_t size = random() % 4 == 0 ? random() % 17 * 16 : random() % 257;
    cfg[3] = (size & 255) | (random() & 15) << 8 | random() % 40 << 12;
    cfg[4] = random() % 60;
    expect_equal(generate(cfg), by_the_book(cfg, 7));
    if (HasFatalFailure()) FAIL() << "round " << round;
  }
}

TEST(BatchGenerator, RangesOfSupergroupsMakeUpARegularDispatch) {
  std::mt19937 random(5);
  int regular = 0;
  for (int round = 0; round < 3000; ++round) {
    const auto up_to = [&](uint32_t most) { return static_cast<uint32_t>(1 + random() % most); };
    const uint32_t size = up_to(256), wgs = size % 16 == 0 ? 1 : up_to(16);
    const auto cfg = registers({up_to(5), up_to(5), up_to(5)}, size, wgs, (size * wgs + 15) / 16, up_to(99));
    const Configuration c = decode(cfg, chip::default_profile());
    if (!c.is_regular()) continue;
    ++regular;
    std::vector<Batch> all;
    for (uint64_t begin = 0, end; begin < c.supergroups(); begin = end) {
      end = std::min<uint64_t>(begin + up_to(5), c.supergroups());
      BatchGenerator generator(c, {begin, end});
      while (!generator.done()) generator.next(0, &all.emplace_back());
    }
    expect_equal(all, by_the_book(cfg, 7));
    if (HasFatalFailure()) FAIL() << "round " << round;
  }
  EXPECT_GT(regular, 500);
}

TEST(Configuration, IsRegularAsDriversMakeIt) {
  const auto is_regular = [](const std::array<uint32_t, 7>& cfg) {
    return decode(cfg, chip::default_profile()).is_regular();
  };
  EXPECT_TRUE(is_regular(registers({10, 1, 1}, 64, 1, 4, 40)));
  EXPECT_TRUE(is_regular(registers({1, 1, 1}, 16, 1, 1, 4096)));   // Z runs past the grid
  EXPECT_TRUE(is_regular(registers({7, 1, 1}, 24, 2, 3, 11)));     // the last supergroup has one workgroup
  EXPECT_FALSE(is_regular(registers({7, 1, 1}, 24, 2, 3, 12)));    // ... and no more than two batches
  EXPECT_FALSE(is_regular(registers({24, 1, 1}, 16, 8, 24, 24)));  // py-videocore7 test_barrier
  EXPECT_FALSE(is_regular(registers({8, 1, 1}, 16, 8, 8, 8)));
  EXPECT_FALSE(is_regular(registers({10, 1, 1}, 64, 1, 5, 40)));
}

TEST(BatchGenerator, WorkgroupsShareABatchAndPaddingLanesAreDead) {
  // 17 workgroups of one invocation, 16 to a supergroup: one full batch, and one with a single lane.
  const std::vector<Batch> all = generate(registers({17, 1, 1}, 1, 16, 1, 2));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].live, 0xffff);
  for (uint32_t lane = 0; lane < 16; ++lane) {
    EXPECT_EQ(all[0].workgroup_xy[lane], lane);
    EXPECT_EQ(all[0].workgroup_z_lii[lane] >> 16, lane);  // wg_in_mem, unmasked as Mesa reads it for 1x1x1
  }
  EXPECT_EQ(all[1].live, 1);
  EXPECT_EQ(all[1].workgroup_xy[0], 16u);
}

TEST(BatchGenerator, SizeOfTheLocalIndexField) {
  for (const auto& [size, bits] :
       std::map<uint32_t, uint32_t>{{1, 6}, {64, 6}, {65, 7}, {128, 7}, {129, 8}, {256, 8}}) {
    const std::vector<Batch> all =
        generate(registers({4, 1, 1}, size, 1, (size + 15) / 16, (size + 15) / 16 * 4));
    const Batch& last = all[(size + 15) / 16 - 1];
    const int lane = static_cast<int>((size - 1) % 16);
    EXPECT_EQ(last.workgroup_z_lii[lane] >> (32 - bits), size - 1);
    EXPECT_EQ(last.live, lane == 15 ? 0xffff : (2 << lane) - 1);
  }
}

TEST(BatchGenerator, SlotsSelectCopiesOfSharedMemory) {
  const std::vector<Batch> all = generate(registers({4, 1, 1}, 8, 4, 2, 2), 3);
  EXPECT_EQ(all[0].workgroup_z_lii[0] >> 16 & 0x3ff, 12u);
  EXPECT_EQ(all[1].workgroup_z_lii[15] >> 16 & 0x3ff, 15u);
}

// The grid of py-videocore7's sgemm: 4096 batches on 1x1x16; Z counts on beyond the grid.
TEST(BatchGenerator, BatchCountOutranksTheGrid) {
  const std::vector<Batch> all = generate(registers({1, 1, 16}, 16, 8, 24, 4096));
  ASSERT_EQ(all.size(), 4096u);
  for (uint32_t b = 0; b < 4096; ++b) {
    ASSERT_EQ(all[b].live, 0xffff);
    ASSERT_EQ(all[b].workgroup_z_lii[5] & 0xffff, b);
    ASSERT_EQ(all[b].workgroup_z_lii[5] >> 26, 5u);
  }
}

TEST(BatchGenerator, OffsetsMoveTheIds) {
  std::array<uint32_t, 7> cfg = registers({2, 2, 2}, 16, 1, 1, 8);
  cfg[0] |= 0xffff, cfg[1] |= 7, cfg[2] |= 9;
  const std::vector<Batch> all = generate(cfg);
  EXPECT_EQ(all[0].workgroup_xy[0], 7u << 16 | 0xffff);
  EXPECT_EQ(all[1].workgroup_xy[0], 7u << 16 | 0);
  EXPECT_EQ(all[7].workgroup_xy[0], 8u << 16 | 0);
  EXPECT_EQ(all[7].workgroup_z_lii[0] & 0xffff, 10u);
}

/// The packing of Mesa's v3d_csd_choose_workgroups_per_supergroup without barriers or subgroup operations.
std::array<uint32_t, 7> mesa_registers(std::array<uint32_t, 3> grid, uint32_t wg_size) {
  const uint32_t total = grid[0] * grid[1] * grid[2];
  uint32_t best = 1, fewest_unused = 16;
  for (uint32_t k = 1; k <= 16 && k <= total; ++k) {
    const uint32_t unused = (16 - k * wg_size % 16) % 16;
    if (unused < fewest_unused) fewest_unused = unused, best = k;
    if (unused == 0) break;
  }
  const uint32_t per_sg = (best * wg_size + 15) / 16, full = total / best, rest = total % best;
  return registers(grid, wg_size, best, per_sg, full * per_sg + (rest * wg_size + 15) / 16);
}

TEST(BatchGenerator, EveryInvocationOfAMesaGridRunsOnce) {
  for (uint32_t wg_size : {1u, 2u, 3u, 7u, 8u, 15u, 16u, 18u, 33u, 64u, 100u, 128u, 200u, 250u, 256u}) {
    for (const std::array<uint32_t, 3> grid :
         {std::array<uint32_t, 3>{1, 1, 1}, {17, 1, 1}, {3, 5, 2}, {1, 1, 33}}) {
      const std::array<uint32_t, 7> cfg = mesa_registers(grid, wg_size);
      const uint32_t bits = decode(cfg, chip::default_profile()).local_index_bits();
      std::set<std::tuple<uint32_t, uint32_t, uint32_t>> seen;
      for (const Batch& batch : generate(cfg)) {
        for (int lane = 0; lane < 16; ++lane) {
          if (!(batch.live >> lane & 1)) continue;
          const uint32_t xy = batch.workgroup_xy[lane], word1 = batch.workgroup_z_lii[lane];
          ASSERT_LT(xy & 0xffff, grid[0]);
          ASSERT_LT(xy >> 16, grid[1]);
          ASSERT_LT(word1 & 0xffff, grid[2]);
          ASSERT_LT(word1 >> (32 - bits), wg_size);
          ASSERT_TRUE(seen.insert({xy, word1 & 0xffff, word1 >> (32 - bits)}).second);
        }
      }
      ASSERT_EQ(seen.size(), size_t{grid[0]} * grid[1] * grid[2] * wg_size) << "workgroups of " << wg_size;
    }
  }
}

}  // namespace
}  // namespace v3d::csd
