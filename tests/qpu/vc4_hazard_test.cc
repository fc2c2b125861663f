#include "gpu/qpu/check/vc4_hazard.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/qpu/isa/vc4.h"
#include "gpu/qpu/isa/vc4_assembler.h"
#if V3DEMU_HAVE_MESA
#include "tests/qpu/mesa_vc4.h"
#endif

namespace v3d::qpu::vc4 {
namespace {

std::set<std::string> tags(std::string_view text) {
  const Assembly assembly = assemble(text);
  for (const AssemblyError& error : assembly.errors) ADD_FAILURE() << to_string(error);
  std::set<std::string> found;
  for (const HazardReport& report : check_program(assembly.words)) found.insert(info(report.hazard).tag);
  return found;
}
using Tags = std::set<std::string>;

TEST(Vc4Hazard, ProgramsOfMesaBreakNone) {
  EXPECT_EQ(tags("nop\n"
                 "nop\n"
                 "mov tlb_color_all, uni\n"
                 "sig_end nop\n"
                 "nop\n"
                 "sig_unlock_score nop\n"),
            Tags{});
  EXPECT_EQ(tags("load_imm vr_setup, nop, 0x00201a00\n"
                 "mov r0, vpm_read\n"
                 "load_imm vw_setup, nop, 0x00001a00\n"
                 "mov vpm, r0 ; mov r1, vpm_read\n"
                 "mov sfu_recip, r1\n"
                 "nop\n"
                 "nop\n"
                 "mov vpm, r4\n"
                 "end"),
            Tags{});
}

// One program for each rule that Mesa does not have.
TEST(Vc4Hazard, RulesOfBroadcom) {
  EXPECT_EQ(tags(".word 0x100009e7099e7000\nend"), Tags{"reserved"});
  EXPECT_EQ(tags("nop\nsig_end nop\nnop\n"), Tags{"no-end"});
  EXPECT_EQ(tags("sig_end nop\nnop\nmov r0, uni\n"), Tags{"end-last"});
  EXPECT_EQ(tags("mov sfu_exp, r0\nnop\nmov r0, r4\nend"), Tags{"sfu-r4"});
  EXPECT_EQ(tags("mov uniforms_addr, r0\nmov tmu0_t, r1\nnop\nmov tmu0_s, r0\nload_tmu0 nop\nend"),
            Tags{"parameter-early"});
  EXPECT_EQ(tags("mov tmu0_t, uni\nmov tmu0_s, r0\nend"), Tags{"uniform-beside"});
  EXPECT_EQ(tags("add tmu0_s, r0, uni\nend"), Tags{});  // direct: takes none
  EXPECT_EQ(tags("add r0, r1, r2 ; fmul r0, r1, r2\nend"), Tags{"two-writes"});
  EXPECT_EQ(tags("add.zs r0, r1, r2 ; fmul.zc r0, r1, r2\nend"), Tags{});
  EXPECT_EQ(tags("mov r5, r0 ; fmul r1, vary, r0\nend"), Tags{"vary-r5"});
  EXPECT_EQ(tags("l: branch l\nnop\nbranch l\nnop\nnop\nnop\nend"), Tags{"branch-in-slot"});
  EXPECT_EQ(tags("l: branch l\nnop\nnop\nbranch l\nnop\nnop\nnop\nend"), Tags{});
  EXPECT_EQ(tags("l: branch l\nend"), Tags{"switch-in-branch"});
  EXPECT_EQ(tags("load_imm vr_setup, nop, 0x00201a00\nload_imm vr_setup, nop, 0x00201a00\n"
                 "load_imm vr_setup, nop, 0x00201a00\nend"),
            Tags{"vpm-queue"});
  EXPECT_EQ(tags("load_imm vr_setup, nop, 0x00101a00\nmov r0, vpm_read\nmov r0, vpm_read\nend"),
            Tags{"vpm-beyond"});
  EXPECT_EQ(tags(".word 0xe8024e2700000005\nend"), Tags{"semaphore-beside"});
  EXPECT_EQ(tags("mov r0, nop\nend"), Tags{"nop-operand"});
}

TEST(Vc4Hazard, Text) {
  const Assembly assembly = assemble("mov ra1, r0\nmov r0, ra1\nend");
  const std::vector<HazardReport> found = check_program(assembly.words);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(to_string(found[0], assembly.words[1]),
            "undefined: file-early: instruction 1, \"mov r0, ra1 ; nop nop, r0, r0\": "
            "reads a register of a file that the word before wrote");
}

#if V3DEMU_HAVE_MESA

// Programs like those of a compiler that errs now and then.
class RandomPrograms {
 public:
  std::vector<uint64_t> next() {
    const bool threaded = one_in(3), tlb = one_in(3);
    std::vector<uint64_t> words;
    const int count = 4 + below(14);
    for (int n = 0; n < count; ++n) words.push_back(word(threaded, tlb));
    Instruction end = one_in(8) ? decode(word(threaded, tlb)) : Instruction{};
    if (end.form() != Form::kAlu) end = {};
    end.signal = Signal::kEnd;
    words.push_back(encode(end));
    for (int n = 0; n < 2; ++n) words.push_back(one_in(8) ? word(false, tlb) : encode({}));
    return words;
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool one_in(int n) { return below(n) == 0; }
  uint8_t destination(bool tlb) {
    if (one_in(tlb ? 4 : 30)) return static_cast<uint8_t>(44 + below(3));
    if (one_in(8)) {
      static constexpr uint8_t kPorts[] = {36, 37, 40, 48, 49, 52, 53, 56, 56, 57, 60};
      return kPorts[below(std::size(kPorts))];
    }
    return one_in(3) ? static_cast<uint8_t>(10 + below(8)) : static_cast<uint8_t>(32 + below(4));
  }
  uint8_t source() {
    static constexpr uint8_t kPorts[] = {32, 35, 38, 39, 42, 48, 51};
    return one_in(3) ? kPorts[below(std::size(kPorts))] : static_cast<uint8_t>(10 + below(8));
  }
  uint64_t word(bool threaded, bool tlb) {
    Instruction i;
    i.raddr_a = source();
    i.raddr_b = source();
    i.ws = one_in(2);
    if (!one_in(3)) {
      i.op_add = static_cast<uint8_t>(below(32));
      i.cond_add = Cond::kAlways;
      i.waddr_add = destination(tlb);
      i.add_a = static_cast<uint8_t>(below(8));
      i.add_b = static_cast<uint8_t>(below(8));
    }
    if (one_in(2)) {
      i.op_mul = static_cast<uint8_t>(below(8));
      i.cond_mul = Cond::kAlways;
      i.waddr_mul = destination(false);
      i.mul_a = static_cast<uint8_t>(below(8));
      i.mul_b = static_cast<uint8_t>(below(8));
    }
    if (threaded && one_in(4)) {
      static constexpr Signal kSignals[] = {Signal::kSwitch, Signal::kSwitch, Signal::kLastSwitch,
                                            Signal::kLoadTmu0};
      i.signal = kSignals[below(4)];
    } else if (one_in(6)) {
      static constexpr Signal kSignals[] = {Signal::kLoadTmu1, Signal::kColorLoad, Signal::kWaitScoreboard,
                                            Signal::kLoadImmediate, Signal::kBranch};
      i.signal = kSignals[below(5)];
      i.immediate = static_cast<uint32_t>(random_());
    } else if (one_in(8)) {
      i.signal = Signal::kSmallImmediate;
      i.raddr_b = static_cast<uint8_t>(40 + below(24));
      i.mul_a = static_cast<uint8_t>(below(5));
      i.mul_b = static_cast<uint8_t>(below(5));
    }
    return encode(i);
  }
  std::mt19937_64 random_{0x5eed};
};

// Mesa stops at the first rule that a program breaks; here that one is the first of Mesa's, too.
TEST(Vc4Hazard, RandomProgramsAreJudgedAsMesaJudgesThem) {
  RandomPrograms programs;
  std::map<std::string, int> seen;
  for (int n = 0; n < 60000; ++n) {
    const std::vector<uint64_t> words = programs.next();
    const char* wrong = mesa_vc4_validate(words.data(), static_cast<uint32_t>(words.size()));
    std::string mine = "nothing";
    for (const HazardReport& report : check_program(words)) {
      if (!info(report.hazard).mesa) continue;
      mine = info(report.hazard).mesa;
      break;
    }
    const std::string text = wrong ? wrong : "nothing";
    ASSERT_EQ(text.substr(0, mine.size()), mine) << "program " << n << ": " << text;
    ++seen[mine];
  }
  for (int n = 0; n <= static_cast<int>(Hazard::kLoadBeforeSwitch); ++n)
    EXPECT_GT(seen[info(static_cast<Hazard>(n)).mesa], 5) << info(static_cast<Hazard>(n)).mesa;
  EXPECT_GT(seen["nothing"], 500);
}

#endif

}  // namespace
}  // namespace v3d::qpu::vc4
