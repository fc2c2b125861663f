// What the profile of the host's time says.
#include "daemon/host_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace v3d::daemon {
namespace {

using host_time::Block;
using host_time::Totals;
using testing::HasSubstr;
using testing::Not;

Totals totals() {
  Totals t;
  t.blocks[static_cast<size_t>(Block::kFragmentPrograms)] = 7'500'000;
  t.blocks[static_cast<size_t>(Block::kStores)] = 2'500'000;
  t.jobs[1] = 4;
  t.job_ns[1] = 6'000'000;
  t.programs[{"fragment", 0x1000}] = {
      .ns = 7'000'000, .batches = 1000, .instructions = 50'000, .interpreted = 50'000};
  t.programs[{"fragment", 0x2000}] = {
      .ns = 500'000, .batches = 100, .instructions = 500'000, .interpreted = 4'000};
  t.draws[{.vertex_program = 0x10, .fragment_program = 0x1000, .vertices = 36}] = {
      .bin_ns = 200'000, .render_ns = 8'000'000, .times = 2};
  return t;
}

TEST(HostProfile, TellsBlocksProgramsAndDraws) {
  const std::string text = host_profile_text(totals(), "an engine\n");
  EXPECT_THAT(text, HasSubstr("jobs: 4 render in 6.0 ms\nthreads: 10.0 ms in all\n"));
  EXPECT_THAT(text, testing::ContainsRegex("fragment programs +7.50 +75.0\n +tile stores +2.50 +25.0\n"));
  EXPECT_THAT(text, testing::ContainsRegex("fragment 0x00001000 +7.00 +70.0 +1000 +7000 +50000 +100.0%"));
  EXPECT_THAT(text, testing::ContainsRegex("36 +0x00000010 +0x00001000 +2 +100.0 +4000.0\n"));
  EXPECT_THAT(text, testing::EndsWith("\nan engine\n"));
}

TEST(HostProfile, NamesWhatIsInterpretedAndWhy) {
  Totals t = totals();
  t.not_compiled[0x1000] = "too large";
  t.programs[{"coordinate", 0x10}] = {.ns = 1, .batches = 1, .instructions = 9, .interpreted = 9};
  const std::string text = host_profile_text(t, "");
  EXPECT_THAT(text,
              HasSubstr("interpreted\n  fragment 0x00001000: 50000 of 50000 instructions (too large)\n"));
  EXPECT_THAT(text,
              HasSubstr("  coordinate 0x00000010: 9 of 9 instructions (too few to be worth compiling)\n"));
  EXPECT_THAT(text, Not(HasSubstr("fragment 0x00002000: ")));  // before it was compiled
}

}  // namespace
}  // namespace v3d::daemon
