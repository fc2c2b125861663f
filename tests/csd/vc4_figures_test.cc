/// @file What was measured of programs on boards with VideoCore IV (vc4-timing.md 2 and 4), beside what the
/// timing model predicts of programs with the same accesses. Bounds are of predicted / published;
/// docs/timing.md has the table, and says which rows constants were fitted to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gpu/base/job_context.h"
#include "gpu/base/job_control.h"
#include "gpu/base/memory.h"
#include "gpu/base/thread_pool.h"
#include "gpu/chip/profile.h"
#include "gpu/csd/user_programs.h"
#include "gpu/perf/counter_table.h"
#include "gpu/perf/counters.h"
#include "gpu/perf/record/recorder.h"
#include "gpu/perf/record/work_recorder.h"
#include "gpu/perf/timing/events.h"
#include "gpu/perf/timing/parameters.h"
#include "gpu/perf/timing/prediction.h"
#include "gpu/perf/timing/replayer.h"
#include "gpu/qpu/isa/vc4_assembler.h"
#include "gpu/qpu/run/program_cache.h"
#include "tests/csd/user_queue.h"

namespace v3d::csd {
namespace {

/// User programs on a board, of which all is recorded.
class Board {
 public:
  static constexpr GpuAddr kCode = 0x10000, kUniforms = 0x20000, kData = 0x100000;
  static constexpr size_t kBytes = 32 << 20;

  /// @param clock_mhz  0: the board's
  explicit Board(const char* name, int clock_mhz = 0)
      : profile_(profile_of(name, clock_mhz)), bytes_(kBytes), pool_(0), qpus_(profile_.qpu_count()) {}

  /// The same program on several QPUs, each with words of its own as uniforms.
  const timing::Prediction& run(const std::string& text, const std::vector<std::vector<uint32_t>>& uniforms) {
    const qpu::Assembly assembly = qpu::vc4::assemble(text);
    for (const qpu::AssemblyError& error : assembly.errors) ADD_FAILURE() << to_string(error);
    memory().write(kCode, assembly.words.data(), assembly.words.size() * sizeof(uint64_t));
    TestQueue queue;
    GpuAddr place = kUniforms;
    for (const std::vector<uint32_t>& words : uniforms) {
      memory().write(place, words.data(), words.size() * sizeof(uint32_t));
      queue.waiting.push_back({kCode, place, uint64_t{1} << 40, 0});
      place += 0x1000;
    }
    const timing::Parameters parameters = timing::parameters_of(profile_);
    timing::Recorder recorder(
        {.generation = profile_.generation, .profile = &profile_, .parameters = parameters});
    timing::WorkRecorder units(recorder);
    perf::Counts counts = run(queue, recorder, units);
    EXPECT_EQ(recorder.failure(), "");
    EXPECT_FALSE(recorder.is_watching());
    prediction_ = timing::replay(timing::UserPrograms{.trace = recorder.take(), .by_mailbox = true}, profile_,
                                 parameters);
    EXPECT_EQ(prediction_.released, 0u);
    perf::derive(&counts);
    counts.add(timing::counters_of(prediction_));
    counts_ = counts;
    EXPECT_THAT(perf::inconsistencies(counts, {.qpus = 12, .tmus = 6}), testing::IsEmpty());
    return prediction_;
  }
  uint64_t counter(int number) const {
    return counts_.values[static_cast<size_t>(perf::index_in_counts(profile_.generation, number))];
  }
  double ns_of(uint64_t clocks) const { return static_cast<double>(clocks) * 1e3 / profile_.clock_mhz; }
  Memory memory() { return Memory(bytes_.data()); }

 private:
  static chip::Profile profile_of(const char* name, int clock_mhz) {
    chip::Profile profile = *chip::find_profile(name);
    if (clock_mhz != 0) profile.clock_mhz = clock_mhz;
    return profile;
  }
  perf::Counts run(TestQueue& queue, timing::Recorder& recorder, timing::WorkRecorder& units) {
    JobError error;
    perf::JobCounts counts;
    JobControl control;
    const JobContext job{.memory = memory(),
                         .profile = &profile_,
                         .pool = &pool_,
                         .programs = &programs_,
                         .counts = &counts,
                         .error = &error,
                         .cancel = &control.cancelled(),
                         .watch = &recorder,
                         .work = &units,
                         .control = &control};
    qpus_.run(job, queue, true);
    EXPECT_EQ(error.message(), "");
    return counts.total();
  }

  const chip::Profile profile_;
  std::vector<uint8_t> bytes_;
  ThreadPool pool_;
  qpu::ProgramCache programs_{chip::Generation::k21};
  UserQpus qpus_;
  timing::Prediction prediction_;
  perf::Counts counts_;
};

void expect_ratio(const std::string& row, double published, double predicted, double least, double most) {
  std::cout << absl::StrFormat("%-60s published %10.4g, predicted %10.4g, %+.1f %%\n", row, published,
                               predicted, 100 * (predicted / published - 1));
  EXPECT_GE(predicted / published, least) << row;
  EXPECT_LE(predicted / published, most) << row;
}

/// What one turn more of a loop takes. Uniform 0 is the number of turns.
double ns_per_turn(Board& board, const std::string& text, std::vector<std::vector<uint32_t>> uniforms,
                   uint32_t turns) {
  for (auto& words : uniforms) words[0] = turns;
  const uint64_t few = board.run(text, uniforms).clocks;
  for (auto& words : uniforms) words[0] = 2 * turns;
  return board.ns_of(board.run(text, uniforms).clocks - few) / turns;
}

std::string repeated(const std::string& line, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += line;
  return text;
}

/// Instructions of a loop, its own three included.
std::string loop(const std::string& before, const std::string& body, const std::string& after = "") {
  return absl::StrCat("mov ra31, uni\n", before, "loop:\n", body,
                      "sub.sf ra31, ra31, 1\nbranch.any_zc loop\nnop\nnop\nnop\n", after, "end\n");
}

TEST(Vc4Figures, AnInstructionTakesFourClocks) {
  Board board("rpi3");
  const double ns = ns_per_turn(board, loop("", repeated("add r0, r0, r1\n", 59)), {{0}}, 20);
  expect_ratio("QI10: Pi 3, M instructions a second", 99.99, 64 * 1e3 / ns, 0.999, 1.001);
}

TEST(Vc4Figures, UniformsComeMoreSlowlyThanInstructions) {
  Board board("rpi2");
  const double fast =
      ns_per_turn(board, loop("", repeated("mov r0, uni\n" + repeated("nop\n", 7), 8)), {{0}}, 100);
  expect_ratio("QU3-6: Pi 2, 7 instructions between two uniforms, of full speed", 1, 69 * 16.0 / fast, 0.95,
               1);
  // The loop's own five stand for the four others.
  const double slow = ns_per_turn(board, loop("", repeated("mov r0, uni\n", 64)), {{0}}, 100);
  expect_ratio("QU3-6: Pi 2, 64 uniforms and 4 instructions, of full speed", 0.6, 69 * 16.0 / slow, 0.9, 1.1);
}

/// Loops of two QPUs of seven instructions each, which hand over to each other twice a turn.
TEST(Vc4Figures, SemaphoresCostNothing) {
  Board board("rpi3");
  const std::string text =
      "mov ra31, uni\nmov.sf r0, uni\nbranch.all_zs other\nnop\nnop\nnop\nloop:\nsrel 0\nsacq 1\n"
      "sub.sf ra31, ra31, 1\nbranch.any_zc loop\nnop\nnop\nnop\nend\nother:\nsacq 0\nsrel 1\n"
      "sub.sf ra31, ra31, 1\nbranch.any_zc other\nnop\nnop\nnop\nend\n";
  const double ns = ns_per_turn(board, text, {{0, 1}, {0, 0}}, 50);
  expect_ratio("QI10: Pi 3, two QPUs that hand over twice, of full speed", 1, 7 * 10 / ns, 0.99, 1.01);
}

TEST(Vc4Figures, LoopsOfMoreThan512InstructionsAreSlower) {
  Board board("rpi2");
  const auto clocks = [&](int instructions) {
    const std::string text = loop("", repeated("nop\n", instructions - 5));
    return ns_per_turn(board, text, {{0}}, 20) / instructions;
  };
  EXPECT_NEAR(clocks(500), 16, 0.1);
  EXPECT_GT(clocks(516), 16.5);
}

constexpr char kReadSetup[] =  // rows of 16 words, at a pitch of 64 bytes
    "load_imm r1, nop, 0x%08x\nload_imm ra1, nop, 0x100000\nload_imm r2, nop, 0x90000040\n";
constexpr char kReadTurn[] = "mov vr_setup, r1\nmov vr_setup, r2\nmov vr_addr, ra1\nmov nop, vpm_ld_wait\n";
constexpr char kWriteSetup[] =
    "load_imm r1, nop, 0x%08x\nload_imm ra1, nop, 0x100000\nload_imm r2, nop, 0xc0000000\n";
constexpr char kWriteTurn[] = "mov vw_setup, r1\nmov vw_setup, r2\nmov vw_addr, ra1\nmov nop, vpm_st_wait\n";

TEST(Vc4Figures, TransfersOfTheVpm) {
  Board board("rpi2");
  // From its start to the end of the wait: but for the seven other instructions of the loop.
  const auto rate = [&](const std::string& setup, const char* turn, int rows) {
    return 64.0 * rows * 1e3 / (ns_per_turn(board, loop(setup, turn), {{0}}, 20) - 7 * 16);
  };
  expect_ratio("QV52: Pi 2, MB/s of reads of 64 B", 200,
               rate(absl::StrFormat(kReadSetup, 0x80010000u), kReadTurn, 1), 0.9, 1.05);
  expect_ratio("QV52: Pi 2, MB/s of reads of 1 KiB", 690,
               rate(absl::StrFormat(kReadSetup, 0x80001000u), kReadTurn, 16), 0.95, 1.05);
  expect_ratio("QV53: Pi 2, MB/s of writes of 64 B", 300,
               rate(absl::StrFormat(kWriteSetup, 0x80904000u), kWriteTurn, 1), 0.85, 1.05);
  expect_ratio("QV53: Pi 2, MB/s of writes of 8 KiB", 1120,
               rate(absl::StrFormat(kWriteSetup, 0x80104000u), kWriteTurn, 128), 0.95, 1.05);
}

/// Hits of the instruction cache are all instructions, misses its lines; a direct lookup is 16 quads and as
/// many lines as its lanes come to.
TEST(Vc4Figures, CountersCountAsMeasured) {
  Board board("rpi2");
  board.run(repeated("nop\n", 77) + "end\n", {{0}});
  EXPECT_EQ(board.counter(20), 80u);
  EXPECT_EQ(board.counter(21), 10u);
  for (const uint32_t step : {0u, 4u, 8u, 32u, 64u, 256u}) {
    board.run(
        "mov r0, elem\nmul24 r0, r0, uni\nload_imm r1, nop, 0x100000\nadd tmu0_s, r0, r1\nload_tmu0\nend\n",
        {{step}});
    EXPECT_EQ(board.counter(24), 16u);
    EXPECT_EQ(board.counter(25), std::min((15 * step + 4 + 63) / 64, 16u)) << step;
    EXPECT_EQ(board.counter(21) + board.counter(23) + board.counter(25),
              board.counter(28) + board.counter(29));
  }
}

/// Lines 4096 bytes apart evict each other always, 2048 bytes apart never: of TMU 0 and 1 (QT10, QT31).
TEST(Vc4Figures, TheCacheOfATmuIsDirectMapped) {
  for (const char* tmu : {"0", "1"})
    for (const uint32_t apart : {2048u, 4096u}) {
      Board board("rpi2");
      const std::string turn =
          absl::StrFormat("mov tmu%s_s, ra1\nload_tmu%s\nmov tmu%s_s, ra2\nload_tmu%s\n", tmu, tmu, tmu, tmu);
      board.run(loop("load_imm ra1, nop, 0x100000\nmov r1, uni\nnop\nadd ra2, ra1, r1\n", turn),
                {{20, apart}});
      EXPECT_EQ(board.counter(25), apart == 4096 ? 40u : 2u);
    }
}

// ---- Whole programs

/// As QPULib compiles a kernel that prefetches through the TMU and stores two vectors a turn.
std::string rotation() {
  const std::string store =
      "load_imm r2, nop, 0x1a00\nadd vw_setup, r2, ra6\nmov vpm, r0\nnop\n"
      "load_imm r2, nop, 0x80904000\nshl r3, ra6, 7\nadd vw_setup, r2, r3\nload_imm vw_setup, nop, "
      "0xc0000000\n"
      "mov vw_addr, ra4\nmov nop, vpm_st_wait\nnop\nnop\n";
  return loop(
      "mov ra6, uni\nmov ra4, uni\nmov r1, elem\nshl r1, r1, 2\nadd ra1, r1, uni\nmov rb5, uni\n"
      "load_imm rb0, nop, 0x3f000000\nload_imm rb1, nop, 0x3f400000\nmov tmu0_s, ra1\nmov tmu1_s, ra1\n",
      "add ra1, ra1, rb5\nnop\nmov tmu0_s, ra1\nmov tmu1_s, ra1\nload_tmu0\nmov ra2, r4\nload_tmu1\nmov ra3, "
      "r4\n"
      "nop\nnop ; fmul r0, ra2, rb0\nnop ; fmul r1, ra3, rb1\nfsub r0, r0, r1\n" +
          store + "nop ; fmul r0, ra3, rb0\nnop ; fmul r1, ra2, rb1\nfadd r0, r0, r1\n" + store +
          "add ra4, ra4, rb5\n" + repeated("nop\n", 8),
      "load_tmu0\nload_tmu1\n");
}

double rotation_seconds(const char* name, int qpus) {
  constexpr double kVectors = 192000.0 / 16;
  constexpr uint32_t kTurns = 100;
  Board board(name);
  std::vector<std::vector<uint32_t>> uniforms;
  for (int i = 0; i < qpus; ++i) {
    const auto n = static_cast<uint32_t>(i);
    uniforms.push_back(
        {0, n, Board::kData + 0x400000 + 64 * n, Board::kData + 64 * n, 64u * static_cast<uint32_t>(qpus)});
  }
  return ns_per_turn(board, rotation(), uniforms, kTurns) * 1e-9 * kVectors / qpus;
}

TEST(Vc4Figures, RotationsByQpulib) {
  constexpr double kStores = 24000;
  expect_ratio("Rot3D: Pi 1, prefetched, 1 QPU, s", 0.018, rotation_seconds("rpi1", 1), 0.8, 1);
  const double one = rotation_seconds("rpi1", 2), three = rotation_seconds("rpi3", 4);
  expect_ratio("Rot3D: Pi 1, prefetched, 2 QPUs, s", 0.016, one, 0.9, 1.1);
  expect_ratio("Rot3D: Pi 3, prefetched, 4 QPUs, s", 0.013367, three, 0.9, 1.15);
  expect_ratio("Rot3D: Pi 3, prefetched, 12 QPUs, s", 0.013386, rotation_seconds("rpi3", 12), 0.9, 1.15);
  // What takes HeatMap's time is the same: stores of vectors by QPUs that wait for each other.
  expect_ratio("HeatMap: Pi 1, 4 QPUs, s", 20.36, one / kStores * 512 * 512 / 16 * 2000, 0.9, 1.1);
  expect_ratio("HeatMap: Pi 3, 4 QPUs, s", 16.26, three / kStores * 512 * 506 / 16 * 1500, 0.85, 1.1);
}

/// A block of 16 x 64 of a product as QMKL has it (src/blas/sgemm_RNN.py): for each of `c` columns a vector
/// of 16 rows by TMU 0 and 64 numbers of a row by TMU 1, all of them a column ahead; then QPUs take turns to
/// load and store the block, 16 x 16 at a time. Which version was measured is not known: the loop has as many
/// instructions as c = 448 wants.
std::string product_block() {
  constexpr int kInstructions = 148, kProducts = 27, kOthers = 14;
  std::string transfers;
  for (int block = 0; block < 4; ++block)
    absl::StrAppend(&transfers,
                    "mov vr_setup, r1\nmov vr_setup, r2\nmov vr_addr, rb31\nmov nop, vpm_ld_wait\n",
                    repeated("nop\n", 32), "mov vw_setup, ra8\nmov vw_setup, ra9\nmov vw_addr, rb31\n",
                    "mov nop, vpm_st_wait\nmov r3, rb31\nadd rb31, r3, ra10\n");
  const std::string ask =
      "mov tmu1_s, ra3\nadd tmu1_s, ra3, rb5\nadd tmu1_s, ra3, rb6\nadd tmu1_s, ra3, rb7\nadd ra3, ra3, "
      "rb4\n";
  return absl::StrCat(
      "mov tmu_noswap, 1\nmov ra20, uni\nmov ra21, uni\nmov r1, elem\nmov r2, uni\nshl r3, r1, 2\n"
      "mul24 r1, r1, r2\nshl r2, r2, 4\nmov ra23, r2\nadd ra22, r1, uni\nadd rb22, r3, uni\nmov rb4, uni\n"
      "mov rb31, uni\nload_imm rb5, nop, 64\nload_imm rb6, nop, 128\nload_imm rb7, nop, 192\n",
      "block:\nmov ra31, ra21\nmov ra1, ra22\nmov ra3, rb22\nnop\n", ask,
      "mov tmu0_s, ra1\nadd ra1, ra1, 4\nnop\nmov tmu0_s, ra1\nload_tmu0\nloop:\n",
      repeated("load_tmu1\n" + repeated("nop\n", kProducts - 1), 4), ask,
      "load_tmu0\nadd ra1, ra1, 4\nnop\nmov tmu0_s, ra1\n",
      repeated("nop\n", kInstructions - 4 * kProducts - kOthers),
      "sub.sf ra31, ra31, 1\nbranch.any_zc loop\n",
      "nop\nnop\nnop\nload_tmu0\nload_tmu1\nload_tmu1\nload_tmu1\nload_tmu1\n",
      "mov nop, mutex_acq\nload_imm r1, nop, 0x80001000\nload_imm r2, nop, 0x90001000\n"
      "load_imm ra8, nop, 0x88104000\nload_imm ra9, nop, 0xc0000fc0\nload_imm ra10, nop, 64\n",
      transfers,
      "mov mutex_release, 1\nmov r0, ra23\nadd ra22, ra22, r0\nsub.sf ra20, ra20, 1\n"
      "branch.any_zc block\nnop\nnop\nnop\nend\n");
}

/// @param clock_mhz  0: the board's
double product_gflops(const char* name, uint32_t c, int clock_mhz = 0) {
  // Two times six QPUs have 32 blocks of rows times three of columns each; the last ones have one.
  constexpr uint32_t n = 1024, kRows = 512, kColumns = 192, kBlocks = 32 * 3;
  constexpr uint32_t kFew = 1, kMany = 3;
  Board board(name, clock_mhz);
  std::vector<std::vector<uint32_t>> uniforms;
  const GpuAddr a = Board::kData, b = Board::kData + 0x400000, result = Board::kData + 0x800000;
  for (uint32_t i = 0; i < 2; ++i)
    for (uint32_t j = 0; j < 6; ++j)
      uniforms.push_back({kFew, c, 4 * c, a + i * kRows * 4 * c, b + j * kColumns * 4, 4 * n,
                          result + i * kRows * 4 * n + j * kColumns * 4});
  const uint64_t few = board.run(product_block(), uniforms).clocks;
  for (auto& words : uniforms) words[0] = kMany;
  const double ns = board.ns_of(board.run(product_block(), uniforms).clocks - few) / (kMany - kFew);
  return (2.0 * n * n * c + 3.0 * n * n) / (ns * kBlocks);
}

/// Both boards ran at 300 MHz, as products that no cache holds back take the same time on them.
TEST(Vc4Figures, ProductsByQmkl) {
  const std::pair<uint32_t, double> three[] = {{64, 9.0},   {128, 6.8}, {200, 10.7}, {256, 5.5},
                                               {320, 11.2}, {384, 6.8}, {448, 11.4}, {512, 3.3}};
  for (const auto& [c, published] : three)
    expect_ratio(absl::StrFormat("sgemm: Pi 3B+, n = 1024, c = %d, Gflop/s", c), published,
                 product_gflops("rpi3", c, 300), 0.8, 1.25);
  const std::pair<uint32_t, double> zero[] = {{64, 7.6}, {200, 9.6}, {256, 5.0}};
  for (const auto& [c, published] : zero)
    expect_ratio(absl::StrFormat("sgemm: Zero W, n = 1024, c = %d, Gflop/s", c), published,
                 product_gflops("rpi0", c), 0.8, 1.25);
}

}  // namespace
}  // namespace v3d::csd
