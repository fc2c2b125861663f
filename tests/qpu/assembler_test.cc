#include "gpu/qpu/isa/assembler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "gpu/qpu/isa/any_word.h"
#include "gpu/qpu/isa/instruction.h"
#include "tests/qpu/known_words.h"
#include "tests/qpu/random_words.h"
#if V3DEMU_HAVE_MESA
#include "tests/qpu/mesa_qpu.h"
#endif

namespace v3d::qpu {
namespace {

using testing::ElementsAre;

std::string all_errors(const Assembly& assembly) {
  std::string text;
  for (const AssemblyError& error : assembly.errors) text += (text.empty() ? "" : " | ") + to_string(error);
  return text;
}

uint64_t one(chip::Generation generation, const std::string& text) {
  const Assembly assembly = assemble(generation, text);
  EXPECT_EQ(all_errors(assembly), "") << text;
  EXPECT_EQ(assembly.words.size(), 1u) << text;
  return assembly.words.empty() ? 0 : assembly.words[0];
}

std::string error_of(chip::Generation generation, const std::string& text) {
  return all_errors(assemble(generation, text));
}

// Fields that text does not carry because they mean nothing.
Instruction visible(Instruction i) {
  if (!i.is_branch) return i;
  Branch& b = i.branch;
  if (b.cond == BranchCond::kUndefined) b.cond = BranchCond::kAlways;
  if (b.target == BranchTarget::kLink || b.target == BranchTarget::kRegister) b.offset = 0;
  const bool uniforms_from_register =
      b.uniforms && b.uniform_target == static_cast<uint8_t>(BranchTarget::kRegister);
  if (b.target != BranchTarget::kRegister && !uniforms_from_register) b.raddr = 0;
  return i;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kRandomWords = 50'000;  // sanitizers make text twenty times slower
#else
constexpr int kRandomWords = 1'000'000;
#endif

class RoundTrip : public testing::TestWithParam<chip::Generation> {};
INSTANTIATE_TEST_SUITE_P(Versions, RoundTrip, testing::Values(chip::Generation::k71, chip::Generation::k42));

// Text of a word means what the word means, prints as itself again, and is bit-exact for canonical words.
TEST_P(RoundTrip, RandomWords) {
  const chip::Generation generation = GetParam();
  RandomWords words(generation);
  int valid = 0, canonical = 0;
  while (valid < kRandomWords) {
    const uint64_t word = words.next();
    Instruction i, again;
    if (!decode(generation, word, i) || (i.is_branch && i.branch.uniform_target > 3)) continue;
    ++valid;
    const std::string text = disassemble(generation, i);
    const Assembly assembly = assemble(generation, text);
    ASSERT_EQ(all_errors(assembly), "") << std::hex << word << " " << text;
    ASSERT_EQ(assembly.words.size(), 1u);
    const uint64_t result = assembly.words[0];
    ASSERT_TRUE(decode(generation, result, again));
    ASSERT_EQ(visible(i), again) << std::hex << word << " " << text;
    ASSERT_EQ(disassemble(generation, again), text) << std::hex << word;
    ASSERT_TRUE(is_canonical(generation, result)) << std::hex << result;
    ASSERT_EQ(is_canonical(generation, word), result == word) << std::hex << word;
    if (result != word) continue;
    ++canonical;
  }
  // 7.1 words are canonical unless they carry fields that no operand uses.
  EXPECT_GT(canonical, generation == chip::Generation::k71 ? kRandomWords / 10 * 3 : kRandomWords / 100 * 3);
}

// The canonical word of an instruction is one and the same from text and from encode().
TEST_P(RoundTrip, CanonicalWords) {
  const chip::Generation generation = GetParam();
  RandomWords words(generation);
  for (int n = 0; n < 100'000; ++n) {
    Instruction i;
    if (!decode(generation, words.next(), i) || i.is_branch) continue;
    const auto word = encode(generation, i);
    ASSERT_TRUE(word);
    ASSERT_EQ(one(generation, disassemble(generation, *word)), *word) << disassemble(generation, *word);
  }
}

#if V3DEMU_HAVE_MESA
// Text that Mesa itself printed, of words that Mesa compiles to.
TEST(Assembler, ReadsMesasText) {
  const auto check = [](chip::Generation generation, const KnownWord& k) {
    char text[256];
    if (!mesa_qpu_disassemble(version_number(generation), k.word, text, sizeof(text))) return 0;
    const bool differs = disassemble(generation, k.word) != text;  // a fault of Mesa's printer: isa_test.cc
    if (differs) return 0;
    EXPECT_EQ(disassemble(generation, one(generation, text)), text);
    return 1;
  };
  int compared = 0;
  for (const KnownWord& k : kKnownWords71) compared += check(chip::Generation::k71, k);
  for (const KnownWord& k : kKnownWords42) compared += check(chip::Generation::k42, k);
  EXPECT_GT(compared, 130);
}
#endif

TEST(Assembler, ReadsKnownText) {
  for (const KnownWord& k : kKnownWords71)
    EXPECT_EQ(disassemble(chip::Generation::k71, one(chip::Generation::k71, k.text)),
              disassemble(chip::Generation::k71, k.word));
  for (const KnownWord& k : kKnownWords42)
    EXPECT_EQ(disassemble(chip::Generation::k42, one(chip::Generation::k42, k.text)),
              disassemble(chip::Generation::k42, k.word));
}

TEST(Assembler, ShortForms) {
  const uint64_t nop = 0x38003186bb03f000;
  EXPECT_EQ(one(chip::Generation::k71, "nop"), nop);
  EXPECT_EQ(one(chip::Generation::k71, "  nop ; nop   # comment"), nop);
  EXPECT_EQ(one(chip::Generation::k71, "nop // comment"), nop);
  EXPECT_EQ(one(chip::Generation::k71, "0x38003186bb03f000"), nop);
  EXPECT_EQ(one(chip::Generation::k71, "fmul rf10, rf11, rf12"),
            one(chip::Generation::k71, "nop ; fmul rf10, rf11, rf12"));
  EXPECT_EQ(one(chip::Generation::k71, "fmul rf10,rf11,rf12;thrsw"),
            one(chip::Generation::k71, "nop ; fmul rf10, rf11, rf12 ; thrsw"));
  EXPECT_EQ(one(chip::Generation::k71, "add rf1, rf2, 3"),
            one(chip::Generation::k71, "add rf1, rf2, 3 ; nop"));
  EXPECT_EQ(one(chip::Generation::k71, "thrsw ; ldunif"),
            one(chip::Generation::k71, "nop ; nop ; ldunif ; thrsw"));
  EXPECT_EQ(one(chip::Generation::k42, "mov rf1, rf2"), one(chip::Generation::k42, "nop ; mov rf1, rf2"));
  EXPECT_EQ(one(chip::Generation::k71, "fadd rf1, rf2, 1.0"),
            one(chip::Generation::k71, "fadd rf1, rf2, 0x3f800000"));
  EXPECT_EQ(one(chip::Generation::k71, "fadd rf1, rf2, 0.00390625"),
            one(chip::Generation::k71, "fadd rf1, rf2, 0x3b800000"));
  EXPECT_EQ(one(chip::Generation::k71, "fmul rf1, -16.l, rf2"),
            one(chip::Generation::k71, "fmul rf1, 0xfffffff0.l, rf2"));
  EXPECT_EQ(one(chip::Generation::k71, "v8dot rf1, rf2, rf3"),
            one(chip::Generation::k71, "nop ; v8dot rf1, rf2, rf3"));
  EXPECT_EQ(one(chip::Generation::k71, "umul24_rtop0 rf1, rf2, rf3"),
            one(chip::Generation::k71, "umul24 rf1, rf2, rf3"));
}

TEST(Assembler, Programs) {
  const Assembly a = assemble(chip::Generation::k71, R"(
start: mov rf1, 4           # a label may stand before an instruction
loop:
other:
  sub.pushz rf1, rf1, 1
  b.anyna loop
  nop
  nop
  nop
  bl forward
  nop
  nop
  nop
  .word 0x38003186bb03f000, 0x38003186bb03f000
forward:
  .uniform 0x20000, -1, 2.5
  .uniform 7
  end
)");
  EXPECT_EQ(all_errors(a), "");
  ASSERT_EQ(a.words.size(), 20u);
  EXPECT_EQ(a.lines[0], 2);
  EXPECT_EQ(a.lines[11], 14);
  EXPECT_EQ(disassemble(chip::Generation::k71, a.words[2]), "b.anyna  -40");
  EXPECT_EQ(disassemble(chip::Generation::k71, a.words[6]), "bl  16");
  EXPECT_THAT(a.uniforms, ElementsAre(0x20000u, 0xffffffffu, 0x40200000u, 7u));
  EXPECT_EQ(a.words[12], one(chip::Generation::k71, "thrsw"));
  EXPECT_EQ(a.words[16], one(chip::Generation::k71, "thrsw"));
}

TEST(Assembler, Branches) {
  EXPECT_EQ(one(chip::Generation::k71, "bu.anynap  1024, r:unif"), 0x020004050020d000u);
  EXPECT_EQ(one(chip::Generation::k71, "bu.anynap 1024"), 0x020004050020d000u);
  EXPECT_EQ(one(chip::Generation::k71, "b  zero_addr+0x12345678"), 0x0234567812000000u);
  EXPECT_EQ(one(chip::Generation::k71, "bu  rf33, rf33"), 0x020000000001f840u);
  EXPECT_EQ(one(chip::Generation::k71, "bu  -16777208, a:unif"), 0x02000008ff005000u);
  EXPECT_EQ(one(chip::Generation::k71, "bl lri"), 0x0200000000802000u);
  EXPECT_EQ(disassemble(chip::Generation::k71, one(chip::Generation::k71, "bulq  8, lri")), "bulq  8, lri");
}

TEST(Assembler, Rotation42) {
  EXPECT_EQ(disassemble(chip::Generation::k42, one(chip::Generation::k42, "nop ; mov rf1, r0 ; rot.3")),
            "nop                           ; mov rf1, r0                 ; rot.3");
  EXPECT_EQ(disassemble(chip::Generation::k42, one(chip::Generation::k42, "mov rf1, r0 ; rot")).substr(60),
            "; rot");
  EXPECT_EQ(
      disassemble(chip::Generation::k71, one(chip::Generation::k71, "rot rf1, rf2, 3 ; nop")).substr(0, 15),
      "rot rf1, rf2, 3");
}

TEST(AssemblerErrors, Text) {
  EXPECT_EQ(error_of(chip::Generation::k71, "fbad rf1, rf2, rf3"),
            "1:1: \"fbad\" is no operation, signal or branch");
  EXPECT_EQ(error_of(chip::Generation::k71, "nop\n  add rf1, rf2, rf64"),
            "2:17: \"rf64\" is no register or number");
  EXPECT_EQ(error_of(chip::Generation::k71, "add r7, rf2, rf4"),
            "1:5: \"r7\" is no register or write address");
  EXPECT_EQ(error_of(chip::Generation::k71, "add rf1, r2, rf4"), "1:10: \"r2\" is no register or number");
  EXPECT_EQ(error_of(chip::Generation::k71, "add rf1, rf2"), "1:13: add has 2 operands");
  EXPECT_EQ(error_of(chip::Generation::k71, "mov rf1, rf2, rf3"), "1:13: mov has 1 operands");
  EXPECT_EQ(error_of(chip::Generation::k71, "add rf1, rf2, 16"),
            "1:15: no small immediate: those are -16..15 and powers of two 0.00390625..128.0");
  EXPECT_EQ(error_of(chip::Generation::k71, "add.ifx rf1, rf2, rf3"),
            "1:5: there is no condition or flag write .ifx");
  EXPECT_EQ(error_of(chip::Generation::k71, "fadd rf1.q, rf2, rf3"),
            "1:10: a destination has the forms .l and .h only");
  EXPECT_EQ(error_of(chip::Generation::k71, "fadd rf1, rf2.z, rf3"), "1:15: there is no conversion .z");
  EXPECT_EQ(error_of(chip::Generation::k71, "nop nop"),
            "1:5: \";\" or the end of the line is expected, not \"nop\"");
  EXPECT_EQ(error_of(chip::Generation::k71, "nop ;"), "1:6: an operation or a signal is expected");
  EXPECT_EQ(error_of(chip::Generation::k71, "nop ; nop ; nop"), "1:13: a word has two operations only");
  EXPECT_EQ(error_of(chip::Generation::k71, "ldtmu"), "1:6: a destination is expected, such as .rf1");
  EXPECT_EQ(error_of(chip::Generation::k71, "thrsw ; thrsw"), "1:9: the same signal twice");
  EXPECT_EQ(error_of(chip::Generation::k71, "ldtmu.rf1 ; ldvary.rf2"),
            "1:13: two signals with a destination");
  EXPECT_EQ(error_of(chip::Generation::k71, ".byte 1"), "1:1: there is no directive .byte");
  EXPECT_EQ(error_of(chip::Generation::k71, ".word rf1"), "1:7: a word of 64 bits is expected, not \"rf1\"");
  EXPECT_EQ(error_of(chip::Generation::k71, ".word 0x1ffffffffffffffff"),
            "1:7: a number of at most 64 bits is expected");
  EXPECT_EQ(error_of(chip::Generation::k71, ".uniform 0x1ffffffff"), "1:10: a uniform has 32 bits");
  EXPECT_EQ(error_of(chip::Generation::k71, "?"), "1:1: \"?\" is no operation, signal or branch");
}

TEST(AssemblerErrors, Labels) {
  EXPECT_EQ(error_of(chip::Generation::k71, "nop\n b.anya nowhere"), "2:9: the label nowhere is not defined");
  EXPECT_EQ(error_of(chip::Generation::k71, "a:\nnop\na:"), "3:1: the label a is defined twice");
  EXPECT_EQ(error_of(chip::Generation::k71, "rf3:"),
            "1:1: rf3 is the name of a branch target, not of a label");
  EXPECT_EQ(error_of(chip::Generation::k71, "b 12"),
            "1:3: a branch goes to a multiple of 8 bytes, in 32 bits");
  EXPECT_EQ(error_of(chip::Generation::k71, "b.any 8"),
            "1:3: conditions of branches are a0, na0, alla, anyna, anya and allna, each with p or q");
  EXPECT_EQ(error_of(chip::Generation::k71, "b 8, r:unif"), "1:6: only bu and bul move the uniform stream");
  EXPECT_EQ(error_of(chip::Generation::k71, "bu rf1, rf2"), "1:9: a branch reads one register only");
  EXPECT_EQ(error_of(chip::Generation::k71, "b"), "1:2: a branch target is expected");
}

// Every line with an error is reported, in order.
TEST(AssemblerErrors, All) {
  EXPECT_EQ(error_of(chip::Generation::k71, "b x\nbad\nnop\nworse"),
            "1:3: the label x is not defined | 2:1: \"bad\" is no operation, signal or branch | "
            "4:1: \"worse\" is no operation, signal or branch");
}

TEST(AssemblerErrors, NoWord) {
  EXPECT_EQ(error_of(chip::Generation::k71, "fmul rf1, rf2, rf3 ; fadd rf1, rf2, rf3"),
            "1:1: the add ALU of V3D 7.1 has no fmul");
  EXPECT_EQ(error_of(chip::Generation::k71, "nop ; fadd rf1, rf2, rf3"),
            "1:7: the mul ALU of V3D 7.1 has no fadd");
  EXPECT_EQ(error_of(chip::Generation::k42, "ballot rf1, rf2"), "1:1: the add ALU of V3D 4.2 has no ballot");
  EXPECT_EQ(error_of(chip::Generation::k71, "fadd rf1, rf2.sat, rf3"),
            "1:1: fadd of the add ALU of V3D 7.1 has no form .sat");
  EXPECT_EQ(error_of(chip::Generation::k71, "vfadd rf1, rf2.u5, rf3"),
            "1:1: vfadd of the add ALU of V3D 7.1 has no form .u5");
  EXPECT_EQ(error_of(chip::Generation::k42, "vfadd rf1, r2, r3"), "1:1: the add ALU of V3D 4.2 has no vfadd");
  EXPECT_EQ(error_of(chip::Generation::k71, "add rf1.l, rf2, rf3"),
            "1:1: add of the add ALU of V3D 7.1 has no form .l");
  EXPECT_EQ(error_of(chip::Generation::k71, "add.ifa.pushz rf1, rf2, rf3"),
            "1:1: one operation is either conditional or writes flags");
  EXPECT_EQ(error_of(chip::Generation::k71, "add rf1, rf2, 1 ; mov rf3, 2"),
            "1:1: a word of V3D 7.1 has one small immediate only");
  EXPECT_EQ(error_of(chip::Generation::k71, "add rf1, rf2, 1 ; ldunif"),
            "1:1: on V3D 7.1 a small immediate takes the place of all signals");
  EXPECT_EQ(error_of(chip::Generation::k71, "add.ifa rf1, rf2, rf3 ; ldtmu.rf1"),
            "1:1: the destination of a signal takes the place of conditions and flag writes");
  EXPECT_EQ(error_of(chip::Generation::k71, "add.pushz rf1, rf2, rf3 ; mov.pushz rf4, rf5"),
            "1:1: only one of the two operations writes flags");
  EXPECT_EQ(error_of(chip::Generation::k71, "nop ; nop ; ldunif ; ldunifa"),
            "1:13: V3D 7.1 has no word with these signals together");
  EXPECT_EQ(error_of(chip::Generation::k71, "fmax rf1, rf2, rf2"),
            "1:1: fmax of one operand with itself has no word; fmin gives the same");
  EXPECT_EQ(error_of(chip::Generation::k71, "ldvpmv_in tmud, rf1"),
            "1:1: ldvpmv_in writes rf registers only");
  EXPECT_EQ(error_of(chip::Generation::k42, "add rf1, rf2, rf3 ; mov rf4, rf5"),
            "1:1: a word of V3D 4.2 reads at most two rf registers");
  EXPECT_EQ(
      error_of(chip::Generation::k42, "add rf1, rf2, rf3 ; mov rf4, 1"),
      "1:1: a word of V3D 4.2 reads at most two rf registers, one beside a small immediate or a rotation");
}

// No text makes it fail otherwise than by an error.
TEST(AssemblerErrors, GarbageIsRefused) {
  std::mt19937 random(1);
  const std::string alphabet = "abdfnoprstuwxlm0123456789.,;:#/- \t\n\"+_";
  for (int n = 0; n < 20'000; ++n) {
    std::string text;
    for (int length = static_cast<int>(random() % 40); length > 0; --length)
      text += alphabet[random() % alphabet.size()];
    for (const AssemblyError& error :
         assemble(n % 2 ? chip::Generation::k71 : chip::Generation::k42, text).errors) {
      EXPECT_GE(error.line, 1);
      EXPECT_GE(error.column, 1);
      EXPECT_FALSE(error.message.empty());
    }
  }
}

// Whose words and text have tables of their own.
TEST(Assembler, HasNoWordsOfVideoCoreIv) {
  constexpr auto kOther = chip::Generation::k21;
  for (const Encoding& e : encodings()) EXPECT_EQ(e.generations & k21, 0);
  Instruction i;
  for (const uint64_t word : {*encode(chip::Generation::k42, {}), *encode(chip::Generation::k71, {})})
    EXPECT_FALSE(decode(kOther, word, i));
  EXPECT_FALSE(encode(kOther, {}));
  EXPECT_EQ(assemble(chip::Generation::k42, "load_imm r0, nop, 1").errors.size(), 1u);
}

// It has texts and words of its own, by the same functions.
TEST(Assembler, OfVideoCoreIv) {
  constexpr auto kOther = chip::Generation::k21;
  EXPECT_EQ(one(kOther, "nop"), 0x100009e7009e7000u);
  EXPECT_EQ(disassemble(kOther, 0xe00260e712345678u), "load_imm ra3, nop, 0x12345678 (0.000000)");
  EXPECT_TRUE(is_canonical(kOther, 0x100009e7009e7000));
  EXPECT_FALSE(is_canonical(kOther, 0x114258c0819e7549));  // its text gives another pack
  EXPECT_TRUE(is_instruction(kOther, 0x114258c0819e7549));
  EXPECT_FALSE(is_instruction(kOther, 0x100009e7099e7000));
  EXPECT_EQ(assemble(kOther, "mov rf1, rf2").errors.size(), 1u);
}

// A branch with an error is no word, so its label leads nowhere.
TEST(Assembler, BranchesWithErrorsHaveNoLabel) {
  EXPECT_EQ(all_errors(assemble(chip::Generation::k71, "loop: nop\nb loop, junk")),
            all_errors(assemble(chip::Generation::k71, "nop\nb lost, junk")));
}

}  // namespace
}  // namespace v3d::qpu
