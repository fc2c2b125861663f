/// Compiled runs of V3D 2.1's instructions leave behind what the interpreter does, for each target that the
/// host has.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpu/qpu/graph/text.h"
#include "gpu/qpu/graph/vc4_front_end.h"
#include "gpu/qpu/isa/vc4_assembler.h"
#include "gpu/qpu/jit/jit.h"
#include "gpu/qpu/jit/run_compiler.h"
#include "gpu/qpu/run/vc4_alu.h"
#include "tests/qpu/vc4_random.h"

namespace v3d::qpu::vc4 {
namespace {

/// Makes code that is sure from the begin.
class Sure : public jit::GraphCompiler {
 public:
  using GraphCompiler::GraphCompiler;
  std::unique_ptr<const RunCode> compile(const Stretch& stretch, bool) override {
    return GraphCompiler::compile(stretch, true);
  }
};

class Vc4Compiled : public RandomPrograms {
 protected:
  void SetUp() override {
    for (const jit::Target target : jit::kAllTargets)
      if (jit::can_compile(target)) compilers.push_back(std::make_unique<jit::GraphCompiler>(target, 0));
    if (jit::can_compile(jit::Target::kAvx512))
      compilers.push_back(std::make_unique<Sure>(jit::Target::kAvx512, 0));
    if (compilers.empty()) GTEST_SKIP() << jit::why_no_target();
  }

  /// What is compiled, and reaches units only now and then.
  uint64_t dense_instruction() {
    for (;;) {
      Instruction i = decode(random());
      if (i.form() != Form::kAlu && random() % 4) continue;
      if (i.form() == Form::kBranch || i.form() == Form::kSemaphore || i.signal == Signal::kEnd) continue;
      if (i.signal == Signal::kColorLoadEnd) continue;
      // Who has nothing to load hangs.
      const bool loads = i.signal == Signal::kLoadTmu0 || i.signal == Signal::kLoadTmu1;
      if (loads && (waiting == 0 || i.signal == Signal::kLoadTmu1)) continue;
      if (loads) --waiting;
      const bool reaches_units = random() % 8 == 0;
      i.raddr_a = random() % 16 ? i.raddr_a % 32 : i.raddr_a;
      if (i.signal != Signal::kSmallImmediate && random() % 16) i.raddr_b %= 32;
      if (i.signal == Signal::kSmallImmediate && random() % 16) i.raddr_b %= 48;  // what is no rotation
      i.waddr_add = random() % 4 ? i.waddr_add % 32 : 32 + i.waddr_add % 4;
      i.waddr_mul = random() % 4 ? i.waddr_mul % 32 : 32 + i.waddr_mul % 4;
      if (i.form() == Form::kAlu && random() % 4) i.unpack = 0;
      if (i.pm) i.pack = random() % 2 ? static_cast<uint8_t>(3 + i.pack % 5) : 0;
      if (!i.pm && random() % 2) i.pack = 0;
      if (random() % 4) i.sf = false;
      if (i.sf || random() % 2) i.cond_add = Cond::kAlways;
      if (i.sf || i.pack != 0 || random() % 2) i.cond_mul = Cond::kAlways;
      if (reaches_units) {
        constexpr uint8_t kPorts[] = {43, 44, 45, 46, 48, 49, 52, 53, 54, 55, 56, 56, 57, 58, 59};
        i.waddr_add = kPorts[random() % std::size(kPorts)];
        if (i.waddr_add == 56 && !is_set_up && random() % 16) i.waddr_add = 57;  // there is little memory
        i.pack = 0;
      }
      if (flaw(i)) continue;
      if (i.waddr_add >= 56 && (i.form() == Form::kLoadImmediate || i.op_add != 0)) {
        is_set_up = i.waddr_add != 56;
        if (!is_set_up) waiting = std::min(waiting + 1, 12);
      }
      return encode(i);
    }
  }

  std::unique_ptr<Thread> any_thread(std::span<const Varying> varyings, uint32_t specials) {
    auto begin = std::make_unique<Thread>();
    begin->reset();
    for (Lanes& v : begin->registers) v = any_lanes(specials);
    for (LaneMask& flags : begin->flags) flags = static_cast<LaneMask>(word());
    begin->flags[Thread::kNone] = 0;
    begin->varyings = varyings.data();
    begin->num_varyings = static_cast<uint32_t>(varyings.size());
    begin->ms_flags = any_lanes() & 15u;
    begin->pixel_x = any_lanes();
    begin->back_facing = static_cast<LaneMask>(word());
    begin->qpu_number = static_cast<uint8_t>(word() % 12);
    return begin;
  }

  void expect_as_interpreted(std::span<const uint64_t> words, const Thread& begin) {
    Side interpreted;
    run_side(interpreted, words, begin, nullptr);
    executed += interpreted.thread->instructions;
    for (const auto& compiler : compilers) {
      Side compiled;
      run_side(compiled, words, begin, nullptr, false, compiler.get());
      expect_equal(compiled, interpreted, true);
      if (HasFailure()) {
        const Memory memory;
        std::string text;
        for (const uint64_t w : words) text += disassemble(w) + "\n";
        GTEST_LOG_(INFO) << "of compiler " << &compiler - compilers.data() << ":\n" << text;
        return;
      }
    }
  }

  void TearDown() override {
    for (const auto& compiler : compilers) std::printf("%s\n", to_string(compiler->statistics()).c_str());
  }
  uint64_t compiled_instructions() const {
    uint64_t sum = 0;
    for (const auto& compiler : compilers) sum += compiler->statistics().executed.compiled;
    return sum;
  }

  /// Code of the stretch that a text begins with.
  class Run {
   public:
    Run(jit::GraphCompiler& compiler, const std::string& text) {
      const Assembly assembly = assemble(text);
      EXPECT_TRUE(assembly.errors.empty()) << text;
      Memory(memory_.get()).write(0, assembly.words.data(), assembly.words.size() * sizeof(uint64_t));
      const Program program(0, std::make_shared<ProgramRoom>(8), &compiler);
      const Chunk& decoded = *program.chunk(Memory(memory_.get()), 0);
      code_ = compiler.compile(stretch_at(decoded, 0, [](GpuAddr) { return nullptr; }), true);
      EXPECT_TRUE(code_) << text;
      thread->reset();
      thread->memory = Memory(memory_.get());
    }
    const char* operator()() { return code_->function(*thread); }

    const std::unique_ptr<Thread> thread = std::make_unique<Thread>();

   private:
    const std::unique_ptr<uint8_t[]> memory_ = std::make_unique<uint8_t[]>(2 * Chunk::kBytes);
    std::unique_ptr<const RunCode> code_;
  };

  // Of dense_instruction(): results that it may load, and whether a lookup waits for its S.
  int waiting = 0;
  bool is_set_up = false;
  std::vector<std::unique_ptr<jit::GraphCompiler>> compilers;
  uint64_t executed = 0;
};

TEST_F(Vc4Compiled, AnyProgramGivesWhatTheInterpreterGives) {
  std::array<Varying, 4> varyings;
  const Assembly end = assemble("end");
  for (int round = 0; round < 700 && !HasFailure(); ++round) {
    SCOPED_TRACE(round);
    std::array<uint64_t, kWords> words;
    const bool touches_units = round % 2 != 0;
    for (uint64_t& w : words) w = any_instruction(touches_units);
    std::copy_n(end.words.begin(), end.words.size(), words.end() - static_cast<ptrdiff_t>(end.words.size()));
    for (Varying& v : varyings) v = {any_lanes(), any_lanes()};
    const auto begin = any_thread(varyings, round % 4);
    begin->budget = touches_units ? UINT64_MAX : 1 + word() % 400;
    expect_as_interpreted(words, *begin);
  }
  EXPECT_GT(compiled_instructions(), 1000u);
}

TEST_F(Vc4Compiled, LongRunsGiveWhatTheInterpreterGives) {
  std::array<Varying, 40> varyings;
  for (int round = 0; round < 600 && !HasFailure(); ++round) {
    SCOPED_TRACE(round);
    std::array<uint64_t, kWords> words;
    waiting = 0;
    is_set_up = false;
    for (uint64_t& w : words) w = dense_instruction();
    const auto specials = static_cast<uint32_t>(round % 8);
    for (Varying& v : varyings) v = {any_lanes(specials), any_lanes(specials)};
    const auto begin = any_thread(varyings, specials);
    begin->budget = kWords;  // registers are compared, as it does not end
    expect_as_interpreted(words, *begin);
  }
  EXPECT_GT(compiled_instructions(), executed * compilers.size() / 2);
}

TEST_F(Vc4Compiled, VaryingsThatAreNotThereAreZero) {
  const Assembly text = assemble(
      "fmul r0, vary, ra15\nfadd r1, r0, r5; fmul r2, vary, ra15\nfadd r3, r2, r5; fmul rb1, vary, ra15\n"
      "mov ra1, r5\nmov tlb_color_all, r1\nmov tlb_color_all, r3\nmov tlb_color_all, ra1\nend\n");
  ASSERT_TRUE(text.errors.empty()) << to_string(text.errors[0]);
  std::array<Varying, 3> varyings;
  for (Varying& v : varyings) v = {any_lanes(), any_lanes()};
  for (size_t count = 0; count <= varyings.size(); ++count)
    expect_as_interpreted(text.words, *any_thread(std::span(varyings).first(count), 0));
}

constexpr const char* kVertexProgram =
    "load_imm vr_setup, nop, 0x00401a00\nload_imm vw_setup, nop, 0x00001a00\n"
    "mov r0, vpm_read\nfmul r1, vpm_read, uni\nfadd r2, r0, r1; mov r3, vpm_read\n"
    "mov vpm, r2; fmul r0, vpm_read, r3\nitof ra1.16a, r0\nftoi ra1.16b, r2\nmov sfu_recip, r3\n"
    "nop\nmov vpm, ra1\nmov vpm, r4\nmov vpm, vpm_read\nend\n";

TEST_F(Vc4Compiled, RowsOfTheVpmAreThoseOfTheInterpreter) {
  const Assembly text = assemble(kVertexProgram);
  ASSERT_TRUE(text.errors.empty()) << to_string(text.errors[0]);
  for (uint32_t in = 0; in < 6; ++in) {
    for (uint32_t out = 0; out < 6; ++out) {
      SCOPED_TRACE(std::to_string(in) + " rows, " + std::to_string(out) + " of results");
      const auto begin = any_thread({}, 0);
      begin->vpm_in.count = in;
      begin->vpm_out.count = out;
      expect_as_interpreted(text.words, *begin);
    }
  }
  EXPECT_GT(compiled_instructions(), executed * compilers.size() / 12);
}

// Code that has no numbers for it does nothing, and after a while other code has.
TEST_F(Vc4Compiled, ResultsThatTheHostDoesNotGiveAreThoseOfTheInterpreter) {
  const Assembly text = assemble(
      "fmul r0, ra0, r3\nfadd r1, r0, rb0\nmov vpm, r1\nfmul r2, r1, r1\nmov tlb_color_all, r2\n"
      "fadd r3, r2, r2\nmov tlb_color_all, r3\nend\n");
  ASSERT_TRUE(text.errors.empty()) << to_string(text.errors[0]);
  const auto memory = std::make_unique<uint8_t[]>(4096);
  Memory(memory.get()).write(0, text.words.data(), text.words.size() * sizeof(uint64_t));
  const auto run_with = [&](const Program& program, uint32_t factor) {
    const auto thread = std::make_unique<Thread>();
    thread->reset();
    thread->memory = Memory(memory.get());
    thread->ra(0) = thread->r(3) = thread->rb(0) = splat(0x3f800000u);
    thread->ra(0)[5] = factor;
    Ports ports;
    thread->tlb = &ports;
    EXPECT_EQ(run(program, *thread), Stop::kEnd);
    return ports.told;
  };
  for (const auto& compiler : compilers) {
    const Program interpreted(0, std::make_shared<ProgramRoom>(8)),
        compiled(0, std::make_shared<ProgramRoom>(8), compiler.get());
    for (const uint32_t factor : {0x40000000u, 0x7f000000u, 0x7f800000u, 0x60000000u})
      for (int n = 0; n < 70; ++n) EXPECT_EQ(run_with(compiled, factor), run_with(interpreted, factor));
    // The last ones were compiled.
    const uint64_t before = compiler->executions.total().compiled;
    run_with(compiled, 0x7f800000);
    EXPECT_GT(compiler->executions.total().compiled, before);
  }
}

// What others throw goes through code that has no tables for it.
TEST_F(Vc4Compiled, WhatPortsThrowArrives) {
  struct Full : public Ports {
    void write_color(Thread&, const Lanes&, LaneMask, bool) override { throw std::bad_alloc(); }
  };
  const Assembly text = assemble("fadd r0, ra0, rb1\nmov tlb_color_all, r0\nend\n");
  ASSERT_TRUE(text.errors.empty());
  const auto memory = std::make_unique<uint8_t[]>(4096);
  Memory(memory.get()).write(0, text.words.data(), text.words.size() * sizeof(uint64_t));
  for (const auto& compiler : compilers) {
    const Program program(0, std::make_shared<ProgramRoom>(8), compiler.get());
    const auto thread = any_thread({}, 0);
    Full port;
    thread->tlb = &port;
    thread->memory = Memory(memory.get());
    EXPECT_THROW(run(program, *thread), std::bad_alloc);
    EXPECT_EQ(thread->pc, 8u);
  }
}

// Interpreted it ends with so much room.
TEST_F(Vc4Compiled, HostCodeTakesNoRoomThatDecodingNeeds) {
  constexpr size_t kChunks = 4;
  std::string text;
  for (size_t n = 0; n < kChunks * Chunk::kWords - 3; ++n) text += "fadd r0, ra0, rb1\n";
  const Assembly assembly = assemble(text + "end\n");
  ASSERT_TRUE(assembly.errors.empty());
  const auto memory = std::make_unique<uint8_t[]>(kChunks * Chunk::kBytes);
  Memory(memory.get()).write(0, assembly.words.data(), assembly.words.size() * sizeof(uint64_t));
  for (const auto& compiler : compilers) {
    const Program program(0, std::make_shared<ProgramRoom>(kChunks), compiler.get());
    const auto thread = any_thread({}, 0);
    thread->memory = Memory(memory.get());
    for (int times = 0; times < 2; ++times) {  // all of it is decoded then
      thread->pc = 0;
      thread->budget = 1000;
      EXPECT_EQ(run(program, *thread), Stop::kEnd) << (thread->hang ? thread->hang : "");
    }
  }
  EXPECT_GT(compiled_instructions(), 0u);
}

// Nobody looks at the job meanwhile.
TEST_F(Vc4Compiled, FewInstructionsAreCompiledInOneCall) {
  constexpr size_t kChunks = 16;
  std::string text;
  for (size_t n = 0; n < kChunks * Chunk::kWords - 3; ++n) text += "fadd r0, ra0, rb1\n";
  const Assembly assembly = assemble(text + "end\n");
  ASSERT_TRUE(assembly.errors.empty());
  const auto memory = std::make_unique<uint8_t[]>(kChunks * Chunk::kBytes);
  Memory(memory.get()).write(0, assembly.words.data(), assembly.words.size() * sizeof(uint64_t));
  for (const auto& compiler : compilers) {
    const Program program(0, std::make_shared<ProgramRoom>(64), compiler.get());
    uint64_t compiled = 0;
    for (int call = 0; call < 8; ++call) {
      const auto thread = any_thread({}, 0);
      thread->memory = Memory(memory.get());
      thread->budget = 2000;
      EXPECT_EQ(run(program, *thread), Stop::kEnd);
      const uint64_t now = compiler->statistics().instructions;
      EXPECT_LT(now - compiled, 256u + Chunk::kWords);
      compiled = now;
    }
    EXPECT_GT(compiled, (kChunks - 1) * Chunk::kWords);  // in several ones all is
  }
}

/// Of numbers all over, more thorough where the host's steps are not those of sfu.h.
TEST_F(Vc4Compiled, SpecialFunctionsAreThoseOfTheInterpreter) {
  constexpr WritePort kPorts[] = {WritePort::kSfuRecip, WritePort::kSfuRecipsqrt, WritePort::kSfuExp,
                                  WritePort::kSfuLog};
  constexpr const char* kTexts[] = {"sfu_recip", "sfu_recipsqrt", "sfu_exp", "sfu_log"};
  for (const auto& compiler : compilers) {
    for (size_t n = 0; n < std::size(kPorts); ++n) {
      Run code(*compiler, std::string("mov ") + kTexts[n] + ", ra0\nnop\nnop\nmov rb0, r4\n");
      const auto check = [&](const Lanes& v) {
        code.thread->ra(0) = v;
        ASSERT_EQ(code(), nullptr);
        const Lanes expected = special_function(kPorts[n], v);
        for (int lane = 0; lane < kLanes; ++lane)
          ASSERT_EQ(code.thread->rb(0)[lane], expected[lane]) << kTexts[n] << " of " << std::hex << v[lane];
      };
      // Two inputs of 2^x whose doubles are ties, and the ends of ranges.
      check(Lanes{0x3b429d37, 0xbcf3a937, 0, 0x80000000, 1, 0x80000001, 0x7f800000, 0xff800000, 0x7fc00000,
                  0xffc00001, 0x3f800000, 0xbf800000, 0xc2fc0000, 0xc2fc0001, 0x43000000, 0x007fffff});
      const uint32_t step = kPorts[n] == WritePort::kSfuRecipsqrt ? 3 : 1021;
      const uint32_t begin = kPorts[n] == WritePort::kSfuRecipsqrt ? 0x3f000000 : 0;
      const uint64_t end = kPorts[n] == WritePort::kSfuRecipsqrt ? 0x40000000 : uint64_t{1} << 32;
      for (uint64_t at = begin; at < end && !HasFatalFailure(); at += uint64_t{16} * step)
        check(kLaneIndex * step + static_cast<uint32_t>(at));
    }
  }
}

/// Hosts differ in denormals, in what is too large and in what is no number, and in when they find a result
/// denormal: before rounding or behind it.
TEST_F(Vc4Compiled, EdgesOfFloatsAreThoseOfTheInterpreter) {
  constexpr uint32_t kMagnitudes[] = {0,          1,          0x00400000, 0x007fffff, 0x00800000, 0x00800001,
                                      0x00ffffff, 0x01000000, 0x1fffffff, 0x20000000, 0x3f000000, 0x3f7fffff,
                                      0x3f800000, 0x3f800001, 0x40490fdb, 0x4b000000, 0x4b7fffff, 0x4effffff,
                                      0x4f000000, 0x5f000000, 0x5f7fffff, 0x7effffff, 0x7f000000, 0x7f7ffffe,
                                      0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fbfffff, 0x7fc00000, 0x7fffffff};
  std::vector<uint32_t> edges;
  for (const uint32_t m : kMagnitudes) edges.insert(edges.end(), {m, m | 0x80000000});
  edges.resize((edges.size() + kLanes - 1) / kLanes * kLanes);
  struct Case {
    Op op;
    const char* text;
  };
  // What sums and products take themselves keeps zeros of any sign; others see them.
  constexpr Case kCases[] = {{Op::kFadd, "fadd rb1, ra0, rb0"},
                             {Op::kFsub, "fsub rb1, ra0, rb0"},
                             {Op::kFmul, "fmul rb1, ra0, rb0"},
                             {Op::kFmin, "fmin rb1, ra0, rb0"},
                             {Op::kFmax, "fmax rb1, ra0, rb0"},
                             {Op::kFminabs, "fminabs rb1, ra0, rb0"},
                             {Op::kFmaxabs, "fmaxabs rb1, ra0, rb0"},
                             {Op::kFtoi, "ftoi rb1, ra0"},
                             {Op::kItof, "itof rb1, ra0"}};
  for (const auto& compiler : compilers) {
    for (const Case& c : kCases) {
      Run code(*compiler,
               std::string(c.text) + "\nfadd rb2, ra0, rb0\nfmul r0, ra0, rb0\nfadd rb3, r0, ra0\n");
      const AluFn function = find_alu(c.op), sum = find_alu(Op::kFadd), product = find_alu(Op::kFmul);
      for (size_t at = 0; at < edges.size(); at += kLanes) {
        Lanes a;
        std::copy_n(edges.data() + at, kLanes, reinterpret_cast<uint32_t*>(&a));
        for (const uint32_t other : edges) {
          const Lanes b = splat(other);
          code.thread->ra(0) = a;
          code.thread->rb(0) = b;
          ASSERT_EQ(code(), nullptr);
          const std::pair<const Lanes&, Lanes> results[] = {{code.thread->rb(1), function(a, b)},
                                                            {code.thread->rb(2), sum(a, b)},
                                                            {code.thread->rb(3), sum(product(a, b), a)}};
          for (const auto& [found, expected] : results)
            for (int lane = 0; lane < kLanes; ++lane)
              ASSERT_EQ(found[lane], expected[lane])
                  << c.text << " of " << std::hex << a[lane] << " and " << other;
        }
      }
    }
  }
}

}  // namespace
}  // namespace v3d::qpu::vc4
