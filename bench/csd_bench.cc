/// Compute dispatch: cost of a batch, of a barrier, and a streaming kernel, interpreted and compiled. Words:
/// tests/e2e/qpu_programs/qpu_asm.py.
#include <benchmark/benchmark.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "gpu/chip/profile.h"
#include "gpu/csd/dispatch.h"
#include "gpu/mmu/address_space.h"
#include "gpu/perf/counters.h"
#include "gpu/qpu/isa/assembler.h"
#include "gpu/qpu/jit/jit.h"
#include "gpu/qpu/run/program_cache.h"

namespace v3d::csd {
namespace {

constexpr GpuAddr kCode = 0x10000, kUniforms = 0x11000, kData = 0x100000;
constexpr uint32_t kBytes = 16 << 20;
constexpr uint32_t kFourThreads = 1, kSingleSegment = 3;  // bits of CFG5; the latter with four threads, too

/// A context with 16 MiB of memory.
class Machine {
 public:
  /// @param compiles  else programs are interpreted
  Machine(int workers, bool compiles)
      : pool_(workers), programs_(chip::kDefaultGeneration, compiles ? compiler_.get() : nullptr) {
    space_ = *mmu::AddressSpace::create();
    if (!space_->map_zeros(kCode, kBytes).ok()) std::abort();
  }

  /// @return instructions executed, 0 on errors
  uint64_t run(const std::vector<uint64_t>& code, const std::vector<uint32_t>& uniforms, uint32_t grid,
               uint32_t cfg3, uint32_t batches, uint32_t mode = kSingleSegment) {
    perf::JobCounts counts;
    JobError error;
    const std::atomic<bool> cancel{false};
    const JobContext job{.memory = space_->memory(),
                         .profile = &chip::default_profile(),
                         .pool = &pool_,
                         .programs = &programs_,
                         .counts = &counts,
                         .error = &error,
                         .cancel = &cancel};
    for (uint32_t i = 0; i < code.size(); ++i) job.memory.store(kCode + 8 * i, code[i]);
    for (uint32_t i = 0; i < uniforms.size(); ++i) job.memory.store(kUniforms + 4 * i, uniforms[i]);
    const bool done = dispatch(job, {grid << 16, 1 << 16, 1 << 16, cfg3, batches, kCode | mode, kUniforms},
                               false, space_.get());
    return done ? counts.total()[perf::kQpuActive] : 0;
  }

 private:
  ThreadPool pool_;
  const std::unique_ptr<qpu::jit::JitCompiler> compiler_ = make_compiler(qpu::jit::Engine::kAuto);
  qpu::ProgramCache programs_;
  std::unique_ptr<mmu::AddressSpace> space_;
};

constexpr uint64_t kNop = 0x38003186bb03f000, kThrsw = 0x38203186bb03f000, kBarrier = 0x38203192bb03f00e;

void batches(benchmark::State& state) {
  Machine machine(static_cast<int>(state.range(0)), state.range(2) != 0);
  const uint32_t wg_size = static_cast<uint32_t>(state.range(1)), wgs = wg_size == 16 ? 1 : 8;
  const uint32_t per_sg = wg_size * wgs / 16, total = 50000 / per_sg * per_sg;
  for (auto _ : state) {
    if (machine.run({kThrsw, kNop, kNop}, {}, total / per_sg * wgs, wg_size | wgs << 8 | (per_sg - 1) << 12,
                    total) == 0)
      state.SkipWithError("hang");
  }
  state.counters["time/batch"] =
      benchmark::Counter(total, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(batches)
    ->ArgNames({"workers", "wg", "jit"})
    ->ArgsProduct({{0, 1}, {16, 18}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void barriers(benchmark::State& state) {
  Machine machine(static_cast<int>(state.range(0)), state.range(1) != 0);
  std::vector<uint64_t> code;
  constexpr uint32_t kBarriers = 100, kBatches = 480;
  for (uint32_t i = 0; i < kBarriers; ++i) code.insert(code.end(), {kBarrier, kNop, kNop, kNop});
  code.insert(code.end(), {kThrsw, kThrsw, kNop, kNop, kThrsw, kNop, kNop});
  for (auto _ : state) {
    if (machine.run(code, {}, kBatches, 16 | 0 << 8 | 15 << 12, kBatches, kFourThreads) == 0)
      state.SkipWithError("hang");
  }
  state.counters["time/barrier"] = benchmark::Counter(
      kBarriers * kBatches, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(barriers)
    ->ArgNames({"workers", "jit"})
    ->ArgsProduct({{0, 1}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// y = a * x + y, 16 elements per batch. Uniforms: y, x, a.
const std::vector<uint64_t> kSaxpy = {
    0x38002181f903f0c7,  // mov rf1, rf3.ul
    0x39e021817c03f044,  // shl rf1, rf1, 4
    0x38002182bb03f002,  // eidx rf2
    0x380021813803f042,  // add rf1, rf1, rf2
    0x39e021817c03f042,  // shl rf1, rf1, 2
    0x3982b186bb03f000,  // ldunifrf.rf10
    0x3982f186bb03f000,  // ldunifrf.rf11
    0x3800318c3803f2c1,  // add tmua, rf11, rf1
    0x3820318c3803f281,  // add tmua, rf10, rf1 ; thrsw
    0x3800218a3803f281,  // add rf10, rf10, rf1
    0x39833186bb03f000,  // ldunifrf.rf12
    0x38813186bb03f000,  // ldtmu.rf4
    0x54815106bb10c000,  // fmul rf4, rf4, rf12 ; ldtmu.rf5
    0x3800318b0503f105,  // fadd tmud, rf4, rf5
    0x3800318cf903f283,  // mov tmua, rf10
    0x38203186bb03f00f,  // tmuwt - ; thrsw
    0x38003186bb03f000,  // nop
    0x38003186bb03f000,  // nop
};

void saxpy(benchmark::State& state) {
  Machine machine(static_cast<int>(state.range(0)), state.range(1) != 0);
  constexpr uint32_t kBatches = 60000;
  uint64_t instructions = 0;
  for (auto _ : state) {
    instructions +=
        machine.run(kSaxpy, {kData, kData + 4 * 16 * kBatches, 0x40000000}, kBatches, 16 | 1 << 8, kBatches);
  }
  state.counters["instructions"] =
      benchmark::Counter(static_cast<double>(instructions), benchmark::Counter::kIsRate);
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * kBatches * 16 * 12);
}
BENCHMARK(saxpy)
    ->ArgNames({"workers", "jit"})
    ->ArgsProduct({{0, 1}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

/// Twelve QPUs with two threads each, of one supergroup, as only programs that are written by hand dispatch
/// them: so many passes of a loop, with a barrier after each or none. What switching between batches costs
/// is the difference from one pass of as many turns in all.
void by_hand(benchmark::State& state) {
  Machine machine(static_cast<int>(state.range(0)), true);
  const auto passes = static_cast<uint32_t>(state.range(1)), turns = static_cast<uint32_t>(state.range(2));
  const bool meets = state.range(3) != 0;
  const qpu::Assembly assembly = qpu::assemble(chip::Generation::k71, std::string(R"(
      ldunifrf.rf10
      ldunifrf.rf11
    pass:
      or rf12, rf11, rf11
    turn:
      sub.pushz rf12, rf12, 1
      b.anyna turn
      nop
      nop
      nop
    )") + (meets ? "barrierid syncb ; nop ; thrsw\nnop\nnop\n" : "") +
                                                                          R"(
      sub.pushz rf10, rf10, 1
      b.anyna pass
      nop
      nop
      nop
      end
    )");
  if (!assembly.errors.empty()) std::abort();
  constexpr uint32_t kBatches = 24;
  uint64_t instructions = 0;
  for (auto _ : state) {
    const uint64_t executed =
        machine.run(assembly.words, {passes, turns}, 1, 16 | 8 << 8 | (kBatches - 1) << 12, kBatches, 0);
    if (executed == 0) state.SkipWithError("hang");
    instructions += executed;
  }
  state.counters["instructions"] =
      benchmark::Counter(static_cast<double>(instructions), benchmark::Counter::kIsRate);
}
BENCHMARK(by_hand)
    ->ArgNames({"workers", "passes", "turns", "barriers"})
    ->ArgsProduct({{0, 1}, {1}, {10, 200, 4000, 100000}, {0}})
    ->ArgsProduct({{0, 1}, {100}, {10, 200}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

/// What a dispatch costs beside its batches.
void one_workgroup(benchmark::State& state) {
  Machine machine(static_cast<int>(state.range(0)), true);
  for (auto _ : state) machine.run(kSaxpy, {kData, kData + 4096, 0x40000000}, 1, 64 | 1 << 8 | 3 << 12, 4);
}
BENCHMARK(one_workgroup)->ArgName("workers")->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace v3d::csd

BENCHMARK_MAIN();
