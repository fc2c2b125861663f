#include "gpu/qpu/graph/alu_front_end.h"

#include <utility>

#include "gpu/qpu/flow/access.h"
#include "gpu/qpu/graph/alu_nodes.h"
#include "gpu/qpu/run/alu_lanes.h"

namespace v3d::qpu::graph {

Value AluFrontEnd::operand(const Operand& o) {
  Value v;
  if (o.kind == Operand::Kind::kImmediate) {
    v = bits(small_immediate(o.index));
  } else if (o.kind == Operand::Kind::kNone) {
    refuse("an operand that there is not");
    return bits(0);
  } else {
    Value& held = reg(o.reg());
    if (held.id == kNoNode) held = unwritten(o.reg(), true);
    v = turned(o, held);
  }
  return alu_operand(o.unpack, v);
}

/// Of flags, of units that do all at once, and nothing.
Value AluFrontEnd::state_of(QpuOp op) {
  switch (op) {
    case QpuOp::kVfla:
      return flag_a_ & 0x10001u;
    case QpuOp::kVflna:
      return ~flag_a_ & 0x10001u;
    case QpuOp::kVflb:
      return flag_b_ & 0x10001u;
    case QpuOp::kVflnb:
      return ~flag_b_ & 0x10001u;
    case QpuOp::kTmuwt:  // accesses are done at once
    case QpuOp::kVpmwt:  // and what is written to rows is there
    case QpuOp::kNop:
      return bits(0);
    default:
      return {};
  }
}

Value AluFrontEnd::function(QpuOp op, Value a, Value b) {
  if (const Value result = alu_result(op, a, b); result.id != kNoNode) return result;
  if (op == QpuOp::kMultop) return rtop_ = cross_products(a, b);
  if (op == QpuOp::kUmul24) return product_of_24_bits(a, b, std::exchange(rtop_, bits(0)));
  if (op == QpuOp::kFlapush) return a << 2u | (flag_a_ & 3u);
  if (op == QpuOp::kFlbpush) return a << 2u | (flag_b_ & 3u);
  if (op == QpuOp::kFlpop) return a >> 2u;
  const Value special = special_function(op, a);
  if (special.id == kNoNode) return state_of(op);
  ++specials_;
  return special;
}

Value AluFrontEnd::lanes_where(Cond cond) {
  if (cond == Cond::kNone) return bits(~0u);
  const Value flag = info(cond).of_b ? flag_b_ : flag_a_;
  return info(cond).inverted ? ~flag : flag;
}

AluFrontEnd::Result AluFrontEnd::compute(const AluHalf& half) {
  Result r;
  if (flow::is_idle(generation_, half)) return r;
  r.runs = true;
  r.a = r.b = bits(0);
  if (info(half.op).operands > 0) r.a = operand(half.a);
  if (info(half.op).operands > 1) r.b = operand(half.b);
  r.exec = lanes_where(half.cond);
  r.value = operation(half, r);
  if (r.value.id == kNoNode) refuse(info(half.op).mnemonic);
  return r;
}

void AluFrontEnd::commit(const AluHalf& half, const Result& r) {
  if (r.runs && half.op == QpuOp::kSetmsf) return;  // behind the flags
  if (r.runs && info(half.op).has_destination) write(half.magic, half.waddr, half.pack, r.value, r.exec);
}

void AluFrontEnd::write(bool magic, uint8_t waddr, Pack pack, Value v, Value exec) {
  if (!magic) return write_register(Register{waddr}, pack, v, exec);
  const WaddrInfo& port = waddr_info(generation_, waddr);
  if (port.effect == Effect::kNothing) return;
  if (port.effect == Effect::kRegister) return write_register(port.reg, pack, v, exec);
  write_port(port, waddr, pack, v, exec);
}

void AluFrontEnd::write_register(Register r, Pack pack, Value v, Value exec) {
  Value& held = reg(r);
  const bool is_whole = pack == Pack::kNone && graph_.is_constant(exec.id, ~0u);
  if (held.id == kNoNode && !is_whole) held = unwritten(r, false);
  if (pack != Pack::kNone) v = packed(pack, v, held);
  held = is_whole ? v : choose(exec, v, held);
}

void AluFrontEnd::start_sfu(QpuOp op, Value v) {
  const Value result = special(op, v);
  if (result.id == kNoNode) return refuse(info(op).mnemonic);
  sfu_results_[sfu_place_] = result;
}

void AluFrontEnd::land_sfu_result(bool lands) {
  if (lands) {
    reg(kSfuResult) = sfu_results_[0];
    sfu_results_ = {sfu_results_[1], Value{}};
  }
  sfu_place_ = sfu_results_[0].id == kNoNode ? 0 : 1;
}

void AluFrontEnd::set_flags(const AluHalf& half, const Result& r, const std::array<Value, 2>& before) {
  using Combination = FlagWriteInfo::Combination;
  const FlagWriteInfo& write = info(half.flags);
  if (write.combination == Combination::kNone) return;
  const Value x = alu_flag(half.op, write.flag, r.a, r.b, r.value), old = before[0];
  flag_b_ = write.combination == Combination::kPush ? old : before[1];
  switch (write.combination) {
    case Combination::kAnd:
      flag_a_ = old & x;
      return;
    case Combination::kAndNot:
      flag_a_ = old & ~x;
      return;
    case Combination::kNor:
      flag_a_ = ~(old | x);
      return;
    case Combination::kNorNot:
      flag_a_ = ~(old | ~x);
      return;
    default:
      flag_a_ = x;
      return;
  }
}

}  // namespace v3d::qpu::graph
