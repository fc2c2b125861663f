/// Which instruction the first MMU fault of a thread is told to be, in compiled code of both hosts as in the
/// interpreter.

#include <string>
#include <vector>

#include "gpu/base/qpu_place.h"
#include "gpu/qpu/isa/assembler.h"
#include "gpu/qpu/run/observer.h"
#include "tests/qpu/jit/twins.h"

namespace v3d::qpu {
namespace {

constexpr uint32_t kNowhere = 0x00900000;

struct Case {
  const char* text;
  int index;  ///< of the instruction that faults
  uint32_t second_uniform = 0;
};
// The first uniform is kNowhere. What follows on the instruction ought not to count.
const Case kCases[] = {
    {"ldunifrf.rf1\nnop\nmov tmua, rf1\nnop\nthrsw\nnop\nnop\nldtmu.rf2\nmov tmua, rf1\nnop\nend", 2},
    {"ldunifrf.rf1\nnop\nmov tmud, rf1\nmov tmua, rf1 ; thrsw\nnop\nnop\ntmuwt -\nend", 3},
    // Lanes apart from each other, byte loads, a sum, an exchange
    {"ldunifrf.rf1\neidx rf2\nshl rf2, rf2, 4\nadd rf2, rf2, rf1\nmov tmua, rf2\nnop\nnop\nldtmu.rf2\nend",
     4},
    {"ldunifrf.rf1\nnop\nmov tmuau, rf1\nnop\nnop\nldtmu.rf2\nend", 2, 0xfffffff8},
    {"ldunifrf.rf1\nmov rf2, 1\nmov tmud, rf2\nmov tmuau, rf1\ntmuwt -\nend", 3, 0xffffff07},
    {"ldunifrf.rf1\nmov rf2, 1\nmov tmud, rf2\nmov tmuau, rf1\ntmuwt -\nend", 3, 0xffffff17},
    // Under a condition
    {"ldunifrf.rf1\neidx.pushz -\nnop\nmov.ifa tmua, rf1\nnop\nnop\nldtmu.rf2\nend", 3},
    // In a block after a branch, at its second turn
    {"ldunifrf.rf1\nmov rf2, 0\nloop:\nmov rf3, rf2\nadd.pushz rf2, rf2, rf1\nmov tmua, rf3\nnop\nnop\n"
     "ldtmu.rf4\nb.anyna loop\nnop\nnop\nnop\nend",
     4},
    // The second stream of uniforms
    {"ldunifrf.rf1\nnop\nmov unifa, rf1\nnop\nnop\nnop\nldunifarf.rf2\nnop\nend", 6},
};

class FaultPlace : public TwinsOfTargets {
 protected:
  void SetUp() override {
    Twins::SetUp();
    both([](Twin& twin) { twin.t().reset(); });
  }
  void load_text(const std::string& text) {
    const Assembly assembly = assemble(chip::Generation::k71, text);
    ASSERT_TRUE(assembly.errors.empty()) << text << to_string(assembly.errors.at(0));
    load(assembly.words);
  }
  static void start(Twin& twin, const Case& c) {
    twin.start();
    twin.t().final_section = true;
    twin.t().msf = splat(1u);
    const uint32_t uniforms[] = {kNowhere, c.second_uniform};
    twin.memory().write(Twin::kUniforms, uniforms, sizeof(uniforms));
  }
  static void expect_place(Twin& twin, const Case& c, const char* engine) {
    const uint64_t faults = twin.faults();
    const mmu::FaultPlace place = twin.fault_place();
    EXPECT_NE(faults, 0u) << engine << '\n' << c.text;
    EXPECT_STREQ(place.stage, "test") << engine << '\n' << c.text;
    EXPECT_EQ(place.program, Twin::kCode);
    EXPECT_EQ((place.instruction - Twin::kCode) / 8, static_cast<uint32_t>(c.index)) << engine << '\n'
                                                                                     << c.text;
  }
};

INSTANTIATE_TEST_SUITE_P(Targets, FaultPlace, kTargets, kNameOfTarget);

TEST_P(FaultPlace, IsTheInstructionThatAccesses) {
  for (const Case& c : kCases) {
    load_text(c.text);
    both([&](Twin& twin) {
      start(twin, c);
      Stop stop = Stop::kSwitch;
      while (stop == Stop::kSwitch) stop = twin.run();
      EXPECT_EQ(stop, Stop::kEnd);
      expect_place(twin, c, &twin == &plain ? "interpreted" : "compiled");
    });
  }
  EXPECT_EQ(compiler.statistics().executed.interpreted, 0u);
}

TEST_P(FaultPlace, IsToldOfThreadsInSeries) {
  for (const Case& c : kCases) {
    load_text(c.text);
    start(compiled, c);
    const std::shared_ptr<const Program> program = compiled.program();
    Series series;
    series.begin(*program, program->compiled(compiled.t()));
    const ProgramScope scope("test", Twin::kCode, compiled.t());
    EXPECT_EQ(series.run(compiled.t()), Stop::kEnd);
    series.end();
    expect_place(compiled, c, "in series");
  }
}

TEST_P(FaultPlace, IsToldOfUniformsAndOfCodeItself) {
  const Case uniform = {"nop\nnop\nldunifrf.rf1\nnop\nend", 2};
  const Case code = {"nop\nb zero_addr+0x900008\nnop\nnop\nnop", 0};
  both([&](Twin& twin) {
    const auto load_words = [&](const char* text) {
      const auto words = assemble(chip::Generation::k71, text).words;
      twin.memory().write(Twin::kCode, words.data(), words.size() * 8);
      twin.forget_programs();
    };
    load_words(uniform.text);
    start(twin, uniform);
    twin.t().uniforms = kNowhere;
    EXPECT_EQ(twin.run(), Stop::kEnd);
    expect_place(twin, uniform, "uniforms");
    load_words(code.text);
    start(twin, code);
    EXPECT_EQ(twin.run(), Stop::kHang);  // it reads zeros
    EXPECT_NE(twin.faults(), 0u);
    EXPECT_EQ(twin.fault_place().instruction, 0x900008u);
  });
}

TEST_P(FaultPlace, OutsideOfProgramsThereIsNone) {
  load_text(kCases[0].text);
  start(compiled, kCases[0]);
  EXPECT_EQ(compiled.run(), Stop::kEnd);
  compiled.faults();
  compiled.fault_place();
  EXPECT_EQ(compiled.memory().load<uint32_t>(kNowhere + 0x10000), 0u);
  EXPECT_EQ(compiled.faults(), 1u);
  EXPECT_EQ(compiled.fault_place().stage, nullptr);
}

/// Accesses of unmapped pages, each of a signal, end the budget long before it is used up by instructions.
TEST_P(FaultPlace, EveryFaultCostsAPartOfTheBudget) {
  load_text(
      "ldunifrf.rf1\neidx rf2\nshl rf2, rf2, 12\nadd rf2, rf2, rf1\nmov rf3, 1\nshl rf3, rf3, 15\n"
      "loop:\nmov tmud, rf1\nmov tmua, rf2\nadd rf2, rf2, rf3\nb.a0 done\nnop\nnop\nnop\n"
      "b loop\nnop\nnop\nnop\ndone:\nnop\nend");
  start(compiled, {"", 0});
  compiled.t().stop_at_block = true;
  compiled.t().budget = 4096;
  EXPECT_EQ(compiled.run_and_pay(), Stop::kBudget);
  EXPECT_LT(compiled.t().instructions, 64u);
  EXPECT_GE(compiled.faults(), 4096 / kFaultCost);
  // It goes on where it was.
  const uint64_t before = compiled.t().instructions;
  compiled.t().budget = 4096;
  EXPECT_EQ(compiled.run_and_pay(), Stop::kBudget);
  EXPECT_GT(compiled.t().instructions, before);
  EXPECT_LT(compiled.t().instructions, before + 64);
}

}  // namespace
}  // namespace v3d::qpu
