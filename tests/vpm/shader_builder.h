/// Builds small vertex, coordinate and geometry programs.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "gpu/draw/state.h"
#include "gpu/qpu/isa/instruction.h"
#include "tests/vpm/test_job.h"

namespace v3d {

class ShaderBuilder {
 public:
  explicit ShaderBuilder(int version = 71) : version_(version) {}

  /// rf := uniform
  ShaderBuilder& uniform(uint8_t rf, uint32_t value) {
    qpu::Instruction i;
    i.signals = qpu::kLdunifrf;
    i.signal_waddr = rf;
    uniforms_.push_back(value);
    return emit(i);
  }
  /// rf := input row (row < 16)
  ShaderBuilder& load(uint8_t rf, uint8_t row) { return add(qpu::Op::kLdvpmvIn, rf, immediate(row), {}); }
  /// Geometry: rf := row of vertex (row < 16), the vertex number in a register
  ShaderBuilder& load_vertex(uint8_t rf, uint8_t row, uint8_t vertex_rf) {
    return add(qpu::Op::kLdvpmgIn, rf, immediate(row), reg(vertex_rf));
  }
  /// Output row := rf. The row number in a register, any number.
  ShaderBuilder& store_at(uint8_t row_rf, uint8_t rf) {
    return add(qpu::Op::kStvpmv, -1, reg(row_rf), reg(rf));
  }
  ShaderBuilder& store(uint8_t row, uint8_t rf) { return add(qpu::Op::kStvpmv, -1, immediate(row), reg(rf)); }
  ShaderBuilder& integer_add(uint8_t rf, uint8_t a, uint8_t b) {
    return add(qpu::Op::kAdd, rf, reg(a), reg(b));
  }
  /// rf := number of the invocation
  ShaderBuilder& invocation(uint8_t rf) { return add(qpu::Op::kIid, rf, {}, {}); }
  /// Rows 0..n-1 of the input to rows 0..n-1 of the output.
  ShaderBuilder& copy_rows(uint8_t n) {
    for (uint8_t r = 0; r < n; ++r) load(static_cast<uint8_t>(20 + r), r);
    for (uint8_t r = 0; r < n; ++r) store(r, static_cast<uint8_t>(20 + r));
    return *this;
  }
  /// An endless loop.
  ShaderBuilder& loop_forever() {
    qpu::Instruction i;
    i.is_branch = true;
    i.branch.offset = static_cast<uint32_t>(-4 * 8);
    return emit(i).emit({}).emit({}).emit({});
  }

  /// Ends the program and puts it into memory.
  cle::ShaderCode build(TestJob* test) {
    qpu::Instruction end;
    end.signals = qpu::kThrsw;
    emit(end).emit({}).emit({});
    return {.code = test->put(words_),
            .uniforms = uniforms_.empty() ? 0 : test->put(uniforms_),
            .four_threads = true,
            .final_section = true};
  }

 private:
  static qpu::Operand reg(uint8_t rf) { return {qpu::Operand::Kind::kRegister, rf}; }
  static qpu::Operand immediate(uint8_t value) { return {qpu::Operand::Kind::kImmediate, value}; }

  /// @param rf  destination, or -1
  ShaderBuilder& add(qpu::Op op, int rf, qpu::Operand a, qpu::Operand b) {
    qpu::Instruction i;
    i.add.op = op;
    if (rf >= 0) {
      i.add.magic = false;
      i.add.waddr = static_cast<uint8_t>(rf);
    }
    i.add.a = a;
    i.add.b = b;
    return emit(i);
  }
  ShaderBuilder& emit(const qpu::Instruction& i) {
    const std::optional<uint64_t> word = qpu::encode(version_, i);
    EXPECT_TRUE(word.has_value()) << qpu::disassemble(version_, i);
    words_.push_back(word.value_or(0));
    return *this;
  }

  int version_;
  std::vector<uint64_t> words_;
  std::vector<uint32_t> uniforms_;
};

}  // namespace v3d
