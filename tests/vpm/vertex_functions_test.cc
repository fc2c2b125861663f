/// Functions for batches of vertices give the rows that threads give, whatever the program, the formats of
/// attributes and the uniforms are.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gpu/base/job_control.h"
#include "gpu/qpu/jit/jit.h"
#include "gpu/qpu/run/program.h"
#include "gpu/qpu/run/program_cache.h"
#include "gpu/qpu/run/program_room.h"
#include "gpu/vpm/vertex_function.h"
#include "gpu/vpm/vertex_shading.h"
#include "tests/qpu/each_target.h"
#include "tests/vpm/shader_builder.h"
#include "tests/vpm/test_job.h"

namespace v3d::vpm {
namespace {

/// A job of which nobody counts anything.
struct QuietJob : TestJob {
  QuietJob(const chip::Profile& profile, qpu::Compiler* compiler, bool counted)
      : TestJob(profile, 2), programs(profile.generation, compiler) {
    control.set_counted(counted);
    job().control = &control;
    job().programs = &programs;
  }
  JobControl control;
  qpu::ProgramCache programs;
};

/// One random draw, made of its seed.
class RandomDraw {
 public:
  RandomDraw(uint32_t seed, const chip::Profile& profile, qpu::Compiler* compiler, bool counted)
      : random_(seed), job_(profile, compiler, counted) {}

  std::vector<uint32_t> shade() {
    draw::Draw draw;
    const uint32_t vertices = 1 + below(kMostVertices);
    draw.record = make_record(vertices);
    for (uint32_t i = 0; i < vertices; ++i)
      draw.vertices.push_back({.index = below(vertices + 3), .instance = below(5)});
    std::vector<uint32_t> words;
    for (const Phase phase : {Phase::kBin, Phase::kRender}) {
      const ShadedVertices shaded = VertexStages(job_.job()).shade(draw, phase);
      for (uint32_t v = 0; v < shaded.count; ++v)
        for (uint32_t r = 0; r < shaded.rows; ++r) words.push_back(shaded.word(v, r));
    }
    EXPECT_EQ(job_.error(), "");
    return words;
  }

 private:
  static constexpr uint32_t kMostVertices = 200, kAttributes = 3;
  static constexpr uint8_t kFirst = 10, kRegisters = 12, kRow = 50;  // of programs
  static constexpr uint8_t kUnifa = 9;
  static constexpr uint8_t kRowsIn = 8, kRowsOut = 8;

  uint32_t below(uint32_t most) { return static_cast<uint32_t>(random_()) % most; }
  bool one_in(uint32_t n) { return below(n) == 0; }
  template <typename T>
  T pick(std::initializer_list<T> of) {
    return of.begin()[below(static_cast<uint32_t>(of.size()))];
  }
  uint32_t any_float() {
    constexpr uint32_t kSpecial[] = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345,
                                     0x7f800001, 1,          0x807fffff, 0x7f7fffff, 0x4f000000, 0xcf000001};
    if (one_in(16)) return kSpecial[below(std::size(kSpecial))];
    const float number = (static_cast<float>(random_()) - 0x1p31f) * 0x1p-31f;
    return std::bit_cast<uint32_t>(number * pick({1.0f, 1.0f, 300.0f, 0x1p33f, 0x1p-130f}));
  }
  uint8_t any_register() { return static_cast<uint8_t>(kFirst + below(kRegisters)); }

  std::shared_ptr<draw::ShaderRecord> make_record(uint32_t vertices) {
    auto record = std::make_shared<draw::ShaderRecord>();
    record->cs_vertex_id = record->vs_vertex_id = one_in(2);
    record->cs_instance_id = record->vs_instance_id = one_in(2);
    record->num_attributes = kAttributes;
    for (uint32_t i = 0; i < kAttributes; ++i) record->attributes[i] = make_attribute(vertices);
    record->cs_output_sectors = record->vs_output_sectors = static_cast<uint8_t>(kRowsOut / 8);
    record->cs = make_program();
    record->vs = make_program();
    return record;
  }

  draw::Attribute make_attribute(uint32_t vertices) {
    constexpr uint32_t kStride = 16;
    std::vector<uint32_t> data(vertices * kStride / 4 + 4);
    for (uint32_t& word : data) word = any_float();
    const auto words = static_cast<uint8_t>(1 + below(4));
    return {.address = job_.put(data),
            .vec_size = static_cast<uint8_t>(1 + below(4)),
            .type = static_cast<uint8_t>(1 + below(7)),
            .is_signed = one_in(2),
            .normalized = one_in(2),
            .read_as_int = one_in(2),
            .cs_words = words,
            .vs_words = words,
            .divisor = static_cast<uint16_t>(one_in(4) ? 1 + below(3) : 0),
            .stride = kStride,
            .max_index = vertices - 1};
  }

  /// The number of a row: a small immediate, or a uniform as drivers have it.
  qpu::Operand row(ShaderBuilder& program, uint32_t number) {
    if (one_in(3)) return ShaderBuilder::immediate(static_cast<uint8_t>(number));
    program.uniform(kRow, number);
    return ShaderBuilder::rf(kRow);
  }

  draw::ShaderCode make_program() {
    using qpu::Op;
    ShaderBuilder program(job_.job().profile->generation);
    uint8_t to = kFirst;
    for (int n = 0; n < 6; ++n) {
      const qpu::Operand from = row(program, below(one_in(20) ? 16 : kRowsIn));
      program.add(Op::kLdvpmvIn, to++, from);
    }
    if (one_in(3)) read_words(program, &to);
    while (to < kFirst + kRegisters) program.uniform(to++, any_float());
    write_operations(program, 4 + below(24));
    for (uint32_t n = below(10); n > 0; --n) {
      const qpu::Operand at = row(program, below(one_in(20) ? 12 : kRowsOut));
      program.add(Op::kStvpmv, -1, at, ShaderBuilder::rf(any_register()),
                  one_in(60) ? qpu::Cond::kIfa : qpu::Cond::kNone);
    }
    return program.build(&job_);
  }

  /// Reads words by an address that is a uniform, or 4 bytes behind it, as of buffers of uniforms.
  void read_words(ShaderBuilder& program, uint8_t* to) {
    std::vector<uint32_t> words(4);
    for (uint32_t& word : words) word = any_float();
    program.uniform(kRow, job_.put(words) + below(4));
    qpu::Instruction set;
    set.add.op = one_in(2) ? qpu::Op::kAdd : qpu::Op::kOr;
    set.add.magic = true;
    set.add.waddr = kUnifa;
    set.add.a = ShaderBuilder::rf(kRow);
    set.add.b = set.add.op == qpu::Op::kAdd ? ShaderBuilder::immediate(4) : set.add.a;
    program.emit(set);
    for (int n = 0; n < 3; ++n) program.emit({});
    for (int n = 0; n < 3; ++n) {
      qpu::Instruction load;
      load.signals = qpu::kLdunifarf;
      load.signal_waddr = (*to)++;
      program.emit(load);
    }
  }

  /// A straight line of operations on registers that all have values.
  void write_operations(ShaderBuilder& program, uint32_t count) {
    using qpu::Op;
    for (uint32_t n = 0; n < count; ++n) {
      const Op op =
          pick({Op::kFadd,  Op::kFadd, Op::kFmul, Op::kFmul,  Op::kFmul,   Op::kFsub,  Op::kFmin,  Op::kFmax,
                Op::kAdd,   Op::kSub,  Op::kAnd,  Op::kOr,    Op::kXor,    Op::kShl,   Op::kShr,   Op::kAsr,
                Op::kMin,   Op::kMax,  Op::kUmin, Op::kVfmul, Op::kFfloor, Op::kFtoin, Op::kFtoin, Op::kFtoiz,
                Op::kFtouz, Op::kItof, Op::kUtof, Op::kClz,   Op::kRecip,  Op::kRsqrt, Op::kExp,   Op::kLog,
                Op::kFcmp,  Op::kMov,  Op::kFmov, Op::kVfla});
      const qpu::FlagWrite flags =
          pick({qpu::FlagWrite::kNone, qpu::FlagWrite::kNone, qpu::FlagWrite::kNone, qpu::FlagWrite::kPushn,
                qpu::FlagWrite::kPushc, qpu::FlagWrite::kAndn});
      qpu::Instruction i;
      const bool of_mul = op == Op::kFmul || op == Op::kVfmul || op == Op::kMov || op == Op::kFmov;
      qpu::AluHalf& half = of_mul ? i.mul : i.add;
      half.op = op;
      half.magic = false;
      half.waddr = any_register();
      half.flags = flags;
      if (flags == qpu::FlagWrite::kNone)
        half.cond = pick({qpu::Cond::kNone, qpu::Cond::kIfa, qpu::Cond::kIfnb});
      if (qpu::info(op).operands > 0) half.a = ShaderBuilder::rf(any_register());
      if (qpu::info(op).operands > 1) half.b = ShaderBuilder::rf(any_register());
      if (qpu::encode(job_.job().profile->generation, i)) program.emit(i);
    }
  }

  std::mt19937 random_;
  QuietJob job_;
};

class VertexFunctionsOf : public qpu::EachTarget {
 protected:
  uint64_t functions() const { return compiler->statistics().vertices.functions; }
};

INSTANTIATE_TEST_SUITE_P(Targets, VertexFunctionsOf, ::testing::ValuesIn(qpu::jit::kAllTargets),
                         qpu::name_of_target);

TEST_P(VertexFunctionsOf, GiveTheRowsOfThreads) {
  const uint32_t draws = qpu::scenes_for(GetParam(), 300, 30);
  for (uint32_t seed = 0; seed < draws; ++seed) {
    const chip::Profile& profile = seed % 2 != 0 ? profile_42() : chip::default_profile();
    const auto expected = RandomDraw(seed, profile, nullptr, true).shade(),
               shaded = RandomDraw(seed, profile, compiler.get(), false).shade();
    ASSERT_EQ(shaded.size(), expected.size());
    for (size_t n = 0; n < shaded.size(); ++n)
      ASSERT_EQ(shaded[n], expected[n]) << "word " << n << " of the draw with seed " << seed;
  }
  EXPECT_GT(functions(), draws);
}

TEST_P(VertexFunctionsOf, WhoCountsSeesThreads) {
  RandomDraw(1, chip::default_profile(), compiler.get(), true).shade();
  EXPECT_EQ(functions(), 0u);
}

/// A draw of 40 vertices whose program multiplies a row by a uniform, and writes it.
struct Product {
  explicit Product(qpu::Compiler* compiler, uint32_t factor, uint32_t row = 0)
      : job(chip::default_profile(), compiler, false) {
    record = std::make_shared<draw::ShaderRecord>();
    record->num_attributes = 1;
    std::vector<uint32_t> data(kVertices);
    for (uint32_t v = 0; v < kVertices; ++v) data[v] = std::bit_cast<uint32_t>(static_cast<float>(v));
    data[7] = kNan;
    record->attributes[0] = {.address = job.put(data),
                             .vec_size = 1,
                             .type = 2,
                             .cs_words = 1,
                             .vs_words = 1,
                             .stride = 4,
                             .max_index = kVertices - 1};
    record->cs_output_sectors = record->vs_output_sectors = 1;
    ShaderBuilder program;
    program.uniform(11, factor).uniform(12, row).load(10, 0);
    qpu::Instruction product;
    product.mul = {.op = qpu::Op::kFmul, .waddr = 10, .a = ShaderBuilder::rf(11), .b = ShaderBuilder::rf(10)};
    product.mul.magic = false;
    record->cs = record->vs = program.emit(product).store_at(12, 10).build(&job);
    draw.record = record;
    for (uint32_t v = 0; v < kVertices; ++v) draw.vertices.push_back({.index = v, .instance = 0});
  }
  ShadedVertices shade() { return VertexStages(job.job()).shade(draw, Phase::kBin); }
  std::shared_ptr<const qpu::Program> program() { return job.programs.get(job.memory(), record->cs.code); }

  static constexpr uint32_t kVertices = 40, kNan = 0x7fc00123;
  QuietJob job;
  std::shared_ptr<draw::ShaderRecord> record;
  draw::Draw draw;
};

TEST_P(VertexFunctionsOf, UniformsThatAreNoNumbersAreForThreads) {
  constexpr uint32_t kOther = 0x7fc00456;
  const float two = 2;
  EXPECT_EQ(Product(compiler.get(), std::bit_cast<uint32_t>(two)).shade().word(3, 0),
            std::bit_cast<uint32_t>(6.0f));
  EXPECT_EQ(Product(compiler.get(), std::bit_cast<uint32_t>(two)).shade().word(7, 0), Product::kNan);
  // Of two NaNs the first one is the result.
  EXPECT_EQ(Product(compiler.get(), kOther).shade().word(7, 0), kOther);
  EXPECT_EQ(functions(), 3u);
}

TEST_P(VertexFunctionsOf, RowsThatAreNotThereAreForThreads) {
  constexpr uint32_t kBeyond = 8;
  Product product(compiler.get(), std::bit_cast<uint32_t>(2.0f), kBeyond);
  const ShadedVertices shaded = product.shade();
  ASSERT_EQ(shaded.rows, kBeyond);
  for (uint32_t row = 0; row < shaded.rows; ++row) EXPECT_EQ(shaded.word(3, row), 0u) << row;
  EXPECT_EQ(product.job.error(), "");
}

TEST_P(VertexFunctionsOf, MemoryIsCountedAndGivenBack) {
  Product product(compiler.get(), 0);
  const auto room = std::make_shared<qpu::ProgramRoom>(qpu::Program::kMaxTotal);
  {
    const qpu::Program program(chip::Generation::k71, product.record->cs.code, room, compiler.get());
    ASSERT_NE(program.vertices(product.job.memory(), true), nullptr);
    EXPECT_EQ(program.vertices(product.job.memory(), true), program.vertices(product.job.memory(), true));
    EXPECT_GE(room->pieces(), 1u);
  }
  EXPECT_EQ(room->pieces(), 0u);
}

TEST_P(VertexFunctionsOf, AreOfTheWordsThatTheyWereMadeOf) {
  Product product(compiler.get(), 0);
  const Memory memory = product.job.memory();
  const auto room = std::make_shared<qpu::ProgramRoom>(qpu::Program::kMaxTotal);
  const qpu::Program program(chip::Generation::k71, product.record->cs.code, room, compiler.get());
  const qpu::VertexCode* const code = program.vertices(memory, true);
  ASSERT_NE(code, nullptr);
  EXPECT_TRUE(program.matches(memory));
  const GpuAddr last = program.entry() + static_cast<GpuAddr>(code->words().size() - 1) * 8;
  memory.store<uint32_t>(last, memory.load<uint32_t>(last) ^ 1u);
  EXPECT_FALSE(program.matches(memory));
}

TEST_P(VertexFunctionsOf, AreMadeWhenItIsWorthIt) {
  compiler = std::make_unique<qpu::jit::JitCompiler>(GetParam());
  Product product(compiler.get(), 0);
  const uint32_t batches = compiler->vertex_compiler()->batches_before();
  ASSERT_GT(batches, 0u);
  product.program()->count_batches(batches - 4);
  product.shade();  // three
  EXPECT_EQ(functions(), 0u);
  product.shade();
  product.shade();
  EXPECT_EQ(functions(), 1u);
}

}  // namespace
}  // namespace v3d::vpm
