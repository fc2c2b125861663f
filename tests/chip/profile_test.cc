// What Mesa and the kernel's debugfs read from identity registers (Mesa v3d_device_info.c) is what the
// profile says: drm-abi.md 2.8.
#include "gpu/chip/profile.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "gpu/chip/board.h"
#include "gpu/chip/generation.h"

namespace v3d::chip {
namespace {

uint32_t bits(uint32_t word, int first, int count) { return (word >> first) & ((1u << count) - 1); }

class ProfileTest : public ::testing::TestWithParam<Profile> {};
INSTANTIATE_TEST_SUITE_P(Boards, ProfileTest, ::testing::ValuesIn(profiles().begin(), profiles().end()),
                         [](const auto& instance) {
                           std::string name = instance.param.name;
                           for (char& c : name)
                             if (c == '-' || c == '.') c = '_';
                           return name;
                         });

TEST_P(ProfileTest, RegistersTellVersionAndRevision) {
  const Profile& p = GetParam();
  const uint32_t major = bits(p.core_ident0, 24, 8), minor = bits(p.core_ident1, 0, 4);
  EXPECT_EQ(static_cast<int>(major * 10 + minor), version_number(p.generation));
  EXPECT_EQ(bits(p.core_ident0, 0, 24), 0x443356u) << "V3D in ASCII";
  if (p.generation == Generation::k21) {
    EXPECT_EQ(p.hub_ident1 | p.hub_ident2 | p.hub_ident3 | p.uifcfg, 0u) << "it has no hub";
    return;
  }
  EXPECT_EQ(bits(p.hub_ident1, 0, 4) * 10 + bits(p.hub_ident1, 4, 4), major * 10 + minor);
  EXPECT_EQ(static_cast<int>(bits(p.hub_ident3, 8, 8)), p.revision);
}

TEST_P(ProfileTest, RegistersTellTheNumberOfQpus) {
  const Profile& p = GetParam();
  EXPECT_EQ(static_cast<int>(bits(p.core_ident1, 4, 4)), p.slices);
  EXPECT_EQ(static_cast<int>(bits(p.core_ident1, 8, 4)), p.qpus_per_slice);
  if (p.generation == Generation::k21)
    EXPECT_EQ(bits(p.core_ident1, 28, 4), 12u) << "KiB of VPM";
  else
    EXPECT_EQ(bits(p.core_ident1, 28, 4) * 8, 64u) << "KiB of VPM";
}

TEST_P(ProfileTest, IsFoundByItsName) { EXPECT_EQ(find_profile(GetParam().name)->name, GetParam().name); }

TEST(Profiles, OfThePi4AndTheNewestPi5DifferWhereTheDriversDo) {
  const Profile &pi4 = *find_profile("rpi4"), &d0 = *find_profile("rpi5-d0"), &pi5 = default_profile();
  EXPECT_EQ(pi4.qpu_count(), 8);
  EXPECT_FALSE(pi4.csd_batches_exact());
  EXPECT_TRUE(pi5.csd_batches_exact());
  EXPECT_EQ(pi4.coord_fraction_bits(), 8);
  EXPECT_EQ(pi5.coord_fraction_bits(), 6);
  EXPECT_TRUE(d0.has_draw_index());
  EXPECT_FALSE(pi5.has_draw_index());
  EXPECT_FALSE(pi4.has_draw_index());
}

TEST(Profiles, OfVideoCoreIvHaveThreeSlicesAndTheClocksOfTheirBoards) {
  constexpr std::pair<const char*, int> kClocks[] = {
      {"rpi0", 300}, {"rpi1", 250}, {"rpi2", 250}, {"rpi3", 400}};
  for (const auto& [name, mhz] : kClocks) {
    const Profile* const p = find_profile(name);
    ASSERT_NE(p, nullptr) << name;
    EXPECT_EQ(p->clock_mhz, mhz) << name;
    EXPECT_EQ(p->qpu_count(), 12) << name;
    EXPECT_EQ(bits(p->core_ident1, 4, 4) * bits(p->core_ident1, 12, 4), 6u) << "TMUs of " << name;
    EXPECT_EQ(p->coord_fraction_bits(), 4) << name;
    EXPECT_FALSE(p->pipeline().has_tfu || p->pipeline().has_compute_jobs) << name;
    EXPECT_FALSE(p->has_draw_index() || p->csd_batches_exact()) << name;
  }
  EXPECT_EQ(find_profile("rpi3")->buffer_memory_mib, 256);
  EXPECT_EQ(find_profile("rpi0")->buffer_memory_mib, 64);
}

// What Xs, Ys of 16 bits with four after the point can say, and nothing more.
TEST(Profiles, OfVideoCoreIvReachAsFarAsTheirCoordinates) {
  const Profile& p = *find_profile("rpi3");
  EXPECT_EQ(p.pipeline().max_view_coordinate, 0x7fff << (6 - p.coord_fraction_bits()));
  EXPECT_GT(default_profile().pipeline().max_view_coordinate, p.pipeline().max_view_coordinate);
}

TEST(Generations, AreKnownByTheirNumbers) {
  for (const Generation g : kGenerations) {
    EXPECT_EQ(generation_of_version(version_number(g)), g);
    EXPECT_EQ(std::to_string(version_number(g)).insert(1, "."), version_text(g));
  }
  EXPECT_EQ(generation_of_version(26), std::nullopt);
  EXPECT_EQ(generation_of_version(0), std::nullopt);
}

TEST(Boards, OfVideoCoreIvAreWhatTheirRevisionsSay) {
  for (const Board& board : {kRpi0, kRpi1, kRpi2, kRpi3}) {
    const std::string processors[] = {"brcm,bcm2835", "brcm,bcm2836", "brcm,bcm2837"};
    EXPECT_EQ(board.soc->compatible, processors[board.revision >> 12 & 15]) << board.name;
    EXPECT_EQ(board.memory_mib(), board.soc == &kBcm2835 ? 512u : 1024u) << board.name;
  }
}

// 7.1.5 is before Mesa's "7.1.6 and later"; C1 is another name of the default.
TEST(Profiles, OfSteppingsOfThePi5DifferInTheirRevision) {
  const Profile& first = *find_profile("rpi5-7.1.5");
  EXPECT_FALSE(first.csd_batches_exact());
  EXPECT_FALSE(first.has_draw_index());
  EXPECT_TRUE(first.csd_fills_in_order());
  EXPECT_EQ(first.core_ident1, default_profile().core_ident1);
  EXPECT_EQ(find_profile("rpi5-c1")->revision, default_profile().revision);
  EXPECT_EQ(find_profile("rpi5-c1")->hub_ident3, default_profile().hub_ident3);
}

}  // namespace
}  // namespace v3d::chip
