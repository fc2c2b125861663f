/// The builders of hand-made QPU programs share these functions.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "gpu/chip/generation.h"
#include "gpu/draw/state.h"
#include "gpu/qpu/isa/instruction.h"
#include "tests/vpm/test_job.h"

namespace v3d {

/// Instructions and uniforms of one program. Builder derives from it, and each step returns the builder.
template <typename Builder>
class ProgramWriter {
 public:
  explicit ProgramWriter(chip::Generation generation = chip::Generation::k71) : generation_(generation) {}

  static qpu::Operand rf(uint8_t index) { return {qpu::Operand::Kind::kRegister, index}; }
  static qpu::Operand immediate(uint8_t value) { return {qpu::Operand::Kind::kImmediate, value}; }

  Builder& emit(const qpu::Instruction& i) {
    const std::optional<uint64_t> word = qpu::encode(generation_, i);
    EXPECT_TRUE(word.has_value()) << qpu::disassemble(generation_, i);
    words_.push_back(word.value_or(0));
    return static_cast<Builder&>(*this);
  }
  Builder& nop(uint16_t signals = 0) {
    qpu::Instruction i;
    i.signals = signals;
    return emit(i);
  }
  /// @param to  destination register, or -1
  Builder& add(qpu::Op op, int to, qpu::Operand a = {}, qpu::Operand b = {},
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
  /// to := uniform
  Builder& uniform(uint8_t to, uint32_t value) {
    qpu::Instruction i;
    i.signals = qpu::kLdunifrf;
    i.signal_waddr = to;
    uniforms_.push_back(value);
    return emit(i);
  }
  Builder& loop_forever() {
    qpu::Instruction i;
    i.is_branch = true;
    i.branch.offset = static_cast<uint32_t>(-4 * 8);
    return emit(i).nop().nop().nop();
  }

  /// Ends the program and puts it into memory.
  draw::ShaderCode build(TestJob* test) {
    nop(qpu::kThrsw).nop().nop();
    return {.code = test->put(words_),
            .uniforms = uniforms_.empty() ? 0 : test->put(uniforms_),
            .four_threads = true,
            .final_section = true};
  }

 protected:
  static void set_destination(qpu::AluHalf& half, int to) {
    if (to < 0) return;
    half.magic = false;
    half.waddr = static_cast<uint8_t>(to);
  }

  const std::vector<uint64_t>& words() const { return words_; }

  std::vector<uint32_t> uniforms_;

 private:
  chip::Generation generation_;
  std::vector<uint64_t> words_;
};

}  // namespace v3d
