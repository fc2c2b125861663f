/// Functions for blocks of fragments keep in values what programs keep in scratch memory, unroll their loops
/// and read what uniforms point to; tiles are as batches leave them.

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gpu/qpu/jit/jit.h"
#include "tests/pse/scene.h"
#include "tests/qpu/each_target.h"

namespace v3d::pse {
namespace {

using Pixels = std::vector<uint32_t>;

/// Programs of random operations that store values, load them again, go through loops and read constants
/// from memory.
class ScratchBuilder : public ProgramBuilder {
 public:
  ScratchBuilder(std::mt19937& random, TestJob& job) : random_(random), job_(job) {
    for (uint32_t n = 0; n < kVaryings; ++n) varying(static_cast<uint8_t>(kFirst + n));
    for (uint32_t n = kVaryings; n < kRegisters; ++n)
      uniform(static_cast<uint8_t>(kFirst + n), std::bit_cast<uint32_t>(static_cast<float>(below(100)) - 50));
  }

  static constexpr uint32_t kVaryings = 4, kSlots = 5;
  static constexpr uint8_t kFirst = 10, kRegisters = 10;

  uint32_t below(uint32_t most) { return static_cast<uint32_t>(random_()) % most; }
  bool one_in(uint32_t n) { return below(n) == 0; }

  /// As Mesa's v3d_setup_spill_base(). Then something stands in each slot.
  void set_up_scratch(uint32_t bytes_of_thread = kSlots * kLine) {
    const GpuAddr memory = job_.allocate(kThreads * bytes_of_thread);
    add(qpu::Op::kTidx, kThread).add(qpu::Op::kEidx, kLane);
    uniform(kBase, bytes_of_thread);
    qpu::Instruction i;
    i.mul.op = qpu::Op::kMultop;
    i.mul.a = rf(kThread);
    i.mul.b = rf(kBase);
    emit(i);
    i.mul.op = qpu::Op::kUmul24;
    set_destination(i.mul, kThread);
    emit(i);
    add(qpu::Op::kShl, kLane, rf(kLane), immediate(2));
    add(qpu::Op::kAdd, kThread, rf(kThread), rf(kLane));
    uniform(kBase, memory);
    add(qpu::Op::kAdd, kBase, rf(kBase), rf(kThread));
    for (uint32_t slot = 0; slot < kSlots; ++slot) store_slot(slot * kLine, any_register(), kPerQuad);
  }

  void store_slot(uint32_t offset, uint8_t from, uint32_t lanes, qpu::Cond cond = qpu::Cond::kNone) {
    uniform(kOffset, offset);
    add(qpu::Op::kOr, kTmud, rf(from), rf(from), qpu::Cond::kNone, qpu::FlagWrite::kNone, true);
    address(lanes, cond);
  }
  void load_slot(uint32_t offset, uint8_t to, uint32_t lanes) {
    uniform(kOffset, offset);
    address(lanes);
    load_result(to);
  }

  void work(uint32_t count) {
    for (; count > 0; --count) {
      const uint32_t lanes = one_in(2) ? kPerPixel : kPerQuad, offset = below(kSlots) * kLine;
      switch (below(5)) {
        case 0:
          compare();
          store_slot(offset, any_register(), lanes, one_in(2) ? qpu::Cond::kIfa : qpu::Cond::kIfna);
          break;
        case 1:
          store_slot(offset, any_register(), lanes);
          break;
        case 2:
          lose_samples();
          break;
        default:
          load_slot(offset, any_register(), lanes);
      }
      calculate();
    }
  }

  /// Lanes lose their sample, or get one.
  void lose_samples() {
    if (!one_in(3)) return;
    compare();
    add(qpu::Op::kSetmsf, qpu::kWaddrNop, immediate(static_cast<uint8_t>(below(2))), {}, qpu::Cond::kIfa,
        qpu::FlagWrite::kNone, true);
  }

  void calculate() {
    static constexpr qpu::Op kOps[] = {qpu::Op::kFadd, qpu::Op::kFsub, qpu::Op::kFmax,
                                       qpu::Op::kFmin, qpu::Op::kFdx,  qpu::Op::kFdy};
    const qpu::Op op = kOps[below(std::size(kOps))];
    qpu::Instruction i;
    i.add.op = op;
    set_destination(i.add, any_register());
    i.add.a = rf(any_register());
    if (qpu::info(op).operands > 1) i.add.b = rf(any_register());
    if (qpu::encode(chip::Generation::k71, i)) emit(i);
  }

  /// A loop in which the slots take turns: their offset is computed.
  void loop(uint32_t times, bool knows_times) {
    knows_times ? add(qpu::Op::kSub, kCount, rf(kFirst), rf(kFirst))
                : add(qpu::Op::kAnd, kCount, rf(any_register()), immediate(1));
    const size_t first_instruction = words().size(), first_uniform = uniforms_.size();
    uniform(kOffset, 6);  // log2(kLine)
    add(qpu::Op::kShl, kOffset, rf(kCount), rf(kOffset));
    if (one_in(2)) {
      add(qpu::Op::kOr, kTmud, rf(any_register()), rf(kFirst), qpu::Cond::kNone, qpu::FlagWrite::kNone, true);
      address(kPerQuad);
    } else {
      address(kPerPixel);
      load_result(any_register());
    }
    calculate();
    add(qpu::Op::kAdd, kCount, rf(kCount), immediate(1));
    add(qpu::Op::kSub, qpu::kWaddrNop, rf(kCount), immediate(static_cast<uint8_t>(times)), qpu::Cond::kNone,
        qpu::FlagWrite::kPushc, true);
    const size_t branch = words().size();
    uniforms_.push_back(static_cast<uint32_t>(first_uniform - uniforms_.size() - 1) * 4);
    qpu::Instruction back;
    back.is_branch = true;
    back.branch.cond = qpu::BranchCond::kAlla;
    back.branch.offset = static_cast<uint32_t>(first_instruction - branch - 4) * 8;
    back.branch.uniforms = true;
    back.branch.uniform_target = static_cast<uint8_t>(qpu::BranchTarget::kRelative);
    emit(back);
    calculate_in_delay_slots();
  }

  /// Words of a buffer, of which the address comes as a uniform.
  void read_buffer() {
    const GpuAddr buffer = job_.put(std::vector<float>{1.5f, -2, 0.25f, 7});
    qpu::Instruction set;
    set.signals = qpu::kLdunifrf;
    set.signal_magic = true;
    set.signal_waddr = kUnifa;
    uniforms_.push_back(buffer + 4 * below(2) + below(4));
    emit(set);
    nop().nop().nop();
    for (uint32_t n = 0; n < 2; ++n) {
      qpu::Instruction load;
      load.signals = qpu::kLdunifarf;
      load.signal_waddr = any_register();
      emit(load);
    }
    nop(qpu::kLdunifa);
    add(qpu::Op::kOr, any_register(), rf(0), rf(0));
  }

  /// Each slot comes back.
  void load_all() {
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      load_slot(slot * kLine, any_register(), kPerQuad);
      calculate();
    }
  }

  void finish() { store_half(static_cast<uint8_t>(kFirst + below(kRegisters - 3))); }

  static constexpr uint32_t kPerPixel = 0xffffffff, kPerQuad = 0xffffff7f;
  static constexpr uint32_t kLine = 64;

 private:
  static constexpr uint32_t kThreads = 64;
  static constexpr uint8_t kThread = 40, kLane = 41, kBase = 42, kOffset = 43, kCount = 44;
  static constexpr uint8_t kUnifa = 9, kTmud = 11, kTmuau = 13;

  uint8_t any_register() { return static_cast<uint8_t>(kFirst + below(kRegisters)); }

  void add(qpu::Op op, int to, qpu::Operand a, qpu::Operand b, qpu::Cond cond, qpu::FlagWrite flags,
           bool is_magic) {
    qpu::Instruction i;
    i.add.op = op;
    i.add.magic = is_magic;
    i.add.waddr = static_cast<uint8_t>(to);
    i.add.a = a;
    i.add.b = b;
    i.add.cond = cond;
    i.add.flags = flags;
    emit(i);
  }
  using ProgramBuilder::add;

  void address(uint32_t lanes, qpu::Cond cond = qpu::Cond::kNone) {
    uniforms_.push_back(lanes);
    add(qpu::Op::kAdd, kTmuau, rf(kBase), rf(kOffset), cond, qpu::FlagWrite::kNone, true);
  }
  void load_result(uint8_t to) {
    qpu::Instruction i;
    i.signals = qpu::kLdtmu;
    i.signal_waddr = to;
    emit(i);
  }
  void compare() {
    add(qpu::Op::kFcmp, qpu::kWaddrNop, rf(kFirst), rf(any_register()), qpu::Cond::kNone,
        qpu::FlagWrite::kPushn, true);
  }
  void calculate_in_delay_slots() {
    for (int n = 0; n < 3; ++n) add(qpu::Op::kAdd, kOffset, rf(kOffset), immediate(1));
  }

  std::mt19937& random_;
  TestJob& job_;
};

struct Options {
  uint32_t seed = 0;
  bool counted = false;         ///< then there are no functions
  int spare_lines = 0;          ///< of a thread's part, beside those of the slots
  bool reads_unstored = false;  ///< the line behind the slots
  bool leaves_stored = false;   ///< that line
  bool compares = false;        ///< all memory
  bool knows_times = true;      ///< of loops
};

/// A frame of triangles of one random program.
Pixels frame(const Options& options, qpu::Compiler* compiler) {
  std::mt19937 random(options.seed);
  Scene scene(40, 40, 16, false, compiler);
  scene.control().set_counted(options.counted);
  scene.test().job().compares_memory = options.compares;
  scene.config().targets[0] = {.used = true, .type = tlb::ColorType::k16F, .bpp = 1, .clear = {}};
  ScratchBuilder program(random, scene.test());
  program.set_up_scratch((ScratchBuilder::kSlots + options.spare_lines) * ScratchBuilder::kLine);
  program.read_buffer();
  program.work(4);
  program.loop(1 + program.below(ScratchBuilder::kSlots), options.knows_times);
  program.work(4);
  program.load_all();
  constexpr uint32_t kBehind = ScratchBuilder::kSlots * ScratchBuilder::kLine;
  if (options.leaves_stored) program.store_slot(kBehind, 10, ScratchBuilder::kPerQuad);
  if (options.reads_unstored) program.load_slot(kBehind, 10, ScratchBuilder::kPerQuad);
  program.finish();
  const auto number = [&] { return static_cast<float>(program.below(400)) / 10; };
  std::vector<SceneVertex> vertices;
  for (int n = 0; n < 9; ++n) {
    SceneVertex v = {number(), number()};
    for (uint32_t i = 0; i < ScratchBuilder::kVaryings; ++i)
      v.words.push_back(std::bit_cast<uint32_t>(number() - 20));
    vertices.push_back(v);
  }
  scene.add_draw(3, vertices, program, ScratchBuilder::kVaryings);
  Pixels pixels;
  scene.after_tile = [&](tlb::TileBuffer& tile) {
    for_each_pixel(tile, [&](const tlb::TileBuffer::Sample& sample) {
      pixels.insert(pixels.end(), sample.colors[0].begin(), sample.colors[0].end());
    });
  };
  scene.list_everything();
  scene.prepare();
  scene.render_tiles();
  EXPECT_EQ(scene.error(), "");
  return pixels;
}

class BlockScratchOf : public qpu::EachTarget {
 protected:
  uint64_t functions() const { return compiler->statistics().blocks.functions; }
  uint64_t refused() const { return compiler->statistics().blocks.others; }
};

INSTANTIATE_TEST_SUITE_P(Targets, BlockScratchOf, ::testing::ValuesIn(qpu::jit::kAllTargets),
                         qpu::name_of_target);

TEST_P(BlockScratchOf, GivesWhatMemoryGives) {
  const uint32_t frames = qpu::scenes_for(GetParam(), 200, 20);
  uint32_t shown = 0;
  for (uint32_t seed = 0; seed < frames; ++seed) {
    const Pixels expected = frame({.seed = seed, .counted = true}, nullptr),
                 drawn = frame({.seed = seed}, compiler.get());
    ASSERT_EQ(drawn, expected) << "of the frame with seed " << seed;
    for (const uint32_t word : drawn) shown += word != 0;
  }
  EXPECT_EQ(functions(), frames);
  EXPECT_GT(shown, frames * 100);
}

TEST_P(BlockScratchOf, IsNotWhatOthersCouldSee) {
  // Then parts of threads overlap.
  frame({.spare_lines = -1}, compiler.get());
  EXPECT_EQ(functions(), 0u);
  EXPECT_EQ(refused(), 1u);
}

TEST_P(BlockScratchOf, IsStoredBeforeItIsLoaded) {
  frame({.spare_lines = 1}, compiler.get());
  EXPECT_EQ(functions(), 1u);
  frame({.spare_lines = 1, .reads_unstored = true}, compiler.get());
  EXPECT_EQ(functions(), 1u);
  EXPECT_EQ(refused(), 1u);
}

TEST_P(BlockScratchOf, StoresThatNothingLoadsAreMade) {
  frame({.spare_lines = 1, .leaves_stored = true}, compiler.get());
  EXPECT_EQ(functions(), 0u);
  EXPECT_EQ(refused(), 1u);
}

TEST_P(BlockScratchOf, WhoComparesMemorySeesBatches) {
  frame({.compares = true}, compiler.get());
  EXPECT_EQ(functions(), 0u);
  EXPECT_EQ(refused(), 0u);
}

TEST_P(BlockScratchOf, LoopsAreOfKnownLength) {
  frame({.counted = true, .knows_times = false}, nullptr);
  frame({.knows_times = false}, compiler.get());
  EXPECT_EQ(functions(), 0u);
  EXPECT_EQ(refused(), 1u);
}

}  // namespace
}  // namespace v3d::pse
