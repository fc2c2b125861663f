// The analysis of programs: vc4-abi.md 4.
#include "ioctl/vc4/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/ioctl/vc4/words.h"

namespace v3d::ioctl::vc4::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Words = std::vector<uint64_t>;
constexpr uint32_t kAbsent = TextureSample::kAbsent;

Program analyse(const Words& words) {
  const auto facts = analyse_program(program(words));
  EXPECT_TRUE(facts.ok()) << facts.status();
  return facts.value_or(Program());
}
/// "" when it is accepted.
std::string refusal(const Words& words) {
  const auto facts = analyse_program(words);
  return facts.ok() ? "" : std::string(facts.status().message());
}

TEST(Program, TheShortestOneEnds) {
  const Program facts = analyse({});
  EXPECT_EQ(facts.checked_words, 3u);
  EXPECT_EQ(facts.uniform_bytes, 0u);
  EXPECT_EQ(facts.source_bytes(), 0u);
  EXPECT_FALSE(facts.threaded);
}

TEST(Program, NothingIsLookedAtBehindTheEnd) {
  Words words = program({});
  words[3] = signal(7);
  EXPECT_EQ(refusal(words), "");
  words[2] = signal(7);
  EXPECT_THAT(refusal(words), HasSubstr("word 2"));
}

TEST(Program, HasToEndInsideItsBo) {
  EXPECT_THAT(refusal(Words(512, nop())), HasSubstr("does not end"));
  EXPECT_THAT(refusal(Words(512)), HasSubstr("signal"));  // zeros
  for (size_t last = 509; last < 512; ++last) {
    Words words(512, nop());
    words[last] = signal(3);
    EXPECT_EQ(refusal(words),
              last == 509 ? "" : "word " + std::to_string(last) + ": the program ends beyond its BO");
  }
  EXPECT_FALSE(analyse_program({}).ok());
}

TEST(Program, RefusesSignals) {
  for (uint32_t sig = 0; sig < 16; ++sig) {
    const bool refused = sig == 0 || sig == 7 || sig == 9 || sig == 12;
    if (sig == 15) continue;  // a branch, below
    EXPECT_EQ(refusal(program({signal(sig)})).empty(), !refused) << sig;
  }
}

TEST(Program, RefusesWrites) {
  for (const bool mul : {false, true})
    for (uint32_t address = 0; address < 56; ++address) {
      Instruction instruction;
      (mul ? instruction.waddr_mul : instruction.waddr_add) = address;
      const bool refused =
          address == 36 || address == 38 || address == 40 || address == 47 || address == 50 || address == 51;
      EXPECT_EQ(refusal(program({instruction.word()})).empty(), !refused) << address << " mul " << mul;
    }
}

TEST(Program, CountsUniforms) {
  EXPECT_EQ(analyse({read_uniform(), read_uniform()}).uniform_bytes, 8u);
  // Both files read it: it is one.
  EXPECT_EQ(analyse({Instruction{.raddr_a = 32, .raddr_b = 32}.word()}).uniform_bytes, 4u);
  EXPECT_EQ(analyse({Instruction{.sig = 13, .raddr_b = 32}.word()}).uniform_bytes, 0u);  // an immediate
  EXPECT_EQ(analyse({load_immediate(0, 32 << 18 | 32 << 12)}).uniform_bytes, 0u);
}

TEST(Program, FindsTextureParameters) {
  const Program two = analyse({write(kTmu0T), write(kTmu0S)});
  ASSERT_EQ(two.samples.size(), 1u);
  EXPECT_THAT(two.samples[0].parameters, ElementsAre(0, 4, kAbsent, kAbsent));
  EXPECT_FALSE(two.samples[0].direct);
  EXPECT_EQ(two.uniform_bytes, 8u);
  EXPECT_EQ(two.source_bytes(), 12u);
  const Program four =
      analyse({read_uniform(), write(kTmu0B), write(kTmu0R), write(kTmu0T), write(kTmu0S), read_uniform()});
  EXPECT_THAT(four.samples[0].parameters, ElementsAre(4, 8, 12, 16));
  EXPECT_EQ(four.uniform_bytes, 24u);
  EXPECT_EQ(four.source_bytes(), 28u);
}

TEST(Program, KeepsTheTmusApart) {
  const Program facts = analyse({write(kTmu0T), write(kTmu1S + 1), write(kTmu1S), write(kTmu0S)});
  ASSERT_EQ(facts.samples.size(), 2u);
  EXPECT_THAT(facts.samples[0].parameters, ElementsAre(4, 8, kAbsent, kAbsent));
  EXPECT_THAT(facts.samples[1].parameters, ElementsAre(0, 12, kAbsent, kAbsent));
}

TEST(Program, RefusesTextureSetups) {
  EXPECT_THAT(refusal(program({Instruction{.waddr_add = kTmu0T, .waddr_mul = kTmu0B}.word()})),
              HasSubstr("both ALUs"));
  EXPECT_THAT(refusal(program({write(kTmu0T), write(kTmu0T), write(kTmu0T), write(kTmu0T), write(kTmu0S)})),
              HasSubstr("too many"));
  EXPECT_THAT(refusal(program({Instruction{.waddr_add = kTmu0T, .raddr_a = 32}.word()})),
              HasSubstr("a uniform is read"));
  EXPECT_THAT(refusal(program({Instruction{.waddr_add = kTmu0T, .raddr_b = 32}.word()})),
              HasSubstr("a uniform is read"));
}

Words direct_read() { return {at_least_zero(33), at_most_uniform(34, 1), add_uniform(kTmu0S, 2)}; }

TEST(Program, FindsDirectReads) {
  const Program facts = analyse(direct_read());
  ASSERT_EQ(facts.samples.size(), 1u);
  EXPECT_TRUE(facts.samples[0].direct);
  EXPECT_THAT(facts.samples[0].parameters, ElementsAre(4, 0, kAbsent, kAbsent));
  EXPECT_EQ(facts.uniform_bytes, 8u);
}

TEST(Program, DirectStays) {
  Words words = direct_read();
  words.insert(words.end(), {write(kTmu0T), write(kTmu0S), write(kTmu1S + 1), write(kTmu1S)});
  const Program facts = analyse(words);
  ASSERT_EQ(facts.samples.size(), 3u);
  EXPECT_TRUE(facts.samples[1].direct);
  EXPECT_FALSE(facts.samples[2].direct);  // of the other TMU
}

TEST(Program, DirectReadsNeedTheClamp) {
  const std::string unclamped = "offset is not clamped";
  EXPECT_THAT(refusal(program({add_uniform(kTmu0S, 2)})), HasSubstr(unclamped));
  EXPECT_THAT(refusal(program({at_most_uniform(34, 1), add_uniform(kTmu0S, 2)})), HasSubstr(unclamped));
  // Written again: by either ALU, and by an instruction that may not be executed.
  for (const Instruction& again : {Instruction{.waddr_add = 34}, Instruction{.waddr_mul = 34},
                                   Instruction{.cond_add = 1, .waddr_add = 34}}) {
    Words words = direct_read();
    words.insert(words.end() - 1, again.word());
    EXPECT_THAT(refusal(program(words)), HasSubstr(unclamped));
  }
  // A clamp that is conditional clamps nothing.
  for (const size_t clamp : {0, 1}) {
    Words words = direct_read();
    words[clamp] = (words[clamp] & ~(uint64_t{7} << 49)) | uint64_t{2} << 49;
    EXPECT_THAT(refusal(program(words)), HasSubstr(unclamped));
  }
  // r0 to r3 are lost after a thread switch, files are not.
  Words words = direct_read();
  words.insert(words.end() - 1, {signal(2), nop(), nop()});
  EXPECT_THAT(refusal(program(words)), HasSubstr(unclamped));
  words = {at_least_zero(33),
           at_most_uniform(3, 1),
           signal(2),
           nop(),
           nop(),
           Instruction{.cond_add = 1,
                       .waddr_add = kTmu0S,
                       .op_add = 12,
                       .raddr_a = 3,
                       .raddr_b = 32,
                       .add_a = kMuxA,
                       .add_b = kMuxB}
               .word()};
  EXPECT_EQ(refusal(program(words)), "");
}

TEST(Program, DirectReadsAreAdds) {
  Words words = direct_read();
  words.back() =
      Instruction{.cond_add = 1, .waddr_add = kTmu0S, .op_add = 13, .raddr_a = 32, .add_a = 2, .add_b = kMuxA}
          .word();
  EXPECT_THAT(refusal(program(words)), HasSubstr("not an ADD"));
  words.back() =
      Instruction{.cond_mul = 1, .waddr_mul = kTmu0S, .op_add = 12, .raddr_a = 32, .add_a = 2, .add_b = kMuxA}
          .word();
  EXPECT_THAT(refusal(program(words)), HasSubstr("not an ADD"));
  words.back() = Instruction{.cond_add = 1, .waddr_add = kTmu0S, .op_add = 12, .add_a = 2, .add_b = 2}.word();
  EXPECT_THAT(refusal(program(words)), HasSubstr("does not add a uniform"));
}

// Linux takes these: it looks beyond its table of registers, or for fields in an immediate.
TEST(Program, OnlyRegistersHoldWhatIsClamped) {
  for (uint32_t address = 32; address < 64; ++address)
    EXPECT_NE(refusal(program({Instruction{.cond_add = 1,
                                           .waddr_add = kTmu0S,
                                           .op_add = 12,
                                           .raddr_a = 32,
                                           .raddr_b = address,
                                           .add_a = kMuxB,
                                           .add_b = kMuxA}
                                   .word()})),
              "")
        << address;
  // An immediate whose bits are those of min(r1, uniform).
  const auto bits = static_cast<uint32_t>(at_most_uniform(0, 1));
  EXPECT_THAT(refusal(program({at_least_zero(33), load_immediate(34, bits), add_uniform(kTmu0S, 2)})),
              HasSubstr("not clamped"));
  const auto add = static_cast<uint32_t>(add_uniform(0, 2));
  EXPECT_THAT(refusal(program({at_least_zero(33), at_most_uniform(34, 1), load_immediate(kTmu0S, add)})),
              HasSubstr("direct read"));
}

TEST(Program, ChecksBranches) {
  const auto with_branch = [](uint64_t word) {
    return program({nop(), nop(), word, nop(), nop(), nop(), nop(), nop()});
  };
  EXPECT_EQ(refusal(with_branch(branch(0))), "");
  EXPECT_EQ(refusal(with_branch(branch(-6))), "");
  EXPECT_THAT(refusal(with_branch(branch(-7))), HasSubstr("out of the program"));
  EXPECT_EQ(refusal(with_branch(branch(505))), "");  // zeros of the page
  EXPECT_THAT(refusal(with_branch(branch(506))), HasSubstr("out of the program"));
  EXPECT_THAT(refusal(with_branch(branch(0) + 4)), HasSubstr("between two words"));
  EXPECT_THAT(refusal(with_branch(branch(0) | uint64_t{1} << 50)), HasSubstr("register says"));
  EXPECT_THAT(refusal(with_branch(branch(0) & ~(uint64_t{1} << 51))), HasSubstr("not relative"));
  EXPECT_THAT(refusal(with_branch(branch(0) & ~(uint64_t{63} << 38))), HasSubstr("writes a register"));
  EXPECT_THAT(refusal(with_branch(branch(0) & ~(uint64_t{63} << 32))), HasSubstr("writes a register"));
}

TEST(Program, KeepsBranchesApart) {
  EXPECT_THAT(refusal(program({branch(0), nop(), nop(), nop()})), HasSubstr("first two words"));
  EXPECT_THAT(refusal(program({nop(), branch(0), nop(), nop(), nop()})), HasSubstr("first two words"));
  for (int gap = 0; gap < 4; ++gap) {
    Words words = {nop(), nop(), branch(0)};
    words.resize(words.size() + gap, nop());
    words.insert(words.end(), {branch(0), nop(), nop(), nop()});
    EXPECT_EQ(refusal(program(words)).empty(), gap == 3) << gap;
  }
  // Near its end.
  for (int gap = 0; gap < 4; ++gap) {
    Words words = {nop(), nop(), branch(-5)};
    words.resize(words.size() + gap, nop());
    EXPECT_EQ(refusal(program(words)).empty(), gap == 3) << gap;
  }
  for (int gap = 0; gap < 3; ++gap) {
    Words words = {nop(), nop(), signal(2)};
    words.resize(words.size() + gap, nop());
    words.insert(words.end(), {branch(0), nop(), nop(), nop()});
    EXPECT_EQ(refusal(program(words)).empty(), gap == 2) << gap;
  }
}

TEST(Program, ABranchMayNotEnterASetup) {
  EXPECT_THAT(refusal(program({nop(), nop(), branch(0), nop(), nop(), write(kTmu0T), write(kTmu0S)})),
              HasSubstr("into the set-up"));
}

/// After a branch: sets the stream, then a uniform.
Words reset_stream(uint32_t offset) {
  return {load_immediate(33, offset), add_uniform(40, 1), read_uniform()};
}
Words behind_a_branch(const Words& words) {
  Words all = {read_uniform(), nop(), branch(0), nop(), nop(), nop()};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

TEST(Program, SetsTheStreamBehindBranches) {
  const Program facts = analyse(behind_a_branch(reset_stream(8)));
  EXPECT_THAT(facts.stream_addresses, ElementsAre(4));
  EXPECT_EQ(facts.uniform_bytes, 12u);
  EXPECT_THAT(refusal(program(behind_a_branch(reset_stream(4)))), HasSubstr("where the next uniform is"));
  EXPECT_THAT(refusal(program(behind_a_branch({read_uniform()}))), HasSubstr("before the uniform stream"));
  EXPECT_THAT(refusal(program(behind_a_branch({write(kTmu0T)}))), HasSubstr("before the uniform stream"));
}

TEST(Program, ChecksHowTheStreamIsSet) {
  const auto with = [](Instruction instruction) {
    return refusal(program(behind_a_branch({load_immediate(33, 8), instruction.word()})));
  };
  const Instruction good{
      .cond_add = 1, .waddr_add = 40, .op_add = 12, .raddr_a = 32, .add_a = 1, .add_b = kMuxA};
  for (uint32_t sig = 1; sig < 14; ++sig) {
    Instruction instruction = good;
    instruction.sig = sig;
    const bool allowed = sig == 1 || sig == 5 || sig == 8 || sig == 10 || sig == 11;
    EXPECT_EQ(with(instruction).empty(), allowed) << sig;
  }
  Instruction bad = good;
  bad.cond_add = 2;
  EXPECT_THAT(with(bad), HasSubstr("under a condition"));
  bad = good;
  bad.op_add = 13;
  EXPECT_THAT(with(bad), HasSubstr("not set by an ADD"));
  bad = good;
  bad.pack = 1;
  EXPECT_THAT(with(bad), HasSubstr("packed"));
  bad.pm = 1;
  EXPECT_EQ(with(bad), "");
  bad = good;
  bad.ws = 1;
  EXPECT_THAT(with(bad), HasSubstr("relative change"));
  bad = good;
  bad.add_b = 0;
  EXPECT_THAT(with(bad), HasSubstr("not set by a uniform"));
}

TEST(Program, ALoopGetsAWordForTheAddress) {
  const Program facts = analyse({read_uniform(), nop(), nop(), branch(-5), nop(), nop(), nop()});
  EXPECT_THAT(facts.stream_addresses, ElementsAre(4));
  EXPECT_EQ(facts.uniform_bytes, 8u);
}

TEST(Program, ThreadsShareTheRegisters) {
  const auto threaded_with = [](const Instruction& instruction) {
    return refusal(program({signal(2), nop(), nop(), instruction.word()}));
  };
  EXPECT_TRUE(analyse({signal(2)}).threaded);
  EXPECT_TRUE(analyse({signal(6)}).threaded);
  EXPECT_EQ(threaded_with({.waddr_add = 15, .waddr_mul = 15, .raddr_a = 15, .raddr_b = 15}), "");
  EXPECT_NE(threaded_with({.waddr_add = 16}), "");
  EXPECT_NE(threaded_with({.waddr_mul = 31}), "");
  EXPECT_NE(threaded_with({.raddr_a = 16}), "");
  EXPECT_NE(threaded_with({.raddr_b = 31}), "");
  EXPECT_EQ(threaded_with({.sig = 13, .raddr_b = 31}), "");  // an immediate
  EXPECT_EQ(refusal(program({Instruction{.waddr_add = 16}.word()})), "");
  EXPECT_THAT(refusal(program({signal(2), nop(), signal(6)})), HasSubstr("thread switch in a thread switch"));
  EXPECT_EQ(refusal(program({signal(2), nop(), nop(), signal(6)})), "");
}

}  // namespace
}  // namespace v3d::ioctl::vc4::test
