#include "gpu/pse/varyings.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "gpu/base/arithmetic.h"

namespace v3d::pse {
namespace {

constexpr uint32_t kNumVaryings = 21;  // part of a group of 16 and of its half
constexpr uint32_t kWords = 4 + kMaxVaryings;

/// Any bits: numbers of all sizes, infinities, NaNs.
uint32_t any_word(std::mt19937& random) {
  constexpr uint32_t kSpecial[] = {0,          0x80000000, 0x7f800000, 0xff800000,
                                   0x7fc00001, 0xffc12345, 1,          0x7f7fffff};
  if (random() % 8 == 0) return kSpecial[random() % std::size(kSpecial)];
  return random() % 2 ? random() : std::bit_cast<uint32_t>(static_cast<float>(random() % 1000) / 7);
}

double gain(uint32_t from, uint32_t to, float factor) {
  return double{product(splat(std::bit_cast<float>(to) - std::bit_cast<float>(from)), splat(factor))[0]};
}

::testing::AssertionResult same(double a, double b) {
  if (std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << std::hex << std::bit_cast<uint64_t>(a) << " is not " << std::bit_cast<uint64_t>(b);
}

TEST(SetUpVaryings, EachComponentIsThePlaneOfItsWords) {
  std::mt19937 random(11);
  PreparedDraw draw;
  draw.num_varyings = kNumVaryings;
  for (int round = 0; round < 2000; ++round) {
    draw.flat = {static_cast<LaneMask>(random() & random()), static_cast<LaneMask>(random() & random())};
    draw.noperspective = {static_cast<LaneMask>(random()), static_cast<LaneMask>(random())};
    uint32_t words[3][kWords];
    VaryingSource source;
    source.corners = 1 + static_cast<int>(random() % 3);
    for (int k = 0; k < 3; ++k) {
      for (uint32_t& word : words[k]) word = any_word(random);
      source.vertex[k] = words[k < source.corners ? k : 0];
      source.r[k] = static_cast<float>(random() % 64) / 8;
    }
    source.provoking = words[random() % 3];
    source.spread.scale = 1.0 / (1 + random() % 4096);
    for (WeightPlane& plane : source.spread.plane)
      plane = {random() % 2 * -0.5 * random(), 64.0 * random() - 1e9, -64.0 * (random() % 99)};
    VaryingCoefficients to;
    set_up_varyings(draw, source, to);
    for (uint32_t i = 0; i < kNumVaryings; ++i) {
      const bool flat = (draw.flat[i / 16] >> (i % 16)) & 1,
                 linear = (draw.noperspective[i / 16] >> (i % 16)) & 1;
      const uint32_t word = 4 + i, u0 = source.vertex[0][word];
      double d[3] = {};
      for (int k = 1; k < source.corners && !flat; ++k)
        d[k] = gain(u0, source.vertex[k][word], linear ? 1.0f : source.r[k]);
      const LinearPlane wanted = make_plane(source.spread, 0, d[1], d[2]);
      EXPECT_TRUE(same(to.value[i], wanted.value)) << i;
      EXPECT_TRUE(same(to.step_x[i], wanted.step_x)) << i;
      EXPECT_TRUE(same(to.step_y[i], wanted.step_y)) << i;
      EXPECT_EQ(to.c[i], flat ? source.provoking[word] : u0) << i;
    }
  }
}

}  // namespace
}  // namespace v3d::pse
