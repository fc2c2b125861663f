/// Speed of QPU code, interpreted (argument 0) and compiled (1): time per instruction of typical words, and
/// of the functions of the SFU.

#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "gpu/qpu/jit/jit.h"
#include "gpu/qpu/run/interpreter.h"
#include "gpu/qpu/run/program_cache.h"
#include "gpu/qpu/run/sfu.h"
#include "gpu/qpu/run/thread.h"
#include "tests/qpu/assembly.h"

namespace v3d::qpu {
namespace {

using namespace assembly;

constexpr GpuAddr kCode = 0x1000, kUniforms = 0x8000;

// 0 interpreted, 1 and 2 compiled for AVX-512 and AVX2.
void engines(benchmark::internal::Benchmark* b) {
  b->ArgName("engine")->Arg(0);
  for (const jit::Target target : {jit::Target::kAvx512, jit::Target::kAvx2})
    if (jit::can_compile(target)) b->Arg(1 + static_cast<int>(target));
}
jit::Target target_of(int64_t engine) { return static_cast<jit::Target>(engine == 0 ? 0 : engine - 1); }

// Runs `body`, 128 times in a row, and reports the time per instruction.
void run_body(benchmark::State& state, const std::vector<Instruction>& body) {
  std::vector<Instruction> program;
  for (int i = 0; i < 128; ++i) program.insert(program.end(), body.begin(), body.end());
  append_end(program);
  const auto words = assemble(chip::Generation::k71, program);
  std::vector<uint8_t> memory(1 << 20);
  std::memcpy(memory.data() + kCode, words.data(), words.size() * 8);
  jit::JitCompiler compiler(target_of(state.range(0)), 0);
  ProgramCache cache(chip::Generation::k71, state.range(0) != 0 ? &compiler : nullptr);
  const auto code = cache.get(Memory(memory.data()), kCode);
  const auto thread = std::make_unique<Thread>();
  thread->reset();
  uint64_t instructions = 0;
  for (auto _ : state) {
    thread->reset();
    thread->memory = Memory(memory.data());
    thread->pc = kCode;
    thread->uniforms = kUniforms;
    thread->final_section = true;
    thread->msf = splat(1u);
    if (run(*code, *thread) != Stop::kEnd) state.SkipWithError("did not end");
    instructions += thread->instructions;
  }
  state.counters["per_instruction"] = benchmark::Counter(
      static_cast<double>(instructions), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void independent(benchmark::State& state) {
  std::vector<Instruction> body;
  for (int i = 0; i < 8; ++i)
    body.push_back(I().add(Op::kFadd, to(10 + i), rf(1), rf(2)).mul(Op::kFmul, to(20 + i), rf(3), rf(4)));
  run_body(state, body);
}
BENCHMARK(independent)->Name("fadd_fmul_independent")->Apply(engines);

void dependent(benchmark::State& state) {
  run_body(state, {I().add(Op::kFadd, to(1), rf(1), rf(2)).mul(Op::kFmul, to(3), rf(3), rf(4))});
}
BENCHMARK(dependent)->Name("fadd_fmul_dependent")->Apply(engines);

void single(benchmark::State& state) {
  std::vector<Instruction> body;
  for (int i = 0; i < 8; ++i) body.push_back(I().add(Op::kAdd, to(10 + i), rf(1), imm(3)));
  run_body(state, body);
}
BENCHMARK(single)->Name("add_alone")->Apply(engines);

void uniforms(benchmark::State& state) {
  run_body(state, {I().add(Op::kFadd, to(1), rf(0), rf(2)).mul(Op::kFmul, to(3), rf(5), rf(4)).sig(kLdunif),
                   I().mul(Op::kFmul, to(5), rf(0), rf(4)).sig(kLdunifrf, to(6))});
}
BENCHMARK(uniforms)->Name("ldunif")->Apply(engines);

void halves(benchmark::State& state) {
  run_body(state, {I().add(Op::kFadd, to(1), rf(5, Unpack::kL), rf(2, Unpack::kH)),
                   I().mul(Op::kFmov, to(3), rf(6)).mul_pack(Pack::kL)});
}
BENCHMARK(halves)->Name("unpack_pack")->Apply(engines);

void flags(benchmark::State& state) {
  run_body(state, {I().add(Op::kFcmp, {kWaddrNop, true}, rf(1), rf(2)).add_flags(FlagWrite::kPushn),
                   I().mul(Op::kMov, to(3), rf(6)).mul_if(Cond::kIfa),
                   I().add(Op::kXor, {kWaddrNop, true}, rf(1), rf(2)).add_flags(FlagWrite::kPushz),
                   I().add(Op::kAdd, to(4), rf(7), rf(8)).add_if(Cond::kIfna)});
}
BENCHMARK(flags)->Name("flags_conditions")->Apply(engines);

void varyings(benchmark::State& state) {
  run_body(
      state,
      {I().mul(Op::kFmul, to(5), rf(4), rf(3)).sig(kLdvary, to(7)),
       I().add(Op::kFadd, to(6), rf(0), rf(5)).mul(Op::kFmul, to(8), rf(7), rf(3)).sig(kLdvary, to(10))});
}
BENCHMARK(varyings)->Name("ldvary")->Apply(engines);

void rotations(benchmark::State& state) {
  run_body(state, {I().add(Op::kRot, to(1), rf(2), imm(1)).mul(Op::kMov, to(kWaddrRep), rf(3)),
                   I().add(Op::kFadd, to(4), rf(4), rf(5)).mul(Op::kFmul, to(5), rf(0), rf(6))});
}
BENCHMARK(rotations)->Name("sgemm_words")->Apply(engines);

template <LanesF (*function)(LanesF)>
void sfu_function(benchmark::State& state) {
  LanesF x = splat(0.01f) * __builtin_convertvector(kLaneIndex, LanesF);
  for (auto _ : state) {
    benchmark::DoNotOptimize(x);
    benchmark::DoNotOptimize(function(x));
  }
}
BENCHMARK(sfu_function<sfu::recip>)->Name("recip");
BENCHMARK(sfu_function<sfu::rsqrt>)->Name("rsqrt");
BENCHMARK(sfu_function<sfu::exp2>)->Name("exp");
BENCHMARK(sfu_function<sfu::log2>)->Name("log");
BENCHMARK(sfu_function<sfu::sin>)->Name("sin");

// Decoding: one chunk of 64 instructions per program.
void decode_program(benchmark::State& state) {
  std::vector<uint8_t> memory(1 << 16);
  const std::vector<uint64_t> words(64, *encode(chip::Generation::k71, nop()));
  std::memcpy(memory.data() + kCode, words.data(), words.size() * 8);
  const auto end = assemble(chip::Generation::k71, {thrsw(), nop(), nop()});
  std::memcpy(memory.data() + kCode, end.data(), end.size() * 8);
  const auto thread = std::make_unique<Thread>();
  for (auto _ : state) {
    ProgramCache cache(chip::Generation::k71);
    const auto code = cache.get(Memory(memory.data()), kCode);
    thread->reset();
    thread->memory = Memory(memory.data());
    thread->pc = kCode;
    thread->final_section = true;
    if (run(*code, *thread) != Stop::kEnd) state.SkipWithError("did not end");
  }
}
BENCHMARK(decode_program)->Name("decode_64_instructions");

// What compiling costs: programs of 512 instructions, each another one.
void compile_program(benchmark::State& state) {
  constexpr size_t kDigits = 5;  // immediates that are the number of the program
  std::vector<Instruction> program(kDigits);
  for (int i = 0; i < 128; ++i) {
    program.push_back(I().add(Op::kFadd, to(1 + i % 30), rf(1), rf(2)).mul(Op::kFmul, to(3), rf(3), rf(4)));
    program.push_back(I().add(Op::kFcmp, {kWaddrNop, true}, rf(1), rf(2)).add_flags(FlagWrite::kPushn));
    program.push_back(I().mul(Op::kMov, to(5), rf(6)).mul_if(Cond::kIfa));
    program.push_back(I().add(Op::kAdd, to(40), rf(1), rf(0)).sig(kLdunif));
  }
  append_end(program);
  std::vector<uint8_t> memory(1 << 16);
  jit::JitCompiler compiler(target_of(state.range(0)), 0);
  const auto thread = std::make_unique<Thread>();
  uint32_t number = 0;
  for (auto _ : state) {
    ++number;
    for (size_t digit = 0; digit < kDigits; ++digit)
      program[digit] = I().add(Op::kAdd, to(50), rf(1), imm(number >> (4 * digit) & 15));
    const auto words = assemble(chip::Generation::k71, program);
    std::memcpy(memory.data() + kCode, words.data(), words.size() * 8);
    ProgramCache cache(chip::Generation::k71, state.range(0) != 0 ? &compiler : nullptr);
    thread->reset();
    thread->memory = Memory(memory.data());
    thread->pc = kCode;
    thread->uniforms = kUniforms;
    thread->final_section = true;
    if (run(*cache.get(thread->memory, kCode), *thread) != Stop::kEnd) state.SkipWithError("did not end");
  }
  const jit::Statistics s = compiler.statistics();
  state.counters["seconds_per_instruction"] = s.seconds / static_cast<double>(s.instructions);
  state.counters["bytes_per_instruction"] =
      static_cast<double>(s.code_bytes) / static_cast<double>(s.instructions);
}
BENCHMARK(compile_program)->Name("compile_512_instructions")->Apply(engines);

void reset_thread(benchmark::State& state) {
  const auto thread = std::make_unique<Thread>();
  for (auto _ : state) {
    thread->reset();
    benchmark::DoNotOptimize(thread->rf[3]);
  }
}
BENCHMARK(reset_thread)->Name("thread_reset");

}  // namespace
}  // namespace v3d::qpu

BENCHMARK_MAIN();
