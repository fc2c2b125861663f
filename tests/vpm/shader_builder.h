/// A ShaderBuilder builds small vertex, coordinate and geometry programs.
#pragma once

#include "tests/vpm/program_writer.h"

namespace v3d {

class ShaderBuilder : public ProgramWriter<ShaderBuilder> {
 public:
  using ProgramWriter::ProgramWriter;

  /// to := input row (row < 16)
  ShaderBuilder& load(uint8_t to, uint8_t row) { return add(qpu::Op::kLdvpmvIn, to, immediate(row)); }
  /// Geometry: to := row of vertex (row < 16), the vertex number in a register
  ShaderBuilder& load_vertex(uint8_t to, uint8_t row, uint8_t vertex) {
    return add(qpu::Op::kLdvpmgIn, to, immediate(row), rf(vertex));
  }
  /// Output row := from. The row number in a register, any number.
  ShaderBuilder& store_at(uint8_t row, uint8_t from) { return add(qpu::Op::kStvpmv, -1, rf(row), rf(from)); }
  ShaderBuilder& store(uint8_t row, uint8_t from) {
    return add(qpu::Op::kStvpmv, -1, immediate(row), rf(from));
  }
  ShaderBuilder& integer_add(uint8_t to, uint8_t a, uint8_t b) {
    return add(qpu::Op::kAdd, to, rf(a), rf(b));
  }
  /// to := number of the invocation
  ShaderBuilder& invocation(uint8_t to) { return add(qpu::Op::kIid, to); }
  /// Rows 0..n-1 of the input to rows 0..n-1 of the output.
  ShaderBuilder& copy_rows(uint8_t n) {
    for (uint8_t r = 0; r < n; ++r) load(static_cast<uint8_t>(20 + r), r);
    for (uint8_t r = 0; r < n; ++r) store(r, static_cast<uint8_t>(20 + r));
    return *this;
  }
};

}  // namespace v3d
