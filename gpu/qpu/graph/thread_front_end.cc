#include "gpu/qpu/graph/thread_front_end.h"

#include <array>
#include <bit>
#include <cstddef>
#include <utility>

#include "gpu/qpu/graph/alu_front_end.h"
#include "gpu/qpu/run/alu.h"
#include "gpu/qpu/run/alu_lanes.h"
#include "gpu/qpu/run/thread.h"

namespace v3d::qpu::graph {
namespace {

constexpr auto offset_in_thread(size_t offset) { return static_cast<uint32_t>(offset); }
constexpr uint32_t kMsfAt = offset_in_thread(offsetof(Thread, msf)),
                   kRtopAt = offset_in_thread(offsetof(Thread, rtop)),
                   kFlagAAt = offset_in_thread(offsetof(Thread, flag_a)),
                   kFlagBAt = offset_in_thread(offsetof(Thread, flag_b)),
                   kSfuAt = offset_in_thread(offsetof(Thread, pending.sfu_result));
constexpr uint32_t offset_of_register(Register r) {
  return offset_in_thread(offsetof(Thread, rf) + r * sizeof(Lanes));
}

class ThreadFrontEnd final : public AluFrontEnd {
 public:
  ThreadFrontEnd(const flow::Flow& flow, const ThreadPart& part)
      : AluFrontEnd(flow.setting.generation), flow_(flow), part_(part) {
    flag_a_ = source(Op::kLoadMask, kFlagAAt);
    flag_b_ = source(Op::kLoadMask, kFlagBAt);
    rtop_ = source(Op::kLoad, kRtopAt);
    const int under_way = std::popcount(flow.nodes[part.first].in_flight.sfu);
    for (uint32_t n = 0; n < static_cast<uint32_t>(under_way); ++n)
      sfu_results_[n] = source(Op::kLoad, kSfuAt + n * uint32_t{sizeof(Lanes)});
  }

  std::optional<ThreadGraph> make(uint32_t* fits) {
    for (uint32_t n = 0; n < part_.count; ++n) {
      step_ = static_cast<uint8_t>(n);
      execute(flow_.nodes[part_.first + n]);
      if (!has_failed_ && graph_.nodes().size() <= ThreadPart::kMostGraphNodes) continue;
      *fits = n;
      return {};
    }
    leave();
    return ThreadGraph{without_dead(graph_), uniforms_, varyings_, moves_by_};
  }

 private:
  void refuse(const char* /*why*/) override { has_failed_ = true; }

  // ---- Nodes that stay in their order

  Value node(Op op, uint32_t immediate, Value a = {}, Value b = {}, Value c = {}) {
    return value(
        graph_.make({.op = op, .step = step_, .operands = {a.id, b.id, c.id}, .immediate = immediate}));
  }
  Value read(ThreadRead what) { return node(Op::kReadPort, static_cast<uint32_t>(what) | uniforms_ << 8); }
  Value call(QpuOp op, Value a, Value b, Value exec) {
    return node(Op::kCall, static_cast<uint32_t>(op), a, b, exec);
  }
  Value uniform() { return node(Op::kUniform, uniforms_++); }
  /// Others change it: tests of the tile buffer do.
  Value samples() { return node(Op::kFetch, kMsfAt); }

  Value lane_0(Value v) { return graph_.is_constant(v.id) ? v : picked_lanes(v, bits(0)); }

  // ---- Instructions

  void land(const flow::InFlight& in_flight) {
    if (in_flight.vary & 1) {
      // Of the two that may be under way the older one; those before the part have numbers below 0.
      const uint32_t number = varyings_ - 1 - (in_flight.vary >> 1 & 1);
      reg(isa_.implicit) = source(Op::kVarying, 2 * number + 1);
    }
    land_sfu_result((in_flight.sfu & 1) != 0);
  }

  void execute(const flow::Node& of) {
    const Instruction& i = *flow_.instruction(of);
    land(of.in_flight);
    if (i.is_branch) return decide(i.branch);
    const Result add = compute(i.add);
    rotates_ = i.signals & kRotate ? &i : nullptr;
    const Result mul = compute(i.mul);
    rotates_ = nullptr;
    Value loaded = bits(0), implicitly = bits(0);
    if (i.signals & kLdtmu) loaded = read(ThreadRead::kTmu);
    if (i.signals & kLdvary) loaded = source(Op::kVarying, 2 * varyings_++);
    if (i.signals & kLdtlb) loaded = read(ThreadRead::kTlb);
    if (i.signals & kLdtlbu) loaded = read_with_uniform(ThreadRead::kTlbConfigured);
    if (i.signals & kLdunifrf) loaded = uniform();
    if (i.signals & kLdunifarf) loaded = read(ThreadRead::kUnifa);
    if (i.signals & kLdunif) implicitly = uniform();
    if (i.signals & kLdunifa) implicitly = read(ThreadRead::kUnifa);
    if (i.signals & kWrtmuc) read_with_uniform(ThreadRead::kTextureConfig);
    commit(i.add, add);
    commit(i.mul, mul);
    if (i.signals & (kLdunif | kLdunifa)) reg(isa_.implicit) = implicitly;
    if (i.signals & kSignalsWithAddress)
      write(i.signal_magic, i.signal_waddr, Pack::kNone, loaded, bits(~0u));
    const std::array<Value, 2> flags = {flag_a_, flag_b_};
    if (add.runs) set_flags(i.add, add, flags);
    if (mul.runs) set_flags(i.mul, mul, flags);
    if (add.runs && i.add.op == QpuOp::kSetmsf) set_samples(i.add, add);
  }

  Value read_with_uniform(ThreadRead what) {
    const Value v = read(what);
    ++uniforms_;
    return v;
  }

  void set_samples(const AluHalf& half, const Result& r) {
    const Value v = half.pack == Pack::kNone ? r.value : packed(half.pack, r.value, samples());
    node(Op::kPut, kMsfAt, choose(r.exec, v, samples()));
  }

  Value unwritten(Register r, bool /*is_read*/) override { return source(Op::kLoad, offset_of_register(r)); }

  /// Of 4.2: accumulators rotate through all lanes, registers inside their quads.
  Value turned(const Operand& o, Value v) override {
    if (rotates_ == nullptr) return v;
    const bool by_register = rotates_->rotate == 0;
    const Register r5 = Register{kFirstAccumulator + 5};
    Value count;
    if (!by_register) {
      count = bits(small_immediate(rotates_->rotate));
    } else {
      Value& held = reg(r5);
      if (held.id == kNoNode) held = unwritten(r5, true);
      count = held;
    }
    const Value lanes = source(Op::kLaneIndex), from = lanes - lane_0(count);
    const bool through_all = o.reg() >= kFirstAccumulator;
    return picked_lanes(v, through_all ? from : (lanes & 12u) | (from & 3u));
  }

  Value operation(const AluHalf& half, Result& r) override {
    if (half.op == QpuOp::kSetmsf) return r.a;
    if (const Value v = function(half.op, r.a, r.b); v.id != kNoNode) return v;
    switch (half.op) {
      case QpuOp::kMsf:
        return samples();
      case QpuOp::kEidx:
        return source(Op::kLaneIndex);
      case QpuOp::kFlafirst:
        return first_of(flag_a_);
      case QpuOp::kFlnafirst:
        return first_of(~flag_a_);
      case QpuOp::kRot:
        return picked_lanes(r.a, source(Op::kLaneIndex) + lane_0(r.b));
      case QpuOp::kRotq: {
        const Value lanes = source(Op::kLaneIndex), count = of_quad_lanes<0, 0, 0, 0>(r.b);
        return picked_lanes(r.a, (lanes & 12u) | ((lanes + count) & 3u));
      }
      case QpuOp::kShuffle:
        return picked_lanes(r.a, r.b);
      case QpuOp::kXcd:
        return source(Op::kLoad, offset_in_thread(offsetof(Thread, pixel_x)));
      case QpuOp::kYcd:
        return source(Op::kLoad, offset_in_thread(offsetof(Thread, pixel_y)));
      default:
        break;
    }
    if (info(half.op).traits & kActiveLanes) {
      r.exec = r.exec & read(ThreadRead::kActiveLanes);
      if (const Value v = of_active_lanes(half.op, r.a, r.exec); v.id != kNoNode) return v;
    }
    return call(half.op, r.a, r.b, r.exec);
  }

  /// The first lane of a mask, or one that there is not.
  Value first_lane(Value mask) { return least_of_lanes(choose(mask, source(Op::kLaneIndex), bits(~0u))); }
  Value first_of(Value mask) { return mask & equal_words(source(Op::kLaneIndex), first_lane(mask)) & 1u; }
  Value of_active_lanes(QpuOp op, Value a, Value lanes) {
    if (op == QpuOp::kBallot) return {};
    const Value first = first_lane(lanes), some = above_unsigned(bits(kLanes), first),
                of_first = picked_lanes(a, first) & some;
    if (op == QpuOp::kBcastf) return of_first;
    const Value equal = op == QpuOp::kAlleq ? equal_words(a, of_first) : equal_floats(a, of_first);
    return least_of_lanes(equal | ~lanes) & 1u;
  }

  Value special(QpuOp op, Value v) override {
    const Value known = function(op, v, v);
    return known.id != kNoNode ? known : call(op, v, v, bits(~0u));
  }

  void write_port(const WaddrInfo& port, uint8_t waddr, Pack pack, Value v, Value exec) override {
    const bool to_quads = port.effect == Effect::kQuads, to_all = port.effect == Effect::kLane0;
    if (to_quads || to_all) {
      Value& held = reg(port.reg);
      if (held.id == kNoNode) held = unwritten(port.reg, false);
      if (pack != Pack::kNone) v = packed(pack, v, held);
      v = to_quads ? of_quad_lanes<0, 0, 0, 0>(v) : lane_0(v);
      return write_register(port.reg, Pack::kNone, v, exec);
    }
    if (pack != Pack::kNone) v = packed(pack, v, bits(0));
    if (starts_sfu(port.effect)) return start_sfu(sfu_operation(port.effect), v);
    const ThreadWrite to = {static_cast<uint8_t>(port.effect), waddr, port.takes_uniform, uniforms_};
    node(Op::kWritePort, encode(to), v, exec);
    if (port.takes_uniform) ++uniforms_;
  }

  // ---- Ends

  /// branch_taken() of the interpreter. Where to is known, and not told here.
  void decide(const Branch& b) {
    if (b.uniforms) moves_by_ = uniforms_++;
    if (b.cond == BranchCond::kA0 || b.cond == BranchCond::kNa0) {
      condition_ = flag_a_ & equal_words(source(Op::kLaneIndex), bits(0));
      some_take_ = b.cond == BranchCond::kA0;
      return;
    }
    Value lanes = bits(~0u);
    if (b.msfign != Msfign::kNone) lanes = ~equal_words(samples(), bits(0));
    if (b.msfign == Msfign::kQ)
      lanes = lanes | of_quad_lanes<1, 0, 3, 2>(lanes) | of_quad_lanes<2, 3, 0, 1>(lanes) |
              of_quad_lanes<3, 2, 1, 0>(lanes);
    switch (b.cond) {
      case BranchCond::kAlla:
      case BranchCond::kAnyna:
        condition_ = lanes & ~flag_a_;
        some_take_ = b.cond == BranchCond::kAnyna;
        return;
      case BranchCond::kAllna:
      case BranchCond::kAnya:
        condition_ = lanes & flag_a_;
        some_take_ = b.cond == BranchCond::kAnya;
        return;
      default:
        condition_ = bits(~0u);
        some_take_ = true;
    }
  }

  void leave() {
    step_ = static_cast<uint8_t>(part_.count);
    const bool branches = condition_.id != kNoNode;
    const uint32_t some = branches && some_take_ ? kBranches : kLeadsOn,
                   none = branches && !some_take_ ? kBranches : kLeadsOn;
    node(Op::kLead, some | none << 16, branches ? condition_ : bits(~0u));
    for (uint32_t r = 0; r < kNumRegisters; ++r) store(registers_[r], offset_of_register(Register(r)));
    store(rtop_, kRtopAt);
    for (uint32_t n = 0; n < sfu_results_.size(); ++n)
      store(sfu_results_[n], kSfuAt + n * uint32_t{sizeof(Lanes)});
    store_mask(flag_a_, kFlagAAt);
    store_mask(flag_b_, kFlagBAt);
  }
  bool stands_there(Value v, Op op, uint32_t offset) const {
    return v.id == kNoNode || (graph_[v.id].op == op && graph_[v.id].immediate == offset);
  }
  void store(Value v, uint32_t offset) {
    if (!stands_there(v, Op::kLoad, offset)) node(Op::kStore, offset, v);
  }
  void store_mask(Value v, uint32_t offset) {
    if (!stands_there(v, Op::kLoadMask, offset)) node(Op::kStoreMask, offset, v);
  }

  const flow::Flow& flow_;
  const ThreadPart& part_;
  const Instruction* rotates_ = nullptr;  // if operands of mul do
  uint8_t step_ = 0;
  uint32_t uniforms_ = 0, varyings_ = 0;  // that were taken so far
  std::optional<uint32_t> moves_by_;
  Value condition_;  // of a branch
  bool some_take_ = false, has_failed_ = false;
};

}  // namespace

std::optional<ThreadGraph> thread_graph(const flow::Flow& flow, const ThreadPart& part, uint32_t* fits) {
  return ThreadFrontEnd(flow, part).make(fits);
}

}  // namespace v3d::qpu::graph
