// QPUs run side by side: what one stores before it loops its neighbour finds after its own loop, without a
// barrier, however many host threads there are and whoever runs the program.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cctype>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "gpu/chip/profile.h"
#include "gpu/csd/dispatch.h"
#include "gpu/mmu/address_space.h"
#include "gpu/perf/counters.h"
#include "gpu/qpu/isa/assembler.h"
#include "gpu/qpu/isa/isa.h"
#include "gpu/qpu/jit/jit.h"
#include "gpu/qpu/run/program_cache.h"

namespace v3d::csd {
namespace {

using qpu::jit::Engine;

constexpr uint32_t kThreads = 8;

/// For each of as many passes as the last uniform says: stores its number plus 1 in its cell of the pass,
/// loops, and adds up what it finds in its neighbour's. Uniforms: cells, results, passes, loops.
constexpr const char* kNeighbours = R"(
      ldunifrf.rf11
      ldunifrf.rf17
      ldunifrf.rf18
      ldunifrf.rf20
      and rf19, rf18, 0
      shl rf12, $number, 2
      add rf15, $number, 1
      and rf15, rf15, 7
      shl rf15, rf15, 2
    pass:
      add rf13, rf11, rf12
      add tmud, $number, 1
      or tmua, rf13, rf13
      tmuwt -
      or rf14, rf20, rf20
    loop:
      sub.pushz rf14, rf14, 1
      b.anyna loop
      nop
      nop
      nop
      add tmua, rf11, rf15 ; thrsw
      add rf13, rf11, 15
      add rf11, rf13, 15
      ldtmu.rf16
      add rf11, rf11, 2
      add rf19, rf19, rf16
      sub.pushz rf18, rf18, 1
      b.anyna pass
      nop
      nop
      nop
      or tmud, rf19, rf19
      add tmua, rf17, rf12
      tmuwt -
      end
)";

/// The payload register that holds the number of the workgroup.
std::vector<uint64_t> words(chip::Generation generation) {
  std::string text = kNeighbours;
  const std::string name = "$number", number = "rf" + std::to_string(qpu::isa(generation).workgroup_xy);
  for (size_t at = 0; (at = text.find(name, at)) != std::string::npos;) text.replace(at, name.size(), number);
  const qpu::Assembly assembly = qpu::assemble(generation, text);
  EXPECT_TRUE(assembly.errors.empty()) << assembly.errors[0].message;
  return assembly.words;
}

class SideBySideTest : public testing::TestWithParam<std::tuple<int, Engine, const char*>> {
 protected:
  static constexpr GpuAddr kCode = 0x10000, kUniforms = 0x12000, kResults = 0x14000, kCells = 0x20000;

  /// @param per_supergroup  batches; 1: as drivers dispatch, more: as programs that are written by hand do
  std::array<uint32_t, kThreads> run(uint32_t passes, uint32_t loops, uint32_t per_supergroup) {
    const auto& [workers, engine, device] = GetParam();
    const chip::Profile& profile = *chip::find_profile(device);
    absl::StatusOr<std::unique_ptr<mmu::AddressSpace>> space = mmu::AddressSpace::create();
    EXPECT_TRUE(space.ok() && (*space)->map_zeros(kCode, 0x20000).ok());
    const std::unique_ptr<qpu::Compiler> compiler = make_compiler(engine);
    qpu::ProgramCache programs(profile.generation, compiler.get());
    ThreadPool pool(workers - 1);
    perf::JobCounts counts;
    JobError error;
    const std::atomic<bool> cancel{false};
    const JobContext job{.memory = (*space)->memory(),
                         .profile = &profile,
                         .pool = &pool,
                         .programs = &programs,
                         .counts = &counts,
                         .error = &error,
                         .cancel = &cancel};
    const std::vector<uint64_t> code = words(profile.generation);
    job.memory.write(kCode, code.data(), code.size() * sizeof(uint64_t));
    const std::array<uint32_t, 4> uniforms = {kCells, kResults, passes, loops};
    job.memory.write(kUniforms, uniforms.data(), sizeof uniforms);
    EXPECT_TRUE(
        dispatch(job,
                 {kThreads << 16, 1 << 16, 1 << 16, 16 | per_supergroup << 8 | (per_supergroup - 1) << 12,
                  kThreads - (profile.csd_batches_exact() ? 0 : 1), kCode, kUniforms},
                 false, space->get()))
        << error.message();
    std::array<uint32_t, kThreads> results;
    job.memory.read(kResults, results.data(), sizeof results);
    return results;
  }

  static std::array<uint32_t, kThreads> expected(uint32_t passes) {
    std::array<uint32_t, kThreads> sums;
    for (uint32_t i = 0; i < kThreads; ++i) sums[i] = passes * ((i + 1) % kThreads + 1);
    return sums;
  }
};

std::vector<Engine> engines() {
  std::vector<Engine> all{Engine::kOff};
  if (can_compile(qpu::jit::Target::kAvx2)) all.push_back(Engine::kAvx2);
  if (can_compile(qpu::jit::Target::kAvx512)) all.push_back(Engine::kAvx512);
  return all;
}

std::string name_of(const testing::TestParamInfo<SideBySideTest::ParamType>& test) {
  static constexpr const char* kNames[] = {"auto", "off", "avx512", "avx2"};
  const auto& [workers, engine, device] = test.param;
  return std::to_string(workers) + "_" + kNames[static_cast<int>(engine)] + "_" + device;
}

INSTANTIATE_TEST_SUITE_P(All, SideBySideTest,
                         testing::Combine(testing::Values(1, 2, 8), testing::ValuesIn(engines()),
                                          testing::Values("rpi5", "rpi4")),
                         name_of);

// 327,680 clocks between the store and the load.
TEST_P(SideBySideTest, AThreadFindsWhatItsNeighbourStoredBeforeItLooped) {
  EXPECT_EQ(run(1, 16384, 1), expected(1));
  EXPECT_EQ(run(1, 16384, kThreads), expected(1));
}

// As a transform without barriers does: the sooner passes end, the closer threads stay.
TEST_P(SideBySideTest, ThreadsThatStartTogetherStayCloseAtFirst) {
  EXPECT_EQ(run(12, 80, kThreads), expected(12));
}

}  // namespace
}  // namespace v3d::csd
