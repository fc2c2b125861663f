/// When programs are compiled, when not, and how threads change between the engines.

#include <new>
#include <string>
#include <tuple>

#include "gpu/qpu/isa/assembler.h"
#include "gpu/qpu/run/observer.h"
#include "tests/qpu/jit/twins.h"

namespace v3d::qpu {
namespace {

class JitEngines : public TwinsOfTargets {
 protected:
  void SetUp() override {
    Twins::SetUp();
    both([](Twin& twin) { twin.t().reset(); });
  }
  void load_text(const std::string& text) {
    const Assembly assembly = assemble(chip::Generation::k71, text);
    ASSERT_TRUE(assembly.errors.empty()) << to_string(assembly.errors.at(0));
    load(assembly.words);
  }
  void start() {
    both([](Twin& twin) {
      twin.start();
      twin.t().final_section = true;
      twin.t().msf = splat(1u);
    });
  }
  uint64_t programs(jit::Outcome outcome) const {
    return compiler.statistics().programs[static_cast<size_t>(outcome)];
  }
  uint64_t leaves(jit::CodeExit::Why why) const {
    return compiler.statistics().leaves[static_cast<size_t>(why)];
  }
};

INSTANTIATE_TEST_SUITE_P(Targets, JitEngines, kTargets, kNameOfTarget);

TEST_P(JitEngines, CompiledOnceForManyThreads) {
  load_text("add rf1, rf1, 1\nend");
  for (int n = 0; n < 5; ++n) {
    start();
    EXPECT_EQ(run_both(), Stop::kEnd);
  }
  EXPECT_EQ(programs(jit::Outcome::kCompiled), 1u);
  EXPECT_EQ(leaves(jit::CodeExit::Why::kGap), 0u);
  EXPECT_EQ(compiler.statistics().executed.compiled, executed);
  EXPECT_EQ(compiler.statistics().executed.interpreted, 0u);
}

TEST_P(JitEngines, InterpretedUntilItIsWorthIt) {
  load_text("nop\nnop\nend");
  jit::JitCompiler patient(GetParam(), 20);
  Twin twin(&patient, chip::Generation::k71);
  const auto words = assemble(chip::Generation::k71, "nop\nnop\nend").words;
  twin.memory().write(Twin::kCode, words.data(), words.size() * 8);
  const auto compiled_after = [&](int threads) {
    for (int n = 0; n < threads; ++n) {
      twin.t().reset();
      twin.start();
      twin.t().final_section = true;
      EXPECT_EQ(twin.run(), Stop::kEnd);
    }
    return patient.statistics().programs[0];
  };
  EXPECT_EQ(compiled_after(4), 0u);  // of 5 instructions each: now it is worth it
  EXPECT_EQ(compiled_after(1), 1u);
}

TEST_P(JitEngines, SeriesDoWhatSingleThreadsDo) {
  load_text(
      "loop:\nsub.pushz rf1, rf1, 1\nb.anyna loop\nnop\nadd rf3, rf3, rf1\nmov rf4, rf3\nstvpmv 0, rf4\nend");
  Series series;
  const std::shared_ptr<const Program> program = compiled.program();
  const auto begin = [&](uint64_t budget) {
    start();
    both([&](Twin& twin) {
      for (Register r = 0; r < kNumRegisters; ++r) twin.t().at(r) = Lanes{};
      twin.t().rf[1] = splat(7u);
      twin.t().rf[3] = splat(static_cast<uint32_t>(executed));
      twin.t().budget = budget;
      twin.room().give_to(twin.t(), false);
    });
  };
  for (uint64_t budget = 1; budget < 60; ++budget) {
    begin(budget);
    series.begin(*program, budget % 2 != 0 ? program->compiled(compiled.t()) : nullptr);
    Stop stop = plain.run();
    EXPECT_EQ(series.run(compiled.t()), stop);
    EXPECT_EQ(plain.t().instructions, compiled.t().instructions);
    if (stop == Stop::kBudget) {
      compare(stop);
      executed += plain.t().instructions;
      both([](Twin& twin) { twin.t().budget = 100; });
      EXPECT_EQ(run_both(), Stop::kEnd);
    }
    compare_memory();
    if (stop == Stop::kEnd) executed += plain.t().instructions;
  }
  series.end();
  const Executions::Counts counts = compiler.statistics().executed;
  EXPECT_EQ(counts.compiled + counts.interpreted, executed);
}

// What a thread left in registers that the program writes before it reads them does not come back, nor does
// anything of the host.
TEST_P(JitEngines, SeriesKeepNothingOfTheHost) {
  load_text("nop\nmov rf1, 5\nmov rf2, 6\nmov rf3, rf1\nend");
  Series series;
  const std::shared_ptr<const Program> program = compiled.program();
  series.begin(*program, nullptr);
  start();
  compiled.t().reset();
  compiled.t().memory = compiled.memory();
  compiled.t().pc = Twin::kCode;
  compiled.t().final_section = true;
  compiled.t().budget = 2;
  EXPECT_EQ(series.run(compiled.t()), Stop::kBudget);
  EXPECT_EQ(compiled.t().rf[1][3], 5u);
  for (const int r : {2, 3}) EXPECT_TRUE(same(compiled.t().rf[r], Lanes{})) << r;
}

struct Watcher : Observer {
  void before(const Thread&, uint64_t, const Instruction*) override { ++seen; }
  void after(const Thread&, const char*) override {}
  void finished(const Thread&, Next) override {}
  int seen = 0;
};

TEST_P(JitEngines, WatchedThreadsAreInterpreted) {
  Watcher watcher;
  load_text("nop\nnop\nend");
  start();
  compiled.t().observer = &watcher;
  EXPECT_EQ(compiled.run(), Stop::kEnd);
  EXPECT_EQ(watcher.seen, 5);
  EXPECT_EQ(programs(jit::Outcome::kCompiled), 0u);
}

// Whatever ran before it in its series.
TEST_P(JitEngines, WatchedThreadsOfSeriesAreInterpreted) {
  load_text("nop\nnop\nend");
  const std::shared_ptr<const Program> program = compiled.program();
  for (const bool has_code : {false, true}) {  // when the series begins
    Watcher watcher;
    Series series;
    start();
    series.begin(*program, has_code ? program->compiled(compiled.t()) : nullptr);
    for (const bool watched : {false, true, false, true}) {
      start();
      compiled.t().observer = watched ? &watcher : nullptr;
      EXPECT_EQ(series.run(compiled.t()), Stop::kEnd);
    }
    series.end();
    EXPECT_EQ(watcher.seen, 10);
  }
  EXPECT_EQ(compiler.statistics().executed.compiled, 20u);
  EXPECT_EQ(compiler.statistics().executed.interpreted, 0u);
}

// Execution never comes to the page after the branch, so nothing reads it.
TEST_P(JitEngines, PagesThatDoNotExecuteAreNotRead) {
  load_text("b.na0 zero_addr+0x7fff000\nnop\nnop\nnop\nend");
  start();
  both([](Twin& twin) { twin.t().flag_a = kAllLanes; });
  EXPECT_EQ(run_both(), Stop::kEnd);  // compares the faults, too
  EXPECT_EQ(programs(jit::Outcome::kCompiled), 1u);
}

// A part that execution had not reached is compiled when it has.
TEST_P(JitEngines, LearnsNewCode) {
  load_text("b.na0 zero_addr+0x5a3000\nnop\nnop\nnop\nend");
  const auto behind =
      assemble(chip::Generation::k71, "loop:\nsub.pushz rf1, rf1, 1\nb.anyna loop\nnop\nnop\nnop\nend").words;
  both([&](Twin& twin) { twin.memory().write(Twin::kCode + 0x3000, behind.data(), behind.size() * 8); });
  start();
  both([](Twin& twin) {
    twin.t().flag_a = 0;
    twin.t().rf[1] = splat(5000u);
  });
  EXPECT_EQ(run_both(), Stop::kEnd);
  start();
  both([](Twin& twin) {
    twin.t().flag_a = 0;
    twin.t().rf[1] = splat(5000u);
  });
  EXPECT_EQ(run_both(), Stop::kEnd);
  EXPECT_EQ(programs(jit::Outcome::kCompiled), 2u);
}

TEST_P(JitEngines, ReturnsFromSubroutines) {
  load_text(
      "bl function\nnop\nnop\nnop\n"
      "bl function\nnop\nnop\nnop\n"
      "end\nfunction:\nb lri\nadd rf1, rf1, 1\nnop\nnop");
  start();
  EXPECT_EQ(run_both(), Stop::kEnd);
  EXPECT_EQ(leaves(jit::CodeExit::Why::kComputed), 2u);
  const Executions::Counts counts = compiler.statistics().executed;
  EXPECT_EQ(counts.compiled + counts.interpreted, executed);
  EXPECT_GT(counts.interpreted, 0u);
}

TEST_P(JitEngines, RotationAndSfuWritesOfOldChipsAreCompiled) {
  for (const char* text : {"nop ; mov r1, r0 ; rot.3\nend", "mov recip, rf1\nnop\nmov rf2, r4\nend"}) {
    ProgramCache cache(chip::Generation::k42, &compiler);
    const auto words = assemble(chip::Generation::k42, text).words;
    start();
    compiled.memory().write(Twin::kCode, words.data(), words.size() * 8);
    EXPECT_EQ(run(*cache.get(compiled.memory(), Twin::kCode), compiled.t()), Stop::kEnd);
  }
  EXPECT_EQ(programs(jit::Outcome::kCompiled), 2u);
  EXPECT_EQ(compiler.statistics().executed.interpreted, 0u);
}

// Equal registers share one of the host's, but not where a way leads that only the interpreter knows.
TEST_P(JitEngines, ReturnsToWhereRegistersWereEqual) {
  load_text(
      "mov rf1, rf2\nbl.alla function\nnop\nnop\nnop\nthrsw\nnop\nnop\nadd rf3, rf1, rf2\nthrsw\nthrsw\nend\n"
      "function:\nb lri\nadd rf1, rf1, 1\nnop\nnop");
  for (const bool calls : {true, false}) {
    start();
    both([&](Twin& twin) {
      twin.t().final_section = false;
      twin.t().flag_a = calls ? kAllLanes : 0;
      twin.t().rf[2] = splat(5u);
    });
    EXPECT_EQ(run_both(), Stop::kEnd);
    EXPECT_EQ(compiled.t().rf[3][0], calls ? 11u : 10u);
  }
}

// A result whose sign is also a flag comes back whole after a switch, of which the thread keeps but the bits
// of flags.
TEST_P(JitEngines, ResultsAndTheirFlagsOutliveSwitches) {
  load_text("thrsw\nnop\nsub.pushn rf1, rf2, rf3\nadd.ifa rf4, rf1, rf1\nthrsw\nthrsw\nend");
  start();
  both([](Twin& twin) {
    twin.t().final_section = false;
    twin.t().stop_at_switch = true;
    twin.t().rf[2] = kLaneIndex;
    twin.t().rf[3] = splat(7u);
  });
  EXPECT_EQ(run_both(), Stop::kEnd);
  EXPECT_EQ(compiled.t().rf[4][3], static_cast<uint32_t>(-8));
}

TEST_P(JitEngines, ShowsWhatItMade) {
  std::string text, name;
  size_t bytes = 0;
  compiler.set_lister([&](const std::string& listing) { text += listing; });
  compiler.set_listener([&](const jit::CodeMemory& code, const std::string& of) {
    bytes = code.size();
    name = of;
  });
  load_text("fadd rf4, rf2, rf3\nloop:\nsub.pushz rf1, rf1, 1\nb.anyna loop\nnop\nnop\nnop\nend");
  start();
  both([](Twin& twin) { twin.t().rf[1] = splat(3u); });  // how often it loops
  run_both();
  for (const char* part :
       {"fadd rf4, rf2, rf3", "sub.pushz rf1, rf1, 1", "b.anyna", "in 1 loops", "block 0: "})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_NE(text.find(std::to_string(bytes) + " bytes of host code"), std::string::npos) << text;
  EXPECT_NE(name.find("0x005a0000"), std::string::npos) << name;
}

// Nothing unwinds through compiled code.
TEST_P(JitEngines, WhatCallsThrowArrives) {
  struct FullTlb : TlbPort {
    void write_color(Thread&, const TlbSpec&, const Lanes*, LaneMask) override { throw std::bad_alloc(); }
    void write_depth(Thread&, const TlbSpec&, Lanes, LaneMask) override {}
    void read_color(Thread&, const TlbSpec&, Lanes*) override {}
  } tlb;
  load_text("mov tlb, rf1\nmov tlb, rf1\nend");
  start();
  compiled.t().tlb = &tlb;
  EXPECT_THROW(compiled.run(), std::bad_alloc);
  EXPECT_EQ(programs(jit::Outcome::kCompiled), 1u);
}

TEST(JitEngine, IsFoundByName) {
  std::string why;
  EXPECT_EQ(jit::find_engine("", &why), jit::Engine::kAuto);
  EXPECT_EQ(jit::find_engine("off", &why), jit::Engine::kOff);
  EXPECT_FALSE(jit::make_compiler(jit::Engine::kOff));
  for (const auto& [name, target, engine] : {std::tuple("avx512", jit::Target::kAvx512, jit::Engine::kAvx512),
                                             std::tuple("avx2", jit::Target::kAvx2, jit::Engine::kAvx2),
                                             std::tuple("neon", jit::Target::kNeon, jit::Engine::kNeon)}) {
    const auto found = jit::find_engine(name, &why);
    EXPECT_EQ(found.has_value(), jit::can_compile(target));
    if (found) {
      EXPECT_EQ(*found, engine);
    }
  }
  EXPECT_FALSE(jit::find_engine("fast", &why));
  EXPECT_NE(why.find("\"fast\""), std::string::npos);
}

}  // namespace
}  // namespace v3d::qpu
