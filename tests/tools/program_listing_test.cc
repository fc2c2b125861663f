#include "tools/cli/captures/program_listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/qpu/isa/assembler.h"
#include "tests/vpm/test_job.h"

namespace v3d::tools {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

class ProgramListingTest : public testing::Test {
 protected:
  GpuAddr program(const std::string& text) {
    const qpu::Assembly assembly = qpu::assemble(chip::Generation::k71, text);
    EXPECT_TRUE(assembly.errors.empty()) << text;
    return test_.put(assembly.words);
  }
  std::string list(GpuAddr code, const std::set<GpuAddr>& uniforms) {
    return program_listing(test_.memory(), chip::Generation::k71, {"compute", code, false, uniforms});
  }
  /// The line of the instruction with this index.
  static std::string line(const std::string& listing, GpuAddr code, uint32_t index) {
    const std::string start = absl::StrFormat("  0x%08x  ", code + 8 * index);
    const size_t at = listing.find(start);
    return at == listing.npos ? "" : listing.substr(at, listing.find('\n', at) - at);
  }
  TestJob test_;
};

TEST_F(ProgramListingTest, UniformsInTheOrderOfReads) {
  const GpuAddr code = program("ldunifrf.rf4\nmov tmuau, rf4\nldunif\nadd rf1, rf0, rf4\nend\n");
  const GpuAddr uniforms = test_.put<uint32_t>({0x20000, std::bit_cast<uint32_t>(2.5F), 7});
  const std::string text = list(code, {uniforms});
  EXPECT_THAT(text, testing::StartsWith(
                        absl::StrFormat("compute program at 0x%08x, uniforms at 0x%08x\n", code, uniforms)));
  EXPECT_THAT(line(text, code, 0), MatchesRegex(".*ldunifrf.rf4 +# uniform \\+0x00: 0x00020000"));
  EXPECT_THAT(line(text, code, 1), MatchesRegex(".*tmuau, rf4.* # uniform \\+0x04: 0x40200000 \\(2.5\\)"));
  EXPECT_THAT(line(text, code, 2), MatchesRegex(".*ldunif +# uniform \\+0x08: 0x00000007"));
  EXPECT_THAT(line(text, code, 3), Not(HasSubstr("#")));
  EXPECT_EQ(line(text, code, 12), "") << "beyond the end";
}

// Each record has uniforms of its own; of the others the words suffice.
TEST_F(ProgramListingTest, OtherStreamsOfTheProgram) {
  const GpuAddr code = program("ldunifrf.rf4\nldunifrf.rf5\nend\n");
  const GpuAddr first = test_.put<uint32_t>({1, 2, 3}), second = test_.put<uint32_t>({4, 5, 6});
  const std::string text = list(code, {first, second});
  EXPECT_THAT(line(text, code, 0), HasSubstr("# uniform +0x00: 0x00000001"));
  EXPECT_THAT(text,
              HasSubstr(absl::StrFormat("  uniforms at 0x%08x:\n    +0x00: 00000004 00000005\n", second)));
  std::set<GpuAddr> many;
  for (uint32_t n = 0; n < 40; ++n) many.insert(test_.put<uint32_t>({n, n}));
  EXPECT_THAT(list(code, many), HasSubstr("  ... 40 streams of uniforms in all\n"));
}

// How often a loop reads is not known: its words are shown as they are.
TEST_F(ProgramListingTest, WordsWhereThePlaceIsNotFixed) {
  const GpuAddr code = program("loop: ldunifrf.rf4\nmov.pushz -, rf4\nb.anyna loop\nnop\nnop\nnop\nend\n");
  const GpuAddr uniforms = test_.put<uint32_t>({0xabcd, 2, 3});
  const std::string text = list(code, {uniforms});
  EXPECT_THAT(line(text, code, 0), MatchesRegex(".*ldunifrf.rf4 +# uniform"));
  EXPECT_THAT(text, HasSubstr(absl::StrFormat("  uniforms at 0x%08x:\n    +0x00: 0000abcd", uniforms)));
}

TEST_F(ProgramListingTest, BranchesLeadToAddresses) {
  const GpuAddr code = program("nop\nloop: nop\nb.anyna loop\nnop\nnop\nnop\nend\n");
  EXPECT_THAT(line(list(code, {}), code, 2), HasSubstr(absl::StrFormat("# to 0x%08x", code + 8)));
  const GpuAddr absolute = program("b zero_addr+0x00123458\nnop\nnop\nnop\nend\n");
  EXPECT_THAT(line(list(absolute, {}), absolute, 0), HasSubstr("# to 0x00123458"));
}

// A branch that moves the uniforms tells by its word where they go on.
TEST_F(ProgramListingTest, BranchesThatMoveTheUniforms) {
  const GpuAddr code = program(
      "ldunifrf.rf4\nloop: ldunifrf.rf5\nmov.pushz -, rf5\nbu.anyna loop, "
      "r:unif\nnop\nnop\nnop\nldunifrf.rf6\nend\n");
  const GpuAddr good = test_.put<uint32_t>({1, 2, static_cast<uint32_t>(-8), 4});
  const std::string text = list(code, {good});
  EXPECT_THAT(line(text, code, 1), HasSubstr("# uniform +0x04: 0x00000002"));
  EXPECT_THAT(line(text, code, 3),
              HasSubstr(absl::StrFormat("# to 0x%08x, uniform +0x08: 0xfffffff8", code + 8)));
  EXPECT_THAT(line(text, code, 7), HasSubstr("# uniform +0x0c: 0x00000004"));
  const GpuAddr elsewhere = test_.put<uint32_t>({1, 2, 64, 4});
  EXPECT_THAT(line(list(code, {elsewhere}), code, 1), MatchesRegex(".*# uniform"));
}

TEST_F(ProgramListingTest, InvalidInstructions) {
  const GpuAddr code = program("nop\n.word 0xffffffffffffffff\nnop\n");
  const std::string text = list(code, {});
  EXPECT_EQ(line(text, code, 1),
            absl::StrFormat("  0x%08x  ffffffffffffffff  invalid instruction", code + 8));
  EXPECT_EQ(line(text, code, 2), "") << "nothing comes there";
}

}  // namespace
}  // namespace v3d::tools
