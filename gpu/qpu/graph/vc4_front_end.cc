#include "gpu/qpu/graph/vc4_front_end.h"

#include <array>
#include <cstddef>
#include <utility>

#include "gpu/qpu/graph/value.h"
#include "gpu/qpu/run/vc4_lanes.h"
#include "gpu/qpu/run/vc4_step.h"
#include "gpu/qpu/run/vc4_thread.h"

namespace v3d::qpu::graph {
namespace {

using vc4::Files;
using vc4::Half;
using vc4::ReadPort;
using vc4::Signal;
using vc4::Source;
using vc4::Step;
using vc4::Thread;
using vc4::WritePort;
using Target = vc4::StepTarget::Target;

using ResultFn = Value (*)(const Value& a, const Value& b);
using CarryFn = Value (*)(const Value& a, const Value& b, const Value& result);
constexpr ResultFn kResults[] = {
#define V3D_VC4_OP(op, text, add, mul, operands, floats) vc4::result_of<vc4::Op::k##op, Value>,
#include "gpu/qpu/isa/vc4.def"
};
constexpr CarryFn kCarries[] = {
#define V3D_VC4_OP(op, text, add, mul, operands, floats) vc4::carry<vc4::Op::k##op, Value>,
#include "gpu/qpu/isa/vc4.def"
};

/// Executes steps on nodes in place of lanes.
class FrontEnd {
 public:
  Graph make(const vc4::Chunk& chunk, uint32_t first) {
    const vc4::StepRun& run = chunk.steps[first].run;
    for (uint32_t n = 0; n < run.steps; ++n) execute(chunk.steps[first + n]);
    if (varyings_ != 0) node(Op::kEndVaryings, varyings_);
    if (!run.ends) store_all();
    return without_dead(graph_);
  }

 private:
  static constexpr int kRegisters = Thread::kPortB + 1;
  static constexpr uint32_t offset_of_flag(int flag) {
    return static_cast<uint32_t>(offsetof(Thread, flags) + sizeof(LaneMask) * static_cast<size_t>(flag));
  }

  // ---- Nodes

  Value value(Id id) { return {&graph_, id}; }
  Value bits(uint32_t word) { return constant(graph_, word); }
  Value node(Op op, uint32_t immediate = 0) {
    return value(graph_.make({.op = op, .step = step_, .immediate = immediate}));
  }

  Value& reg(size_t n) {
    if (registers_[n].id == kNoNode)
      registers_[n] = node(Op::kLoad, static_cast<uint32_t>(n * sizeof(Lanes)));
    return registers_[n];
  }
  Value& accumulator(int n) { return reg(Thread::kAccumulators + static_cast<size_t>(n)); }
  Value& flag(int n) {
    if (flags_[static_cast<size_t>(n)].id == kNoNode)
      flags_[static_cast<size_t>(n)] = node(Op::kLoadMask, offset_of_flag(n));
    return flags_[static_cast<size_t>(n)];
  }
  Value lanes_where(const vc4::Condition& c) {
    const Value set = c.flag == Thread::kNone ? bits(0) : flag(c.flag);
    return c.invert ? ~set : set;
  }

  // ---- Operands

  Value fetched(ReadPort port, Files file) {
    switch (port) {
      case ReadPort::kUniform:
        return node(Op::kUniform);
      case ReadPort::kVarying:
        return node(Op::kVarying, 2 * varyings_);
      case ReadPort::kPixelX:
        return node(Op::kLoad, offsetof(Thread, pixel_x));
      case ReadPort::kPixelY:
        return node(Op::kLoad, offsetof(Thread, pixel_y));
      case ReadPort::kMsFlags:
        return node(Op::kFetch, offsetof(Thread, ms_flags));
      case ReadPort::kRevFlag:
        return node(Op::kLoadMask, offsetof(Thread, back_facing)) & 1u;
      case ReadPort::kNop:
      case ReadPort::kVpmLoadBusy:
      case ReadPort::kVpmStoreBusy:
      case ReadPort::kVpmLoadWait:
      case ReadPort::kVpmStoreWait:
        return bits(0);
      case ReadPort::kVpm:
        break;
      default:
        if (file == vc4::kFileA) return node(Op::kLaneIndex);
        break;
    }
    return node(Op::kReadPort, static_cast<uint32_t>(port) | static_cast<uint32_t>(file) << 8);
  }

  void fetch(const Step& step) {
    Value &a = registers_[Thread::kPortA], &b = registers_[Thread::kPortB];
    if (step.has_immediate) {
      const auto mode = static_cast<vc4::ImmediateMode>(step.instruction.unpack);
      const uint32_t word = step.instruction.immediate;
      b = bits(word);
      if (mode == vc4::kImmediate32) return;
      const Value index = node(Op::kLaneIndex), low = b >> index & 1u, high = b >> (index + 16u) & 1u;
      b = mode == vc4::kImmediateSigned ? low - high * 2u : low + high * 2u;
      return;
    }
    const ReadPort of_a = step.read_a, of_b = step.read_b;
    if (of_a != ReadPort::kNone) a = fetched(of_a, vc4::kFileA);
    if (of_b == ReadPort::kNone) return;
    const bool once =
        of_a == of_b && (of_a == ReadPort::kUniform || of_a == ReadPort::kVpm || of_a == ReadPort::kVarying);
    b = once ? a : fetched(of_b, vc4::kFileB);
  }

  Value operand(const Source& s) {
    if (s.immediate) return bits(vc4::kImmediates[s.offset / sizeof(Lanes)][0]);
    return vc4::unpacked_operand(s.unpack, s.to_float, reg(s.offset / sizeof(Lanes)));
  }

  // ---- Results

  void commit(const Half& half, Value result, Value exec) {
    if (half.to.target == Target::kPort) {
      if (is_sfu(half.to.port)) {
        const Value x = vc4::sfu_argument(half.to.port, result);
        accumulator(4) = vc4::sfu_result(half.to.port, x, exact_function(half.to.port, x));
        return;
      }
      graph_.make({.op = Op::kWritePort,
                   .step = step_,
                   .operands = {result.id, exec.id, kNoNode},
                   .immediate = static_cast<uint32_t>(half.to.port)});
    } else if (half.to.target == Target::kRegister) {
      Value& to = reg(half.to.offset / sizeof(Lanes));
      if (half.pack == Half::Pack::kToUnorm8) result = vc4::with_unorm8(half.pack_mode, result, to);
      to = choose(exec, result, to);
    }
  }

  static bool is_sfu(WritePort port) {
    return port == WritePort::kSfuRecip || port == WritePort::kSfuRecipsqrt || port == WritePort::kSfuExp ||
           port == WritePort::kSfuLog;
  }

  /// As gpu/qpu/run/sfu.h. @param x  of roots and logarithms not negative
  Value exact_function(WritePort port, Value x) {
    constexpr uint32_t kTwoHundred = 0x43480000, kLeast = 0x00800000;
    const Value zero = bits(0), infinity = bits(vc4::kInfinity);
    switch (port) {
      case WritePort::kSfuRecip:
        return graph::make(Op::kReciprocal, x);
      case WritePort::kSfuRecipsqrt: {
        const Value number = choose(equal_words(x, infinity), zero, graph::make(Op::kReciprocalRoot, x));
        return choose(equal_words(x, zero), infinity, number);
      }
      case WritePort::kSfuExp: {
        const Value low = bits(kTwoHundred | vc4::kSign), not_large = least(x, bits(kTwoHundred));
        const Value power = graph::make(Op::kExp2, choose(above_unsigned(not_large, low), low, not_large));
        return choose(above(bits(kLeast), power), zero, power);
      }
      default: {
        const Value number = choose(equal_words(x, infinity), infinity, graph::make(Op::kLog2, x));
        return choose(equal_words(x, zero), bits(vc4::kInfinity | vc4::kSign), number);
      }
    }
  }

  struct Result {
    Value a, b, result, exec;
  };
  Result compute(const Step& step, const Half& half) {
    Result r = {operand(half.a), operand(half.b), {}, lanes_where(half.condition)};
    r.result = step.has_immediate ? r.a : kResults[static_cast<size_t>(half.op)](r.a, r.b);
    return r;
  }

  void execute(const Step& step) {
    step_ = step.index;
    fetch(step);
    Result add, mul;
    if (step.add.alu) add = compute(step, step.add);
    if (step.mul.alu) mul = compute(step, step.mul);
    if (step.add.alu) commit(step.add, add.result, add.exec);
    if (step.mul.alu) commit(step.mul, mul.result, mul.exec);
    if (step.add_sets_flags) set_flags(step.add, add);
    if (step.mul_sets_flags) set_flags(step.mul, mul);
    if (step.signal == Signal::kLoadTmu0 || step.signal == Signal::kLoadTmu1)
      accumulator(4) = node(Op::kLoadTmu, step.signal == Signal::kLoadTmu1);
    if (step.signal == Signal::kColorLoad) accumulator(4) = node(Op::kLoadColor);
    if (step.reads_varying) accumulator(5) = node(Op::kVarying, 2 * varyings_++ + 1);
  }

  void set_flags(const Half& half, const Result& r) {
    const Value zero = bits(0);
    flags_[Thread::kZ] = equal_words(r.result, zero);
    flags_[Thread::kN] = above(zero, r.result);
    flags_[Thread::kC] = half.carry ? kCarries[static_cast<size_t>(half.op)](r.a, r.b, r.result) : zero;
  }

  void store(Op op, uint32_t offset, Value v) {
    graph_.make({.op = op, .operands = {v.id, kNoNode, kNoNode}, .immediate = offset});
  }
  void store_all() {
    for (size_t n = 0; n < Thread::kPortA; ++n) {
      const auto offset = static_cast<uint32_t>(n * sizeof(Lanes));
      if (registers_[n].id == kNoNode || is_load(registers_[n], Op::kLoad, offset)) continue;
      store(Op::kStore, offset, registers_[n]);
    }
    for (int n = Thread::kZ; n <= Thread::kC; ++n) {
      const Value v = flags_[static_cast<size_t>(n)];
      if (v.id == kNoNode || is_load(v, Op::kLoadMask, offset_of_flag(n))) continue;
      store(Op::kStoreMask, offset_of_flag(n), v);
    }
  }
  bool is_load(Value v, Op op, uint32_t offset) const {
    return graph_[v.id].op == op && graph_[v.id].immediate == offset;
  }

  Graph graph_;
  uint8_t step_ = 0;
  std::array<Value, kRegisters> registers_;
  std::array<Value, 3> flags_;
  uint32_t varyings_ = 0;  // that were read so far
};

}  // namespace

Graph graph_of(const vc4::Chunk& chunk, uint32_t first) { return FrontEnd().make(chunk, first); }

}  // namespace v3d::qpu::graph
