/// v3demu asm and disasm from outside.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/tools/command_test.h"

namespace {

using testing::HasSubstr;
using testing::StartsWith;

class AssemblyTest : public CommandTest {
 protected:
  /// Runs v3demu in the test's folder; `arguments` are a shell's.
  Result v3demu(const std::string& arguments) {
    return shell("cd " + folder_.string() + " && (" V3DEMU_TEST_COMMAND " " + arguments + ") 2>&1");
  }
  void file(const std::string& name, const std::string& contents) {
    std::ofstream(folder_ / name, std::ios::binary) << contents;
  }
  std::string contents(const std::string& name) {
    std::ifstream in(folder_ / name, std::ios::binary);
    std::stringstream all;
    all << in.rdbuf();
    return all.str();
  }
};

constexpr const char* kProgram =
    "loop:\n  add rf10, rf11, rf12\n  b loop\n  nop\n  nop\n  nop\n .uniform 1, 2.0\n";
constexpr const char* kHex =
    "3800218a3803f2cc\n02ffffd8ff001000\n38003186bb03f000\n38003186bb03f000\n38003186bb03f000\n";

TEST_F(AssemblyTest, Formats) {
  file("p.qpu", kProgram);
  const Result hex = v3demu("asm p.qpu --uniforms u.bin");
  EXPECT_EQ(hex.status, 0);
  EXPECT_EQ(hex.output, kHex);
  EXPECT_EQ(contents("u.bin"), std::string("\1\0\0\0\0\0\0\x40", 8));
  EXPECT_EQ(v3demu("asm p.qpu -o p.bin").output, "");
  EXPECT_EQ(contents("p.bin").size(), 40u);
  EXPECT_EQ(contents("p.bin").substr(0, 8), std::string("\xcc\xf2\x03\x38\x8a\x21\x00\x38", 8));
  EXPECT_EQ(v3demu("asm - --format hex < p.qpu").output, kHex);
  const std::string c = v3demu("asm p.qpu --format c --name saxpy").output;
  EXPECT_THAT(c, StartsWith("static const uint64_t saxpy[] = {\n    0x3800218a3803f2cc,\n"));
  EXPECT_THAT(
      c, HasSubstr("static const uint32_t saxpy_uniforms[] = {\n    0x00000001,\n    0x40000000,\n};\n"));
  EXPECT_THAT(v3demu("asm p.qpu --format python").output,
              StartsWith("program = [\n    0x3800218a3803f2cc,\n"));
}

TEST_F(AssemblyTest, DisassemblyAssemblesAgain) {
  file("p.qpu", kProgram);
  v3demu("asm p.qpu -o p.bin");
  const Result text = v3demu("disasm p.bin");
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.output, StartsWith("add rf10, rf11, rf12          ; nop  "));
  EXPECT_THAT(text.output, HasSubstr("#    0  3800218a3803f2cc\n"));
  EXPECT_EQ(v3demu("disasm p.bin | " V3DEMU_TEST_COMMAND " asm -").output, kHex);
  EXPECT_EQ(
      v3demu("asm p.qpu | " V3DEMU_TEST_COMMAND " disasm - --plain | " V3DEMU_TEST_COMMAND " asm -").output,
      kHex);
}

// Words that are none, and words with bits that mean nothing.
TEST_F(AssemblyTest, ExactWords) {
  file("p.hex", "0x38003186bb03f040, ffffffffffffffff # comment\n");
  const std::string text = v3demu("disasm p.hex --exact").output;
  EXPECT_THAT(text, StartsWith(".word 0x38003186bb03f040 #    0  nop "));
  EXPECT_THAT(text, HasSubstr(".word 0xffffffffffffffff"));
  EXPECT_EQ(v3demu("disasm p.hex --exact | " V3DEMU_TEST_COMMAND " asm -").output,
            "38003186bb03f040\nffffffffffffffff\n");
  EXPECT_THAT(v3demu("disasm p.hex").output, StartsWith("nop  "));
}

// Words in the forms in which other assemblers and programs have them.
TEST_F(AssemblyTest, ForeignWords) {
  constexpr const char* kNops = "38003186bb03f000\n38003186bb03f000\n";
  for (const char* text :
       {"UINT64_C(0x38003186bb03f000), // nop\nUINT64_C(0x38003186bb03f000)\n",
        "static const uint64_t code[] = {\n  0x38003186bb03f000ull, 0x38003186bb03f000ULL, /* both */\n};\n",
        "0: 0x38003186bb03f000\n1: 0x38003186bb03f000\n", "[0] 0x38003186bb03f000\n[ 1] 0x38003186bb03f000\n",
        "0x0000: 0x38003186bb03f000 nop ; nop\n0x0008: 0x38003186bb03f000  nop                 ; nop\n",
        "code = [\n    0x38003186bb03f000,\n    0x38003186bb03f000,\n]\n",
        "38003186bb03f000 38003186BB03F000",
        "/* 0 */ 0x38003186bb03f000 /* nop */, /* 1 */ 0x38003186bb03f000\n",
        " 8  38003186bb03f000  nop ; nop\n10 38003186bb03f000\n",
        "0xbb03f000, 0x38003186, // nop\n{ 0xbb03f000, 0x38003186 }\n"}) {
    file("p.txt", text);
    EXPECT_EQ(v3demu("disasm --plain p.txt | " V3DEMU_TEST_COMMAND " asm -").output, kNops) << text;
  }
  for (const char* text : {"UINT64_C(0x38003186bb03f000),\nUINT64_C(0x38003186bb03f000),\n",
                           "0: nop\n1: nop\n", "0x38003186bb03f000 nop ; nop\n[1] 0x38003186bb03f000ull\n",
                           "0x38003186bb03f000, 0x38003186bb03f000,\n"}) {
    file("p.txt", text);
    EXPECT_EQ(v3demu("asm p.txt").output, kNops) << text;
  }
  for (const char* text : {"UINT64_C(0x38003186bb03f000", "UINT64_C(nop)", "0x38003186bb03f0001", "0x38 nop",
                           "0x38003186bb03f000, nop", "[0 nop"}) {
    file("p.txt", text);
    EXPECT_NE(v3demu("asm p.txt").status, 0) << text;
    EXPECT_NE(v3demu("disasm p.txt").status, 0) << text;
  }
}

// Two words of 32 bits, as vc4asm and GPU_FFT have them.
TEST_F(AssemblyTest, ForeignHalves) {
  file("p.txt", "0x009e7000, 0x100009e7, // nop\n0x159e7000, 0x10020e27,\t/* or */\n");
  const std::string text = v3demu("disasm --chip 2.1 --plain p.txt").output;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  EXPECT_EQ(v3demu("disasm --chip 2.1 --plain p.txt | " V3DEMU_TEST_COMMAND " asm --chip 2.1 -").output,
            "100009e7009e7000\n10020e27159e7000\n");
  file("p.txt", "0x009e7000, 0x100009e7, 0x009e7000\n");
  EXPECT_THAT(v3demu("disasm --chip 2.1 p.txt").output,
              HasSubstr("1:25: the other half of a word is missing"));
}

TEST_F(AssemblyTest, Chips) {
  file("p.qpu", "fmax rf3, r1, r2\n");
  EXPECT_EQ(v3demu("asm --chip 4.2 p.qpu | " V3DEMU_TEST_COMMAND " disasm --chip=4.2 --plain -").output,
            "fmax rf3, r2, r1              ; nop\n");
  EXPECT_EQ(v3demu("asm p.qpu").output,
            "p.qpu:1:11: \"r1\" is no register or number\n"
            "v3demu asm: p.qpu is a program for V3D 4.2, not 7.1: --chip 4.2\n");
  file("none.qpu", "fmax rf3, r1, r99\n");
  EXPECT_THAT(v3demu("asm none.qpu").output, testing::Not(HasSubstr("--chip")));
  EXPECT_NE(v3demu("asm --chip 3.3 p.qpu").status, 0);
}

// VideoCore IV has another language, by its version or by a board.
TEST_F(AssemblyTest, VideoCoreIv) {
  file("p.qpu",
       "loop: load_imm ra3.sf, nop, 0x12345678\n  nop ; mov r2, r0+r5\n  sacq 5\n  branch 0, ra8\n  end\n"
       "  .uniform 0xa000\n");
  constexpr const char* kWords =
      "e00260e712345678\nd00049e2809f0000\ne80249e700000015\nf0fd09e700000000\n300009e7009e7000\n"
      "100009e7009e7000\n100009e7009e7000\n";
  const Result hex = v3demu("asm --chip 2.1 p.qpu --uniforms u.bin");
  EXPECT_EQ(hex.status, 0);
  EXPECT_EQ(hex.output, kWords);
  EXPECT_EQ(contents("u.bin"), std::string("\0\xa0\0\0", 4));
  EXPECT_EQ(v3demu("asm --device rpi3 p.qpu -o p.bin").output, "");
  EXPECT_THAT(v3demu("disasm --device rpi0 --plain p.bin").output,
              StartsWith("load_imm ra3, nop, 0x12345678 (0.000000)\n"));
  EXPECT_EQ(v3demu("disasm --chip 2.1 --exact p.bin | " V3DEMU_TEST_COMMAND " asm --chip 2.1 -").output,
            kWords);
  // A word that is none, and one whose text does not say everything.
  file("p.hex", "100009e7099e7000 114258c0819e7549\n");
  const std::string exact = v3demu("disasm --chip 2.1 --exact p.hex").output;
  EXPECT_THAT(exact, StartsWith(".word 0x100009e7099e7000 "));
  EXPECT_THAT(exact, HasSubstr("\n.word 0x114258c0819e7549 #    1  fadd r3, r2, r5 ; mov ra0.8a, r1\n"));
  EXPECT_NE(v3demu("asm --chip 2.1 --device rpi3 p.qpu").status, 0);
  EXPECT_THAT(v3demu("asm --device pi3 p.qpu").output, HasSubstr("no board \"pi3\""));
}

TEST_F(AssemblyTest, CheckOfVideoCoreIv) {
  file("good.qpu", "nop\nnop\nmov tlb_color_all, r0\nend\n");
  EXPECT_EQ(v3demu("asm --chip 2.1 --check good.qpu -o good.bin").output, "");
  file("bad.qpu", "mov ra1, r0\nmov r1, ra1\nadd r0, r0, nop\nend\n");
  const Result bad = v3demu("asm --chip 2.1 --check bad.qpu -o bad.bin");
  EXPECT_EQ(bad.status, 1);
  EXPECT_THAT(bad.output, HasSubstr("bad.qpu:2: undefined: file-early: instruction 1, \"mov r1, ra1 ; "));
  EXPECT_THAT(bad.output,
              HasSubstr("bad.qpu:3: hardly-meant: nop-operand: instruction 2, \"add r0, r0, nop ; "));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "bad.bin"));
  const Result kinds = v3demu("asm --chip 2.1 --check=hardly-meant bad.qpu -o bad.bin");
  EXPECT_EQ(kinds.status, 1);
  EXPECT_THAT(kinds.output, testing::Not(HasSubstr("undefined")));
  v3demu("asm --chip 2.1 bad.qpu -o bad.bin");
  EXPECT_THAT(v3demu("disasm --device rpi2 --check bad.bin").output,
              HasSubstr("bad.bin: undefined: file-early: instruction 1"));
}

TEST_F(AssemblyTest, Check) {
  file("good.qpu", "mov rf4, 1\nend\n");
  EXPECT_EQ(v3demu("asm --check good.qpu -o good.bin").status, 0);
  EXPECT_EQ(v3demu("disasm --check good.bin").status, 0);
  file("bad.qpu", "\nldvary.rf1\nadd rf2, rf0, rf40\nend\n");
  const Result bad = v3demu("asm --check bad.qpu -o bad.bin");
  EXPECT_EQ(bad.status, 1);
  EXPECT_THAT(
      bad.output,
      StartsWith("bad.qpu:3: hardly-meant: ldvary-c-early: instruction 1, \"add rf2, rf0, rf40 ; nop\": "));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "bad.bin"));
  EXPECT_EQ(v3demu("asm bad.qpu -o bad.bin").status, 0);
  const Result listing = v3demu("disasm --check bad.bin");
  EXPECT_EQ(listing.status, 1);
  EXPECT_THAT(listing.output, HasSubstr("bad.bin: hardly-meant: ldvary-c-early: instruction 1"));
  EXPECT_THAT(v3demu("disasm --four-threads --check bad.bin").output,
              HasSubstr("undefined: rf-range: instruction 1"));
}

// What nobody knows of the hardware is told where a program depends on it; that is no failure.
TEST_F(AssemblyTest, CheckTellsAssumptions) {
  file("p.qpu", "setnnmode_uu\nsetnnmode_ss ; v8dot rf4, rf5, rf6\nend\n");
  const Result assembled = v3demu("asm --check p.qpu -o p.bin");
  EXPECT_EQ(assembled.status, 0);
  EXPECT_THAT(assembled.output, StartsWith("p.qpu:2: assumed: nnmode-pair: instruction 1, \"setnnmode_ss"));
  const Result listing = v3demu("disasm --check p.bin");
  EXPECT_EQ(listing.status, 0);
  EXPECT_THAT(listing.output, HasSubstr("p.bin: assumed: nnmode-pair: instruction 1"));
}

// By default what boards run is told and is no failure; kinds that are named are all that is told, and fail.
TEST_F(AssemblyTest, CheckOfKinds) {
  file("p.qpu", "thrsw\nnop\nthrsw\nvfadd rf4, rf5, rf6\nnop\nend\n");
  const Result all = v3demu("asm --check p.qpu -o p.bin");
  EXPECT_EQ(all.status, 0);
  EXPECT_THAT(all.output, HasSubstr("p.qpu:3: never-emitted: thrsw-close: instruction 2"));
  EXPECT_THAT(all.output, HasSubstr("p.qpu:4: assumed: half-sums: instruction 3"));
  for (const std::string command : {"asm -o q.bin p.qpu", "disasm --plain p.bin"}) {
    EXPECT_THAT(v3demu(command + " --check=undefined,hardly-meant").status, 0);
    const Result named = v3demu(command + " --check=undefined,never-emitted");
    EXPECT_EQ(named.status, 1);
    EXPECT_THAT(named.output, HasSubstr("never-emitted: thrsw-close: instruction 2"));
    EXPECT_THAT(named.output, testing::Not(HasSubstr("half-sums")));
    const Result odd = v3demu(command + " --check=odd");
    EXPECT_NE(odd.status, 0);
    EXPECT_THAT(odd.output, HasSubstr("\"odd\" is no kind of hazard"));
  }
}

TEST_F(AssemblyTest, Errors) {
  file("p.qpu", "nop\n  add rf1, rf2\n  frob\n");
  const Result bad = v3demu("asm p.qpu -o p.bin");
  EXPECT_EQ(bad.status, 1);
  EXPECT_EQ(bad.output,
            "p.qpu:2:15: add has 2 operands\np.qpu:3:3: \"frob\" is no operation, signal or branch\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "p.bin"));
  file("odd.bin", std::string("\0\1\2", 3));
  EXPECT_EQ(v3demu("disasm odd.bin").status, 1);
  file("text.hex", "38003186bb03f000\n 1234\n");
  EXPECT_EQ(v3demu("disasm text.hex").output,
            "text.hex:2:2: a word of 16 hexadecimal digits is expected, or two of 8\n");
  EXPECT_EQ(v3demu("asm none.qpu").output, "v3demu asm: none.qpu: No such file or directory\n");
  EXPECT_EQ(v3demu("asm .").status, 1);
}

}  // namespace
