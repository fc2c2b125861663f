#include "gpu/qpu/isa/vc4_assembler.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/qpu/isa/vc4.h"
#include "tests/qpu/vc4_words.h"

namespace v3d::qpu::vc4 {
namespace {

std::vector<uint64_t> words(std::string_view text) {
  const Assembly assembly = assemble(text);
  for (const AssemblyError& error : assembly.errors) ADD_FAILURE() << to_string(error) << " in " << text;
  return assembly.words;
}
uint64_t word(std::string_view text) {
  const std::vector<uint64_t> all = words(text);
  return all.size() == 1 ? all[0] : 0;
}

// Mesa's text does not say everything: the words of the same text are equal but for what it leaves out.
TEST(Vc4Assembler, KnownWords) {
  int equal = 0;
  for (const KnownWord& known : kKnownWords) {
    const std::string text = disassemble(known.word);
    const uint64_t again = word(text);
    if (again == known.word) {
      ++equal;
      continue;
    }
    EXPECT_EQ(disassemble(again), text) << std::hex << again << " for " << known.word;
  }
  EXPECT_GE(equal, 60);
}

TEST(Vc4Assembler, CanonicalWords) {
  EXPECT_TRUE(is_canonical(0x100009e7009e7000));
  EXPECT_TRUE(is_canonical(0x100049e0203e303e));
  EXPECT_FALSE(is_canonical(0x114258c0819e7549));  // its text gives the other pack
  EXPECT_FALSE(is_canonical(0x100009e7099e7000));  // no instruction
}

TEST(Vc4Assembler, WhatMesasTextDoesNotSay) {
  EXPECT_EQ(word("fadd r3, r2, r5 ; mov ra0.8a, r1 ; pm"), 0x114258c0819e7549u);
  EXPECT_EQ(word("nop ; mov r2, r0+r5"), 0xd00049e2809f0000u);
  EXPECT_EQ(word("load_imm_u r0, nop, 0xccccaaaa"), 0xe6024827ccccaaaau);
  EXPECT_EQ(word("load_imm_s r1, nop, 0xccccaaaa"), 0xe2024867ccccaaaau);
  EXPECT_EQ(word("load_imm ra3.sf, nop, 0x12345678"), 0xe00260e712345678u);
  EXPECT_EQ(word("sacq 5"), 0xe80249e700000015u);
  EXPECT_EQ(word("srel 5"), 0xe80249e700000005u);
  EXPECT_EQ(word("branch 0, ra8"), 0xf0fd09e700000000u);
  EXPECT_EQ(word("branch 0 -> ra7"), 0xf0f801e700000000u);
  EXPECT_EQ(decode(word("mov r5rep, r0")).ws, true);
  EXPECT_EQ(decode(word("mov r5, r0")).ws, false);
}

TEST(Vc4Assembler, LabelsAndDirectives) {
  const Assembly assembly = assemble(
      "  .uniform 1, -1, 2.5\n"
      "loop: nop  # comment\n"
      "  branch.any_zc loop\n"
      "  .word 0x100009e7009e7000\n"
      "  thrend ; nop\n"
      "  end");
  ASSERT_TRUE(assembly.errors.empty());
  EXPECT_EQ(assembly.uniforms, (std::vector<uint32_t>{1, 0xffffffff, 0x40200000}));
  ASSERT_EQ(assembly.words.size(), 7u);
  EXPECT_EQ(assembly.words[0], 0x100009e7009e7000u);
  EXPECT_EQ(disassemble(assembly.words[1]), "branch.any_zc -40");
  EXPECT_EQ(assembly.words[3], 0x300009e7009e7000u);
  EXPECT_EQ(assembly.lines, (std::vector<int>{2, 3, 4, 5, 6, 6, 6}));
}

TEST(Vc4Assembler, Errors) {
  const auto error = [](std::string_view text) {
    const Assembly assembly = assemble(text);
    return assembly.errors.empty() ? "none" : to_string(assembly.errors[0]);
  };
  EXPECT_EQ(error("fadd r0, ra1, ra2"),
            "1:15: a word reads one address of each file, and none of file B beside a small immediate");
  EXPECT_EQ(error("add r0, r1, 17"),
            "1:13: small immediates are -16..15 and powers of two from 1/256 to 128 with a point");
  EXPECT_EQ(error("mov ra0, r1 ; mov ra1, r2"),
            "1:15: the two operations of a word write to different files");
  EXPECT_EQ(error("fmul r0, r1, r2 ; fmul r1, r1, r2"), "1:1: the add ALU has no fmul");
  EXPECT_EQ(error("load_tmu0 add r0, r1, 1"),
            "1:11: a small immediate or rotation takes the place of signals");
  EXPECT_EQ(error("branch nowhere"), "1:8: the label nowhere is not defined");
  EXPECT_EQ(error("mov r0, r1.8a"), "1:11: conversions are of file A and of r4");
  EXPECT_EQ(error("mov r0.8a, r1"), "1:7: conversions of the add ALU go to file A");
  EXPECT_EQ(error("frob r0, r1"), "1:1: there is no operation frob");
}

}  // namespace
}  // namespace v3d::qpu::vc4
