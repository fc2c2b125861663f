#include "gpu/qpu/graph/vc4_front_end.h"

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "gpu/qpu/graph/value.h"
#include "gpu/qpu/isa/vc4_access.h"
#include "gpu/qpu/run/vc4_lanes.h"
#include "gpu/qpu/run/vc4_step.h"
#include "gpu/qpu/run/vc4_thread.h"

namespace v3d::qpu::graph {
namespace {

using vc4::Files;
using vc4::Half;
using vc4::is_sfu;
using vc4::is_tmu;
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
  /// @param knows_rows  which rows of the VPM are accessed follows from set-up words, which are constants
  FrontEnd(const vc4::Stretch& stretch, bool knows_rows)
      : stretch_(stretch), live_(vc4::live_behind(stretch)), knows_rows_(knows_rows) {}

  /// Of nothing if rows are not known that were to be.
  Graph make() {
    const size_t steps = stretch_.steps.size();
    for (size_t n = 0; n < steps; ++n) {
      step_ = static_cast<uint8_t>(n);
      execute(*stretch_.steps[n]);
      if (starts_lookup_ && n + 1 < steps) leave(Op::kGuard, n);
      if (has_failed_) return {};
    }
    leave(Op::kFinish, steps - 1);
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
  Value node(Op op, uint32_t immediate = 0, Value a = {}, Value b = {}) {
    return value(
        graph_.make({.op = op, .step = step_, .operands = {a.id, b.id, kNoNode}, .immediate = immediate}));
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
        return node(Op::kUniform, uniforms_++);
      case ReadPort::kVarying:
        return node(Op::kVarying, 2 * varyings_);
      case ReadPort::kPixelX:
        return node(Op::kLoad, offsetof(Thread, pixel_x));
      case ReadPort::kPixelY:
        return node(Op::kLoad, offsetof(Thread, pixel_y));
      case ReadPort::kMsFlags:
        write_depth();
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
        if (knows_rows_) return next_row();
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

  struct Result {
    Value a, b, result, exec;
  };

  void commit(const Half& half, const Result& r) {
    Value result = r.result;
    if (half.to.target == Target::kPort) {
      if (half.pack == Half::Pack::kToUnorm8) result = vc4::with_unorm8(half.pack_mode, result, bits(0));
      if (is_sfu(half.to.port))
        start_function(half.to.port, result);
      else if (is_tmu(half.to.port))
        write_tmu(half.to.port, result);
      else if (is_vpm(half.to.port) && knows_rows_)
        write_vpm(half.to.port, result);
      else
        write_port(half.to.port, result, r.exec);
    } else if (half.to.target == Target::kRegister) {
      Value& to = reg(half.to.offset / sizeof(Lanes));
      if (half.pack == Half::Pack::kToUnorm8) result = vc4::with_unorm8(half.pack_mode, result, to);
      if (half.pack == Half::Pack::kToA) result = packed_to_a(half, r, to);
      to = choose(r.exec, result, to);
    }
  }

  /// Depth is written as late as nobody notices: behind it nothing can be done a second time.
  void write_port(WritePort port, Value value, Value exec) {
    write_depth();
    const Node write = {.op = Op::kWritePort,
                        .step = step_,
                        .operands = {value.id, exec.id, kNoNode},
                        .immediate = static_cast<uint32_t>(port)};
    if (port == WritePort::kTlbZ)
      depth_ = write;
    else
      graph_.make(write);
  }
  void write_depth() {
    if (depth_.op == Op::kWritePort) graph_.make(depth_);
    depth_ = {.op = Op::kConst};
  }

  Value packed_to_a(const Half& half, const Result& r, Value old) {
    const bool is_float = (vc4::info(half.op).floats & vc4::kGivesFloats) != 0;
    return vc4::with_pack_to_a<Value>(
        half.pack_mode, {r.result, carry(half, r), vc4::overflow_of(half.op, r.a, r.b, r.result), is_float},
        old);
  }

  // ---- Rows of the VPM by their numbers

  static bool is_vpm(WritePort port) {
    return port == WritePort::kVpm || port == WritePort::kVpmReadSetup || port == WritePort::kVpmWriteSetup;
  }
  static bool is_whole_row(const vc4::VpmBlock& block) { return block.parts == 1 && block.horizontal; }

  Value next_row() {
    uses_rows_ = true;
    if (reads_.count == 0) return bits(0);
    const vc4::VpmBlock block = reads_.blocks[0];
    has_failed_ |= !is_whole_row(block);
    reads_.read({});
    return node(Op::kLoadRow, block.address);
  }

  void write_vpm(WritePort port, Value value) {
    uses_rows_ = true;
    if (port == WritePort::kVpm) {
      has_failed_ |= !has_write_setup_ || !is_whole_row(write_);
      node(Op::kStoreRow, write_.address, value);
      vc4::write_vector({}, write_, Lanes{});
      return;
    }
    const uint32_t setup = graph_[value.id].immediate;
    const bool is_read = port == WritePort::kVpmReadSetup;
    has_failed_ |= !graph_.is_constant(value.id) || (is_read ? setup >> 31 != 0 : setup >> 30 >= 2);
    if (is_read) return reads_.push(vc4::decode_vpm_block(setup));
    write_ = vc4::decode_vpm_block(setup);
    has_write_setup_ = true;
  }

  // ---- Lookups, which begin and are executed in the stretch, so that their results wait as values

  void write_tmu(WritePort port, Value value) {
    const uint32_t unit = vc4::tmu_of(port), which = vc4::tmu_parameter_of(port);
    Unit& u = units_[unit];
    if (which != 0) {
      node(Op::kParameter, unit | which << 1 | u.parameters++ << 4 | uniforms_++ << 16, value);
      u.written |= 1u << (which - 1);
      return;
    }
    write_depth();
    const uint32_t last = u.written == 0 ? 0 : u.parameters | uniforms_++ << 12;
    u.results.push_back(node(Op::kLookup, unit | u.written << 1 | last << 4, value));
    u.written = u.parameters = 0;
    starts_lookup_ = true;
  }

  Value next_result(uint32_t unit) {
    Unit& u = units_[unit];
    const Value oldest = u.results.front();
    u.results.erase(u.results.begin());
    return oldest;
  }

  // ---- Special functions, whose results come to r4 for the third next instruction

  void start_function(WritePort port, Value value) {
    if (function_in_ != 0) accumulator(4) = function_;
    const Value x = vc4::sfu_argument(port, value);
    function_ = vc4::sfu_result(port, x, exact_function(port, x));
    function_in_ = 3;
  }
  void land_function() {
    if (function_in_ != 0 && --function_in_ == 0) accumulator(4) = function_;
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

  Result compute(const Step& step, const Half& half) {
    Result r = {operand(half.a), operand(half.b), {}, lanes_where(half.condition)};
    r.result = step.has_immediate ? r.a : kResults[static_cast<size_t>(half.op)](r.a, r.b);
    return r;
  }

  void execute(const Step& step) {
    starts_lookup_ = false;
    fetch(step);
    Result add, mul;
    Value loaded;
    if (step.add.alu) add = compute(step, step.add);
    if (step.mul.alu) mul = compute(step, step.mul);
    if (step.signal == Signal::kLoadTmu0 || step.signal == Signal::kLoadTmu1)
      loaded = next_result(step.signal == Signal::kLoadTmu1);
    if (step.signal == Signal::kColorLoad) {
      write_depth();
      loaded = node(Op::kLoadColor);
    }
    if (step.add.alu) commit(step.add, add);
    if (step.mul.alu) commit(step.mul, mul);
    if (step.add_sets_flags) set_flags(step.add, add);
    if (step.mul_sets_flags) set_flags(step.mul, mul);
    if (loaded.id != kNoNode) accumulator(4) = loaded;
    if (step.reads_varying) accumulator(5) = node(Op::kVarying, 2 * varyings_++ + 1);
    land_function();
  }

  Value carry(const Half& half, const Result& r) {
    return half.carry ? kCarries[static_cast<size_t>(half.op)](r.a, r.b, r.result) : bits(0);
  }

  void set_flags(const Half& half, const Result& r) {
    const Value zero = bits(0);
    const auto set = [&](Thread::Flag which, Value lanes) {
      Value& to = flag(which);
      to = choose(r.exec, lanes, to);
    };
    set(Thread::kZ, equal_words(r.result, zero));
    set(Thread::kN, above(zero, r.result));
    set(Thread::kC, carry(half, r));
  }

  // ---- Ends

  /// Behind a step, with what others need that go on there.
  void leave(Op op, size_t behind) {
    has_failed_ |= op == Op::kGuard && uses_rows_;  // others would not know which row is the next
    write_depth();
    step_ = static_cast<uint8_t>(behind + 1);
    node(op, varyings_ | uniforms_ << 16);
    if (op == Op::kFinish && stretch_.ends) return;
    const vc4::Live& live = live_[behind];
    for (size_t n = 0; n < Thread::kPortA; ++n) {
      const auto offset = static_cast<uint32_t>(n * sizeof(Lanes));
      if (!live[n] || registers_[n].id == kNoNode || is_load(registers_[n], Op::kLoad, offset)) continue;
      node(Op::kStore, offset, registers_[n]);
    }
    for (int n = Thread::kZ; n <= Thread::kC; ++n) {
      const Value v = flags_[static_cast<size_t>(n)];
      if (!live[Thread::kPortA + static_cast<size_t>(n)] || v.id == kNoNode ||
          is_load(v, Op::kLoadMask, offset_of_flag(n)))
        continue;
      node(Op::kStoreMask, offset_of_flag(n), v);
    }
    for (uint32_t unit = 0; unit < units_.size(); ++unit)
      for (const Value& v : units_[unit].results) node(Op::kStoreResult, unit, v);
    if (function_in_ != 0) node(Op::kStoreSfu, function_in_, function_);
  }
  bool is_load(Value v, Op op, uint32_t offset) const {
    return graph_[v.id].op == op && graph_[v.id].immediate == offset;
  }

  struct Unit {
    uint32_t written = 0, parameters = 0;  // of the lookup that is being set up
    std::vector<Value> results;            // that were not loaded so far
  };

  const vc4::Stretch& stretch_;
  const std::vector<vc4::Live> live_;
  Graph graph_;
  uint8_t step_ = 0;
  std::array<Value, kRegisters> registers_;
  std::array<Value, 3> flags_;
  uint32_t varyings_ = 0, uniforms_ = 0;  // that were read so far
  std::array<Unit, 2> units_;
  bool starts_lookup_ = false;  // the last step did
  const bool knows_rows_;
  bool has_failed_ = false, uses_rows_ = false, has_write_setup_ = false;
  vc4::VpmQueue reads_;
  vc4::VpmBlock write_;
  Node depth_ = {.op = Op::kConst};  // kWritePort if it waits
  Value function_;
  uint32_t function_in_ = 0;  // instructions until its result is there
};

}  // namespace

Graph graph_of(const vc4::Stretch& stretch) {
  if (stretch.ends)
    if (Graph graph = FrontEnd(stretch, true).make(); !graph.nodes().empty()) return graph;
  return FrontEnd(stretch, false).make();
}

}  // namespace v3d::qpu::graph
