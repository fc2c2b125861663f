/// Hand-made fragment programs for tests.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "gpu/draw/state.h"
#include "gpu/qpu/isa/instruction.h"
#include "tests/vpm/test_job.h"

namespace v3d::pse {

/// Assembles a fragment program for 7.1 out of a few steps.
class ProgramBuilder {
 public:
  static qpu::Operand rf(uint8_t index) { return {qpu::Operand::Kind::kRegister, index}; }
  static qpu::Operand immediate(uint8_t value) { return {qpu::Operand::Kind::kImmediate, value}; }

  ProgramBuilder& emit(const qpu::Instruction& i) {
    const std::optional<uint64_t> word = qpu::encode(71, i);
    EXPECT_TRUE(word.has_value()) << qpu::disassemble(71, i);
    words_.push_back(word.value_or(0));
    return *this;
  }
  ProgramBuilder& nop(uint16_t signals = 0) {
    qpu::Instruction i;
    i.signals = signals;
    return emit(i);
  }
  ProgramBuilder& add(qpu::Op op, int to, qpu::Operand a = {}, qpu::Operand b = {},
                      qpu::Cond cond = qpu::Cond::kNone, qpu::FlagWrite flags = qpu::FlagWrite::kNone) {
    qpu::Instruction i;
    i.add.op = op;
    set_destination(i.add, to);
    i.add.a = a;
    i.add.b = b;
    i.add.cond = cond;
    i.add.flags = flags;
    return emit(i);
  }
  ProgramBuilder& multiply(int to, qpu::Operand a, qpu::Operand b) {
    qpu::Instruction i;
    i.mul.op = qpu::Op::kFmul;
    set_destination(i.mul, to);
    i.mul.a = a;
    i.mul.b = b;
    return emit(i);
  }
  ProgramBuilder& uniform(uint8_t to, uint32_t value) {
    qpu::Instruction i;
    i.signals = qpu::kLdunifrf;
    i.signal_waddr = to;
    uniforms_.push_back(value);
    return emit(i);
  }
  /// to := vary, and C in rf0 from the next instruction but one.
  ProgramBuilder& load_varying(uint8_t to) {
    qpu::Instruction i;
    i.signals = qpu::kLdvary;
    i.signal_waddr = to;
    return emit(i);
  }
  /// to := vary * W + C; W in a register (3, or 1 for the centroid), or -1 for none.
  ProgramBuilder& varying(uint8_t to, int w = 3) {
    load_varying(60);
    w >= 0 ? multiply(60, rf(60), rf(static_cast<uint8_t>(w))) : nop();
    return add(qpu::Op::kFadd, to, rf(60), rf(0));
  }
  /// to := C
  ProgramBuilder& flat(uint8_t to) { return load_varying(60).nop().add(qpu::Op::kOr, to, rf(0), rf(0)); }
  /// to := vary
  ProgramBuilder& raw_varying(uint8_t to) {
    return load_varying(60).nop().add(qpu::Op::kOr, to, rf(60), rf(60));
  }
  /// Four registers to render target 0. @param per_sample  all samples get the same
  ProgramBuilder& store(uint8_t first) {
    uniforms_.push_back(0xffffff3f);
    move_to(qpu::kWaddrTlbu, first);
    for (uint8_t i = 1; i < 4; ++i) move_to(qpu::kWaddrTlb, static_cast<uint8_t>(first + i));
    return *this;
  }
  /// Four registers to a render target, converted to f16.
  ProgramBuilder& store_half(uint8_t first, uint32_t target = 0) {
    if (target != 0) uniforms_.push_back(0xffffffff - (target << 3));
    for (int i = 0; i < 2; ++i) {
      qpu::Instruction pack;
      pack.add.op = qpu::Op::kVfpack;
      pack.add.waddr = target != 0 && i == 0 ? qpu::kWaddrTlbu : qpu::kWaddrTlb;
      pack.add.a = rf(static_cast<uint8_t>(first + 2 * i));
      pack.add.b = rf(static_cast<uint8_t>(first + 2 * i + 1));
      emit(pack);
    }
    return *this;
  }
  /// Depth write; @param invariant  the rasteriser's depth instead of the register
  ProgramBuilder& store_depth(uint8_t from, bool invariant) {
    uniforms_.push_back(invariant ? 0xffffff84 : 0xffffff8c);
    return move_to(qpu::kWaddrTlbu, from);
  }
  ProgramBuilder& loop_forever() {
    qpu::Instruction i;
    i.is_branch = true;
    i.branch.offset = static_cast<uint32_t>(-4 * 8);
    return emit(i).nop().nop().nop();
  }

  /// Ends the program and puts it into memory.
  cle::ShaderCode build(TestJob& test) {
    nop(qpu::kThrsw).nop().nop();
    return {.code = test.put(words_),
            .uniforms = uniforms_.empty() ? 0 : test.put(uniforms_),
            .four_threads = true,
            .final_section = true};
  }

  /// A vertex program that passes `rows` input words on.
  static cle::ShaderCode copy_rows(TestJob& test, uint8_t rows) {
    ProgramBuilder b;
    for (uint8_t r = 0; r < rows; ++r) b.add(qpu::Op::kLdvpmvIn, 20 + r, immediate(r));
    for (uint8_t r = 0; r < rows; ++r)
      b.add(qpu::Op::kStvpmv, -1, immediate(r), rf(static_cast<uint8_t>(20 + r)));
    return b.build(test);
  }

 private:
  static void set_destination(qpu::AluHalf& half, int to) {
    if (to < 0) return;
    half.magic = false;
    half.waddr = static_cast<uint8_t>(to);
  }
  ProgramBuilder& move_to(uint8_t magic, uint8_t from) {
    qpu::Instruction i;
    i.add.op = qpu::Op::kOr;
    i.add.waddr = magic;
    i.add.a = i.add.b = rf(from);
    return emit(i);
  }

  std::vector<uint64_t> words_;
  std::vector<uint32_t> uniforms_;
};

}  // namespace v3d::pse
