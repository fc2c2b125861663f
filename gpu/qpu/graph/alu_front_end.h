/// An AluFrontEnd executes instructions of V3D 4.2 and 7.1 on nodes in place of lanes: operands, operations,
/// flags and registers. What a register holds at the begin, and what is reached by ports, its kinds say:
/// whole programs (front_end.h) and parts of threads (thread_front_end.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "gpu/chip/generation.h"
#include "gpu/qpu/graph/value.h"
#include "gpu/qpu/isa/instruction.h"
#include "gpu/qpu/isa/isa.h"

namespace v3d::qpu::graph {

using QpuOp = qpu::Op;

class AluFrontEnd {
 public:
  virtual ~AluFrontEnd() = default;

 protected:
  struct Result {
    Value a, b, value, exec;
    bool runs = false;
  };

  explicit AluFrontEnd(chip::Generation generation)
      : generation_(generation), isa_(isa(generation)), flag_a_(bits(0)), flag_b_(bits(0)), rtop_(bits(0)) {}

  /// The first reason why there is no graph counts.
  virtual void refuse(const char* why) = 0;
  /// What a register without a value holds that is read, or written in part.
  virtual Value unwritten(Register r, bool is_read) = 0;
  /// An operation, with what it does. @param r  operands, and lanes that may get fewer. @return  no node: it
  /// has no code
  virtual Value operation(const AluHalf& half, Result& r) = 0;
  /// Of an operand, before it is unpacked.
  virtual Value turned(const Operand& /*o*/, Value v) { return v; }
  /// A write to an address that is no register file's, and is neither nothing nor a register.
  virtual void write_port(const WaddrInfo& port, uint8_t waddr, Pack pack, Value v, Value exec) = 0;

  // ---- Nodes

  Value value(Id id) { return {&graph_, id}; }
  Value bits(uint32_t word) { return constant(graph_, word); }
  Value source(Op op, uint32_t immediate = 0) {
    return value(graph_.make({.op = op, .immediate = immediate}));
  }
  void effect(Op op, Value v, uint32_t immediate = 0) {
    graph_.make({.op = op, .operands = {v.id, kNoNode, kNoNode}, .immediate = immediate});
  }

  // ---- Instructions, in the order of the interpreter (qpu.md 3.3)

  Value& reg(Register r) { return registers_[r]; }
  Value operand(const Operand& o);
  Value lanes_where(Cond cond);
  Result compute(const AluHalf& half);
  /// @return  no node: none of those that need nothing but operands, flags and rtop
  Value function(QpuOp op, Value a, Value b);
  Value state_of(QpuOp op);
  void commit(const AluHalf& half, const Result& r);
  void write(bool magic, uint8_t waddr, Pack pack, Value v, Value exec);
  void write_register(Register r, Pack pack, Value v, Value exec);
  void start_sfu(QpuOp op, Value v);
  /// A special function that is started by a write.
  virtual Value special(QpuOp op, Value v) { return function(op, v, v); }
  /// Of 4.2, before an instruction. @param lands  what was started two instructions ago
  void land_sfu_result(bool lands);
  /// @param before  A and B before the instruction
  void set_flags(const AluHalf& half, const Result& r, const std::array<Value, 2>& before);

  const chip::Generation generation_;
  const IsaProperties& isa_;
  Graph graph_;
  std::array<Value, kNumRegisters> registers_;
  Value flag_a_, flag_b_;
  Value rtop_;
  std::array<Value, 2> sfu_results_;  // under way
  size_t sfu_place_ = 0;              // of what the instruction starts, be it twice
  uint32_t specials_ = 0;             // special functions so far
};

}  // namespace v3d::qpu::graph
