/// @file One instruction, in the order of run_alu(): both halves compute, signals fetch, then everything is
/// written. Where no lane can see what other lanes do, lanes 0 to 7 go first and the others after them.

#include <utility>

#include "gpu/qpu/flow/access.h"
#include "gpu/qpu/jit/avx2/emitter.h"
#include "gpu/qpu/jit/avx2/lanes.h"
#include "gpu/qpu/jit/code/helpers.h"
#include "gpu/qpu/jit/code/predicates.h"

namespace v3d::qpu::jit::avx2 {

using Xbyak::Xmm;
using Target = Destination::Target;

namespace {

bool has_own_code(Unpack unpack) { return unpack < Unpack::kU5 || unpack > Unpack::kU7; }

}  // namespace

void Emitter::emit_alu_word(const Instruction& i) {
  Half add, mul;
  mul.number = 1;
  if (!flow::is_idle(generation(), i.add))
    add.in = &i.add, add.to = destination_of(generation(), i.add), add.exec = exec_of(i.add);
  if (!flow::is_idle(generation(), i.mul) && !begins_product(i.mul))
    mul.in = &i.mul, mul.to = destination_of(generation(), i.mul), mul.exec = exec_of(i.mul);
  if (i.mul.op == Op::kMultop && !mul.in) product_ = node_ + 1;
  if (i.signals & kRotate) mul.rotated = &i;
  for (Half* half : {&add, &mul}) {
    half->result.frame = offsetof(Frame, results) + half->number * sizeof(Lanes);
    half->x.frame = offsetof(Frame, flag_results) + half->number * sizeof(Lanes);
  }
  const Destination signal = i.signals & kSignalsWithAddress
                                 ? destination_of(generation(), i.signal_magic, i.signal_waddr)
                                 : Destination();
  const auto calls = [this](const Destination& to, const Exec& exec) {
    if (to.target != Target::kPort) return false;
    if (to.effect == Effect::kGeneral) return to.takes_uniform || !accesses_in_place(!exec.masked);
    return writes_by_call(to) || starts_sfu(to.effect);
  };
  const auto whole = [&](const Half& half) {
    return half.in && (is_across(half) || half.to.target == Target::kRep || half.to.target == Target::kPort);
  };
  in_frame_ = (i.signals & (kLdtlb | kLdtlbu)) || calls(signal, {}) || (add.in && calls(add.to, add.exec)) ||
              (mul.in && calls(mul.to, mul.exec)) || (add.in && !has_own_code(*add.in)) ||
              (mul.in && !has_own_code(*mul.in));
  const bool ports =
      add.to.target == Target::kPort || mul.to.target == Target::kPort || signal.target == Target::kPort;
  if (in_frame_ || ports || whole(add) || whole(mul)) {
    emit_whole(i, add, mul, ports);
  } else {
    emit_parts(add, mul);
    commit_signals(i, false);
  }
  locked_ = held_ = 0;
}

void Emitter::emit_parts(Half& add, Half& mul) {
  for (part_ = 0; part_ < 2; ++part_) {
    for (Half* half : {&add, &mul})
      if (half->in) compute(*half);
    // The add half is written first.
    for (const Half* half : {&add, &mul})
      if (half->in) commit_part(half->to, half->in->pack, half->result, half->exec);
    for (const Half* half : {&add, &mul})
      if (half->in) write_flags(*half);
    locked_ = held_ = 0;
  }
}

void Emitter::emit_whole(const Instruction& i, Half& add, Half& mul, bool ports) {
  for (Half* half : {&add, &mul}) {
    if (!half->in) continue;
    if (!has_own_code(*half->in)) {
      compute_by_call(*half);
      continue;
    }
    for (part_ = 0; part_ < 2; ++part_) compute(*half);
  }
  if (ports) fetch_signals(i);
  for (const Half* half : {&add, &mul})
    if (half->in) commit(half->to, half->in->pack, half->result, half->exec);
  commit_signals(i, ports);
  for (const Half* half : {&add, &mul})
    for (part_ = 0; half->in && part_ < 2; ++part_) write_flags(*half);
}

bool Emitter::has_own_code(const AluHalf& half) const {
  if (!emitter_of(half.op).emit || !avx2::has_own_code(half.a.unpack) || !avx2::has_own_code(half.b.unpack))
    return false;
  return half.flags == FlagWrite::kNone || !is_of_halves(info(half.op).flags);
}

bool Emitter::is_across(const Half& half) const {
  return half.rotated || (has_own_code(*half.in) && emitter_of(half.in->op).across);
}

Emitter::Exec Emitter::exec_of(const AluHalf& half) {
  if (half.cond == Cond::kNone) return {};
  return {true, info(half.cond).inverted, info(half.cond).of_b, {}};
}

// ---- Values in flight

void Emitter::keep(Vector& vector, const Source& value) {
  const Ymm reg = in_register(value);
  if (in_frame_) return vmovaps(in_frame(vector.frame), reg);
  vector.host[part_] = reg.getIdx();
  held_ |= 1u << reg.getIdx();
}

Source Emitter::part_of(const Vector& vector) {
  const int host = vector.host[part_];
  return host == Cache::kNone ? Source(in_frame(vector.frame)) : Source(Ymm(host));
}

void Emitter::compute(Half& half) {
  const Scope scope(*this);
  const AluHalf& in = *half.in;
  const int operands = info(in.op).operands;
  const Source nothing(Ymm(0));
  const Source a = operands > 0 ? operand(half, in.a, true) : nothing,
               b = operands > 1 ? operand(half, in.b, false) : nothing;
  const Source x = operands > 0 ? unpacked(in.a.unpack, a) : a;
  const Source y = operands > 1 ? unpacked(in.b.unpack, b) : b;
  half_ = &half;
  Source result = x;
  if (!is_plain_move(in)) {
    const Ymm to = scratch();
    if (in.op == Op::kUmul24 && product_ == node_)
      multiply(to, x, y);
    else
      emitter_of(in.op).emit(*this, to, x, y);
    result = Source(to);
  }
  if (in.flags != FlagWrite::kNone) {
    const bool compares = is_compare(info(in.op).flags);
    keep(half.x, Source(flag_of(half, result, compares ? x : a, compares ? y : b)));
  }
  if (half.to.target != Target::kNone) keep(half.result, result);
}

void Emitter::multiply(const Ymm& to, const Source& a, const Source& b) {
  const Ymm zero = scratch();
  vpxor(zero, zero, zero);
  vpmulld(to, in_register(a), b.operand());
  write_rtop(zero);
}

Source Emitter::operand_of_part(int operand, int part) {
  const int own = std::exchange(part_, part);
  const Operand& o = operand == 0 ? half_->in->a : half_->in->b;
  const Source value(in_register(unpacked(o.unpack, this->operand(*half_, o, true))));
  part_ = own;
  return value;
}

std::optional<Emitter::Ymm> Emitter::lanes_that_store() {
  if (!half_->exec.masked) return {};
  const Ymm lanes = exec_lanes(half_->exec);
  if (!half_->exec.inverted) return lanes;
  const Ymm others = scratch();
  vpxor(others, lanes, constant(0x80000000));
  return others;
}

void Emitter::compute_by_call(Half& half) {
  const AluHalf& in = *half.in;
  const int operands = info(in.op).operands;
  // The order of unpacking and evaluation is the function's. Operands that do not exist are arbitrary.
  for (part_ = 0; part_ < 2; ++part_) {
    const Scope scope(*this);
    if (operands > 0) vmovaps(in_frame(offsetof(Frame, a)), in_register(operand(half, in.a, true)));
    if (operands > 1) vmovaps(in_frame(offsetof(Frame, b)), in_register(operand(half, in.b, true)));
  }
  if (info(in.op).traits & (kReadsA | kReadsB)) store_flag_bits();
  exec_to(eax, half.exec);
  mov(word[kFrame + offsetof(Frame, exec)], ax);
  const FlagFn flag_fn =
      in.flags == FlagWrite::kNone ? nullptr : find_flag(in.op, in.flags, in.a.unpack, in.b.unpack);
  mov(rsi, reinterpret_cast<uint64_t>(find_alu(in.op, in.a.unpack, in.b.unpack)));
  mov(rdx, reinterpret_cast<uint64_t>(flag_fn));
  prepare_call(false);
  const bool active = info(in.op).traits & kActiveLanes;
  call_function(active ? evaluate_active : evaluate);
  if (active) {
    mov(ax, word[kFrame + offsetof(Frame, exec)]);
    mov(word[kFrame + (offsetof(Frame, masks) + half.number * sizeof(uint32_t))], ax);
    half.exec = {true, false, false, half.number};
  }
  if (flag_fn) movzx(eax, word[kFrame + offsetof(Frame, x)]);
  for (part_ = 0; part_ < 2; ++part_) {
    const Scope scope(*this);
    keep(half.result, Source(in_frame(offsetof(Frame, result))));
    if (!flag_fn) continue;
    const Ymm lanes = scratch();
    spread_bits(lanes, eax);
    keep(half.x, Source(lanes));
  }
}

// ---- Operands

Source Emitter::operand(const Half& half, const Operand& o, bool into_register) {
  if (o.kind == Operand::Kind::kImmediate) {
    const uint32_t value = small_immediate(o.index);
    return Source(constant(value), value);
  }
  const auto rotation = half.rotated ? rotation_of(*half.rotated, o) : std::nullopt;
  return rotation ? rotated(o, *rotation) : read(o.reg(), into_register);
}

/// rotated() of the interpreter.
Source Emitter::rotated(const Operand& o, const Rotation& rotation) {
  const Ymm to = scratch();
  const Scope scope(*this);
  const auto part_of = [&o](Emitter& e, int part) { return e.read_part(o.reg(), part); };
  if (rotation.turn && rotation.in_quads) {
    vpshufd(to, read(o.reg()).operand(), quad_order(*rotation.turn));
    return Source(to);
  }
  if (rotation.turn) {
    rotate_lanes(*this, to, *rotation.turn, part_of);
    return Source(to);
  }
  const Ymm count = scratch(), index = scratch();
  vpbroadcastd(count, Xmm(read_part(kRotateCount, 0).getIdx()));
  vmovaps(index, constants({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
  vpsubd(index, index, count);
  if (rotation.in_quads)
    vpermilps(to, read(o.reg(), true).reg(), index);
  else
    permute_lanes(*this, to, index, part_of);
  return Source(to);
}

Source Emitter::half_to_float(const Source& v, bool high) {
  const Ymm to = scratch();
  if (high)
    vpsrld(to, in_register(v), 16);
  else
    vpand(to, in_register(v), constant(0xffff));
  vpackusdw(to, to, to);
  vpermq(to, to, 8);
  vcvtph2ps(to, Xmm(to.getIdx()));
  return Source(to);
}

Emitter::Ymm Emitter::float_to_half(const Ymm& from) {
  const Ymm to = scratch();
  vcvtps2ph(Xmm(to.getIdx()), from, 0);
  vpmovzxwd(to, Xmm(to.getIdx()));
  return to;
}

/// unpacked() of alu.h.
Source Emitter::unpacked(Unpack unpack, const Source& v) {
  if (unpack == Unpack::kNone) return v;
  if (unpack == Unpack::kL || unpack == Unpack::kH) return half_to_float(v, unpack == Unpack::kH);
  const Ymm from = in_register(v);
  if (unpack == Unpack::kFf) {
    const Ymm half = float_to_half(from), to = scratch();
    vpslld(to, half, 16);
    vpor(to, to, half);
    return Source(to);
  }
  const Ymm to = scratch();
  const auto clamped = [&](uint32_t low) {  // a NaN is the first source, and gives the second one
    vmaxps(to, from, constant(low));
    vminps(to, to, constant(0x3f800000));
  };
  const auto with_low = [&](uint32_t bits) {
    const Ymm low = scratch();
    vpand(low, from, constant(bits));
    vpor(to, to, low);
  };
  switch (unpack) {
    case Unpack::kAbs:
      vpand(to, from, constant(0x7fffffff));
      break;
    case Unpack::kSat:
      clamped(0);
      break;
    case Unpack::kNsat:
      clamped(0xbf800000);
      break;
    case Unpack::kMax0:
      vmaxps(to, from, constant(0));
      break;
    case Unpack::kLl:
      vpslld(to, from, 16);
      with_low(0xffff);
      break;
    case Unpack::kHh:
      vpsrld(to, from, 16);
      with_low(0xffff0000);
      break;
    case Unpack::kSwp:
      vpshuflw(to, from, 0xb1);
      vpshufhw(to, to, 0xb1);
      break;
    case Unpack::kUl:
      vpand(to, from, constant(0xffff));
      break;
    case Unpack::kUh:
      vpsrld(to, from, 16);
      break;
    case Unpack::kIl:
      vpslld(to, from, 16);
      vpsrad(to, to, 16);
      break;
    case Unpack::kIh:
      vpsrad(to, from, 16);
      break;
    default:  // has_own_code() says no
      break;
  }
  return Source(to);
}

// ---- Flags

Emitter::Ymm Emitter::compare(const Source& a, const Source& b, uint8_t predicate) {
  const Ymm x = scratch();
  vcmpps(x, in_register(a), b.operand(), predicate);
  return x;
}

/// a < b without signs.
Emitter::Ymm Emitter::is_below(const Source& a, const Source& b) {
  const Ymm x = scratch(), y = scratch();
  vpxor(x, in_register(a), constant(0x80000000));
  vpxor(y, in_register(b), constant(0x80000000));
  vpcmpgtd(x, y, x);
  return x;
}

Emitter::Ymm Emitter::carry_of(Carry carry, const Source& result, const Source& a, const Source& b) {
  const Ymm x = scratch();
  switch (carry) {
    case Carry::kNone:
      vpxor(x, x, x);
      return x;
    case Carry::kOverflow:
      return is_below(result, a);
    case Carry::kBorrow:
      return is_below(a, b);
    case Carry::kAbove:
      return is_below(b, a);
    case Carry::kGreater:
      vpcmpgtd(x, in_register(a), b.operand());
      return x;
  }
  return x;
}

/// @param a, b  unpacked if the operation compares them
Emitter::Ymm Emitter::flag_of(const Half& half, const Source& result, const Source& a, const Source& b) {
  const OpInfo& op = info(half.in->op);
  const Flag which = info(half.in->flags).flag;
  const uint8_t relation = which == Flag::kZ ? kEqual : which == Flag::kN ? kLess : kLessOrEqual;
  if (op.flags == FlagClass::kCompare) return compare(a, b, relation);
  if (which == Flag::kC) return carry_of(op.carry, result, a, b);
  if (op.flags == FlagClass::kFloat) return compare(result, Source(constant(0)), relation);
  if (which == Flag::kN) return in_register(result);
  const Ymm x = scratch();
  vpxor(x, x, x);
  vpcmpeqd(x, x, result.operand());
  return x;
}

void Emitter::write_flags(const Half& half) {
  using enum FlagWriteInfo::Combination;
  const auto combination = info(half.in->flags).combination;
  if (combination == kNone) return;
  const Scope scope(*this);
  const Ymm x = in_register(part_of(half.x)), a = read(kCachedFlagA, true).reg();
  if (combination == kPush) {
    bind(kCachedFlagB, a);
    return bind(kCachedFlagA, x);
  }
  const Ymm to = scratch();
  switch (combination) {
    case kAnd:
      vandps(to, a, x);
      break;
    case kAndNot:
      vandnps(to, x, a);
      break;
    case kNor:
      vorps(to, a, x);
      vxorps(to, to, constant(0x80000000));
      break;
    default:
      vandnps(to, a, x);
      break;
  }
  bind(kCachedFlagA, to);
}

// ---- Writes

/// Lanes that take part, or with Exec::inverted the others, as highest bits.
Emitter::Ymm Emitter::exec_lanes(const Exec& exec) {
  if (!exec.mask) return read(exec.of_b ? kCachedFlagB : kCachedFlagA, true).reg();
  const Ymm lanes = scratch();
  movzx(eax, word[kFrame + (offsetof(Frame, masks) + *exec.mask * sizeof(uint32_t))]);
  spread_bits(lanes, eax);
  return lanes;
}

void Emitter::blend(const Ymm& to, const Source& old, const Source& value, const Exec& exec) {
  const Ymm lanes = exec_lanes(exec);
  if (exec.inverted)
    vblendvps(to, in_register(value), old.operand(), lanes);
  else
    vblendvps(to, in_register(old), value.operand(), lanes);
}

/// packed() of alu.h.
Emitter::Ymm Emitter::packed(Pack pack, const Source& value, const Source& old) {
  const Ymm half = float_to_half(in_register(value)), rest = scratch();
  if (pack == Pack::kH) vpslld(half, half, 16);
  vpand(rest, in_register(old), constant(pack == Pack::kL ? 0xffff0000 : 0xffff));
  vpor(half, half, rest);
  return half;
}

/// The current part, to what has parts: registers and the sample mask.
void Emitter::commit_part(const Destination& to, Pack pack, const Vector& value, const Exec& exec) {
  if (to.target == Target::kNone) return;
  const Scope scope(*this);
  const bool is_msf = to.target == Target::kMsf;
  const Source msf(in_thread(offsetof(Thread, msf)));
  Source v = part_of(value);
  if (pack != Pack::kNone) v = Source(packed(pack, v, is_msf ? msf : read(to.reg)));
  if (!is_msf) {
    if (to.target == Target::kQuad) {
      const Ymm spread = scratch();
      vpshufd(spread, v.operand(), 0);
      v = Source(spread);
    }
    return write(to.reg, v, exec);
  }
  Ymm mask = in_register(v);
  if (exec.masked) {
    mask = scratch();
    blend(mask, msf, v, exec);
  }
  vmovaps(in_thread(offsetof(Thread, msf)), mask);
}

void Emitter::commit(const Destination& to, Pack pack, const Vector& value, const Exec& exec) {
  if (to.target == Target::kRep) return commit_rep(to, pack, value, exec);
  if (to.target != Target::kPort) {
    for (part_ = 0; part_ < 2; ++part_) commit_part(to, pack, value, exec);
    return;
  }
  if (pack == Pack::kNone) return commit_port(to, value, exec);
  Vector halves;
  halves.frame = offsetof(Frame, a);
  for (part_ = 0; part_ < 2; ++part_) {
    const Scope scope(*this);
    keep(halves, Source(packed(pack, part_of(value), Source(constant(0), 0))));
  }
  commit_port(to, halves, exec);
}

void Emitter::commit_rep(const Destination& to, Pack pack, const Vector& value, const Exec& exec) {
  const Scope scope(*this);
  part_ = 0;
  Source v = part_of(value);
  if (pack != Pack::kNone) v = Source(packed(pack, v, read(to.reg)));
  const Ymm spread = scratch();
  vpbroadcastd(spread, Xmm(in_register(v).getIdx()));
  for (part_ = 0; part_ < 2; ++part_) write(to.reg, Source(spread), exec);
}

// ---- Signals

/// Takes what the signals give, in the order of run_alu(), into the frame for commit_signals(), since what is
/// written in between may change it.
void Emitter::fetch_signals(const Instruction& i) {
  const uint16_t s = i.signals;
  const Scope scope(*this);
  Vector value;
  const auto keep_in_frame = [&](size_t offset) { copy_to(value, kFrame, offset); };
  if (s & kLdtmu) pop_tmu(value);
  if (s & kLdvary) load_varying(value);
  if (s & (kLdtlb | kLdtlbu)) load_tlb_word(value, s & kLdtlbu);
  if (s & kLdunifrf) load_uniform(value);
  if (s & kLdunifarf) load_unifa(value);
  if (s & kSignalsWithAddress) keep_in_frame(offsetof(Frame, loaded));
  value = {};
  if (s & kLdunif) load_uniform(value);
  if (s & kLdunifa) load_unifa(value);
  if (s & kSignalsImplicit) keep_in_frame(offsetof(Frame, implicitly));
  if (s & kWrtmuc) write_texture_config();
}

void Emitter::commit_signals(const Instruction& i, bool kept) {
  const uint16_t s = i.signals;
  const Destination implicit{Target::kRegister, this->implicit()};
  const Destination to =
      s & kSignalsWithAddress ? destination_of(generation(), i.signal_magic, i.signal_waddr) : Destination();
  const auto load = [&](const Destination& place, const auto& fetch) {
    const Scope scope(*this);
    Vector value;
    fetch(value);
    commit(place, Pack::kNone, value, {});
  };
  if (kept) {
    if (s & kSignalsImplicit) load(implicit, [](Vector& v) { v.frame = offsetof(Frame, implicitly); });
    if (s & kSignalsWithAddress) load(to, [](Vector& v) { v.frame = offsetof(Frame, loaded); });
    return;
  }
  if (s & kLdunif) load(implicit, [&](Vector& v) { load_uniform(v); });
  if (s & kLdunifa) load(implicit, [&](Vector& v) { load_unifa(v); });
  if (s & kLdtmu) load(to, [&](Vector& v) { pop_tmu(v); });
  if (s & kLdvary) load(to, [&](Vector& v) { load_varying(v); });
  if (s & (kLdtlb | kLdtlbu)) load(to, [&](Vector& v) { load_tlb_word(v, s & kLdtlbu); });
  if (s & kLdunifrf) load(to, [&](Vector& v) { load_uniform(v); });
  if (s & kLdunifarf) load(to, [&](Vector& v) { load_unifa(v); });
  if (s & kWrtmuc) write_texture_config();
}

}  // namespace v3d::qpu::jit::avx2
