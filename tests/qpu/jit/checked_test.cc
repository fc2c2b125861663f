/// Threads whose hazards are checked run compiled where all was checked, and only there.

#include <gmock/gmock.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "gpu/qpu/isa/assembler.h"
#include "gpu/qpu/trace/watch.h"
#include "tests/qpu/jit/twins.h"

namespace v3d::qpu {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class CheckedPrograms : public TwinsOfTargets {
 protected:
  /// Runs it checked in turns as dispatches do, beside an interpreted twin. @return  the reports
  std::vector<std::string> check(const std::string& text, uint32_t turns) {
    const Assembly assembly = assemble(chip::Generation::k71, text);
    EXPECT_TRUE(assembly.errors.empty()) << to_string(assembly.errors.at(0));
    load(assembly.words);
    std::vector<std::string> lines;
    WatchOptions options;
    options.hazard_sink = [&](std::string_view line) { lines.emplace_back(line); };
    options.compiler = checked_by;
    Watch watch(chip::Generation::k71, std::move(options));
    const auto job = watch.begin_job(1);
    both([&](Twin& twin) {
      twin.t().reset();
      twin.start();
      twin.t().four_threads = true;
      twin.t().msf = splat(1u);
      twin.t().rf[1] = splat(turns);
      if (&twin == &compiled) job->start("compute", twin.t());
      Stop stop = Stop::kBudget;
      while (stop == Stop::kBudget) {
        twin.t().stop_at_block = true;
        twin.t().budget = 4000;
        stop = twin.run();
        checked_by->finish();
      }
      EXPECT_EQ(stop, Stop::kEnd);
    });
    EXPECT_EQ(plain.t().instructions, compiled.t().instructions);
    for (int r = 1; r < 64; ++r) EXPECT_TRUE(same(plain.t().rf[r], compiled.t().rf[r])) << r;
    return lines;
  }
  uint64_t compilations() const {
    return checked_by->statistics().programs[static_cast<size_t>(jit::Outcome::kCompiled)];
  }

  jit::JitCompiler* checked_by = &compiler;
};

INSTANTIATE_TEST_SUITE_P(Targets, CheckedPrograms, kTargets, kNameOfTarget);

const char* const kLoop = "loop:\nadd rf2, rf2, rf1\nsub.pushz rf1, rf1, 1\nb.anyna loop\nnop\nnop\nnop\n";

TEST_P(CheckedPrograms, LongOnesRunCompiled) {
  EXPECT_THAT(check(std::string(kLoop) + "end", 100'000), IsEmpty());
  EXPECT_EQ(compilations(), 1u);
  EXPECT_GE(compiler.statistics().leaves[static_cast<size_t>(jit::CodeExit::Why::kGap)], 1u);
}

TEST_P(CheckedPrograms, ShortOnesAreInterpreted) {
  EXPECT_THAT(check(std::string(kLoop) + "end", 100), IsEmpty());
  EXPECT_EQ(compilations(), 0u);
}

// What takes long to compile is compiled by another thread than the one that others wait for.
TEST_P(CheckedPrograms, LargeOnesAreCompiledBeside) {
  jit::JitCompiler beside(GetParam());
  std::mutex mutex;
  std::vector<std::thread::id> makers;
  beside.set_listener([&](const jit::CodeMemory&, const std::string&) {
    const std::lock_guard lock(mutex);
    makers.push_back(std::this_thread::get_id());
  });
  checked_by = &beside;
  std::string body;
  for (size_t n = 0; n < jit::JitCompiler::kMaxWordsAtOnce; ++n) body += "add rf2, rf2, rf1\n";
  EXPECT_THAT(check("loop:\n" + body + std::string(kLoop).substr(6) + "end", 100), IsEmpty());
  EXPECT_EQ(compilations(), 1u);
  ASSERT_EQ(makers.size(), 1u);
  EXPECT_NE(makers[0], std::this_thread::get_id());
  EXPECT_GE(beside.statistics().leaves[static_cast<size_t>(jit::CodeExit::Why::kGap)], 1u);  // and it ran

  makers.clear();
  EXPECT_THAT(check(std::string(kLoop) + "end", 100'000), IsEmpty());
  EXPECT_THAT(makers, testing::ElementsAre(std::this_thread::get_id()));
}

// Two clients have the same program at the same address, and one of them no memory where the other jumps.
TEST_P(CheckedPrograms, NoWordsAreComparedThatAProgramDoesNotKnow) {
  std::string text = "mov.pushz -, rf3\nb.anya near\nnop\nnop\nnop\nb far\nnop\nnop\nnop\nnear:\n" +
                     std::string(kLoop) + "end\n";
  for (int n = 0; n < 512; ++n) text += "nop\n";
  const Assembly assembly = assemble(chip::Generation::k71, text + "far:\nb near\nnop\nnop\nnop\n");
  ASSERT_TRUE(assembly.errors.empty()) << to_string(assembly.errors.at(0));
  WatchOptions options;
  options.hazard_sink = [](std::string_view line) { ADD_FAILURE() << line; };
  options.compiler = &compiler;
  Watch watch(chip::Generation::k71, std::move(options));
  const auto job = watch.begin_job(1);
  constexpr uint32_t kPage = 4096;
  for (const bool jumps : {true, false}) {
    const uint32_t code_bytes = jumps ? 2 * kPage : kPage;
    Twin twin(&compiler, chip::Generation::k71, code_bytes);
    twin.memory().write(Twin::kCode, assembly.words.data(),
                        std::min<size_t>(code_bytes, assembly.words.size() * 8));
    twin.t().reset();
    twin.start();
    twin.t().four_threads = true;
    twin.t().msf = splat(1u);
    twin.t().rf[1] = splat(100'000u);
    twin.t().rf[3] = splat(jumps ? 1u : 0u);
    job->start("compute", twin.t());
    twin.t().budget = 10'000'000;
    EXPECT_EQ(twin.run(), Stop::kEnd);
    EXPECT_EQ(twin.faults(), 0u) << jumps;
  }
}

// The thread is in compiled code for long when it comes there.
TEST_P(CheckedPrograms, WhatFollowsOnALongLoopIsChecked) {
  const auto lines = check(std::string(kLoop) + "ldvary.rf3\nadd rf4, rf0, rf2\nend", 100'000);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("ldvary-c-early: instruction 7, \"add rf4, rf0"));
}

// A way that is taken once, in the last turns of the loop.
TEST_P(CheckedPrograms, WhatALongLoopSeldomDoesIsChecked) {
  const auto lines = check(
      "loop:\nxor.pushz -, rf1, 3\nb.anyna on\nnop\nnop\nnop\nldvary.rf3\nadd rf4, rf0, rf2\n"
      "on:\nsub.pushz rf1, rf1, 1\nb.anyna loop\nnop\nnop\nnop\nend",
      100'000);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("ldvary-c-early: instruction 6, \"add rf4, rf0"));
}

// What is found in the first words after a jump depends on those before it: after one turn the C of this
// ldvary is read too early, after several it is that of the turn before.
TEST_P(CheckedPrograms, WhatCameBeforeIsKnownBehindCompiledCode) {
  const std::string text =
      "loop:\nadd rf2, rf2, rf1\nsub.pushz rf1, rf1, 1\nb.anyna loop\nnop\nnop\n"
      "ldvary.rf3\nadd rf4, rf0, rf2\nend";
  const auto lines = check(text, 1);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("ldvary-c-early: instruction"));
  for (const uint32_t turns : {100u, 100'000u}) EXPECT_THAT(check(text, turns), IsEmpty()) << turns;
}

// Nothing is known of the way to an instruction that another program had at the same address.
TEST_P(CheckedPrograms, ProgramsAreWrittenOverOthers) {
  const std::string ends = "nop ; nop ; thrsw\nnop\nnop\n";
  EXPECT_THAT(check(std::string(kLoop) + ends + "nop\nnop\nend", 100'000), IsEmpty());
  EXPECT_THAT(check(std::string("xor rf5, rf1, rf2\n") + kLoop + ends + "nop\nend", 100'000), IsEmpty());
}

}  // namespace
}  // namespace v3d::qpu
