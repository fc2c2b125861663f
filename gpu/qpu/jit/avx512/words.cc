/// @file One instruction, in the order of run_alu(): both halves compute, signals fetch, then everything is
/// written. Where nobody can see the difference, a result is computed into its destination at once.

#include "gpu/qpu/flow/access.h"
#include "gpu/qpu/jit/avx512/emitter.h"
#include "gpu/qpu/jit/code/helpers.h"
#include "gpu/qpu/jit/code/predicates.h"

namespace v3d::qpu::jit::avx512 {

using Xbyak::Xmm;
using Xbyak::Ymm;

namespace {

constexpr uint8_t kGreaterWord = 6;  // of vpcmpd and vpcmpud

bool has_own_code(Unpack unpack) { return unpack < Unpack::kU5 || unpack > Unpack::kU7; }

}  // namespace

void Emitter::emit_alu_word(const Instruction& i) {
  using enum Destination::Target;
  Half add, mul;
  add.result = kResultAdd, add.exec = kExecAdd, add.x = kXAdd;
  mul.result = kResultMul, mul.exec = kExecMul, mul.x = kXMul;
  if (!flow::is_idle(generation(), i.add)) add.in = &i.add, add.to = destination_of(generation(), i.add);
  if (!flow::is_idle(generation(), i.mul) && !begins_product(i.mul))
    mul.in = &i.mul, mul.to = destination_of(generation(), i.mul);
  if (i.mul.op == Op::kMultop && !mul.in) product_ = node_ + 1;
  if (i.signals & kRotate) mul.rotated = &i;

  const Destination signal = i.signals & kSignalsWithAddress
                                 ? destination_of(generation(), i.signal_magic, i.signal_waddr)
                                 : Destination();
  const auto half_calls = [&](const Half& half) {
    return half.in && (!has_own_code(*half.in) || calls(half.to));
  };
  may_borrow_ = !half_calls(add) && !half_calls(mul) && !(i.signals & (kLdtlb | kLdtlbu)) && !calls(signal);

  if (add.in) compute(add, !(mul.in && reads(*mul.in, add.to.reg)));
  // The add half is written first.
  const bool add_waits = add.in && !add.committed && add.to.target != kNone;
  if (mul.in) compute(mul, !add_waits);

  const bool ports = add.to.target == kPort || mul.to.target == kPort || signal.target == kPort;
  if (ports) fetch_signals(i, true);
  if (add.in && add.to.target != kMsf) commit(add);
  if (mul.in) commit(mul);
  commit_signals(i, ports);
  if (add.in) write_flags(add);
  if (mul.in) write_flags(mul);
  if (add.in && add.to.target == kMsf) commit(add);
}

bool Emitter::has_own_code(const AluHalf& half) const {
  if (!emitter_of(half.op) || !avx512::has_own_code(half.a.unpack) || !avx512::has_own_code(half.b.unpack))
    return false;
  return half.flags == FlagWrite::kNone || !is_of_halves(info(half.op).flags);
}

void Emitter::compute(Half& half, bool may_write_directly) {
  set_exec(half);
  if (has_own_code(*half.in))
    compute_own(half, may_write_directly);
  else
    compute_by_call(half);
}

// SETMSF is written after the flags, so that its condition is kept.
void Emitter::set_exec(Half& half) {
  const Cond cond = half.in->cond;
  half.masked = cond != Cond::kNone;
  if (!half.masked) return;
  const Opmask flag = info(cond).of_b ? kFlagB : kFlagA;
  if (info(cond).inverted)
    knotw(half.exec, flag);
  else
    kmovw(half.exec, flag);
}

void Emitter::compute_own(Half& half, bool may_write_directly) {
  const AluHalf& in = *half.in;
  const int operands = info(in.op).operands;
  const Source nothing(kTemp);
  const bool moves = is_plain_move(in);
  const auto rotation = moves ? rotation_of(half, in.a) : std::nullopt;  // which goes to the result at once
  const Source a = rotation       ? read(in.a.reg())
                   : operands > 0 ? operand(half, in.a, kUnpackedA)
                                  : nothing,
               b = operands > 1 ? operand(half, in.b, kUnpackedB) : nothing;
  if (rotation && !rotation->turn) read(kRotateCount);  // before begin_write()
  const bool spreads = rotation && rotation->turn && !rotation->in_quads && in.pack == Pack::kNone &&
                       in.flags == FlagWrite::kNone && half.to.target == Destination::Target::kRep;
  if (spreads) {
    keep_at_home(in.a.reg());
    half.to.target = Destination::Target::kRegister;
  }
  const Source x = operands > 0 ? unpacked(in.a.unpack, a, kUnpackedA) : a;
  const Source y = operands > 1 ? unpacked(in.b.unpack, b, kUnpackedB) : b;

  const auto emit = [&](const Zmm& to) {
    if (spreads)
      vpbroadcastd(to, dword[kThread + (in.a.reg() * sizeof(Lanes) + *rotation->turn * sizeof(uint32_t))]);
    else if (rotation)
      rotate(to, in.a, *rotation);
    else if (in.op == Op::kUmul24 && product_ == node_)
      multiply(to, x, y);
    else
      emitter_of(in.op)(*this, to, x, y);
  };

  exec_ = half.masked ? &half.exec : nullptr;
  half.committed = may_write_directly && half.to.target == Destination::Target::kRegister && !half.masked &&
                   in.pack == Pack::kNone && !looks_at_operands(in) && pins_[half.to.reg].zmm >= 0;
  if (half.committed) {
    half.result = *begin_write(half.to.reg);
    emit(half.result);
  } else if (moves && !rotation && x.in_register() && may_write_directly && may_borrow_) {
    half.result = x.reg();  // nothing changes it before the commit
  } else {
    emit(half.result);
  }
  if (in.flags != FlagWrite::kNone)
    compute_flag(half, is_compare(info(in.op).flags) ? x : a, is_compare(info(in.op).flags) ? y : b);
}

void Emitter::multiply(const Zmm& to, const Source& a, const Source& b) {
  const Zmm x = in_register(a, kTemp), y = in_register(b, kTemp2);
  vpxord(kTemp3, kTemp3, kTemp3);
  vmovdqa64(at(offsetof(Thread, rtop)), kTemp3);
  vpmulld(to, x, y);
}

void Emitter::compute_by_call(Half& half) {
  const AluHalf& in = *half.in;
  const int operands = info(in.op).operands;
  // The order of unpacking and evaluation is the function's. Operands that do not exist are arbitrary.
  const auto store = [&](size_t offset, const Operand& o) {
    vmovdqa64(in_frame(offset), in_register(operand(half, o, kUnpackedA), kTemp));
  };
  if (operands > 0) store(offsetof(Frame, a), in.a);
  if (operands > 1) store(offsetof(Frame, b), in.b);
  exec_to(eax, half.masked ? &half.exec : nullptr);
  mov(word[kFrame + offsetof(Frame, exec)], ax);
  const FlagFn flag =
      in.flags == FlagWrite::kNone ? nullptr : find_flag(in.op, in.flags, in.a.unpack, in.b.unpack);
  mov(rsi, reinterpret_cast<uint64_t>(find_alu(in.op, in.a.unpack, in.b.unpack)));
  mov(rdx, reinterpret_cast<uint64_t>(flag));
  prepare_call(false);
  const bool active = info(in.op).traits & kActiveLanes;
  call_function(active ? evaluate_active : evaluate);
  vmovdqa64(half.result, in_frame(offsetof(Frame, result)));
  if (active) {
    half.masked = true;
    kmovw(half.exec, word[kFrame + offsetof(Frame, exec)]);
  }
  if (flag) kmovw(half.x, word[kFrame + offsetof(Frame, x)]);
}

// ---- Operands

Source Emitter::operand(const Half& half, const Operand& o, const Zmm& to) {
  if (o.kind == Operand::Kind::kImmediate) {
    const uint32_t value = small_immediate(o.index);
    return Source(constant(value), value);
  }
  const auto rotation = rotation_of(half, o);
  if (!rotation) return read(o.reg());
  rotate(to, o, *rotation);
  return Source(to);
}

std::optional<Rotation> Emitter::rotation_of(const Half& half, const Operand& o) const {
  return half.rotated ? jit::rotation_of(*half.rotated, o) : std::nullopt;
}

/// rotated() of the interpreter.
void Emitter::rotate(const Zmm& to, const Operand& o, const Rotation& rotation) {
  const Source source = read(o.reg());
  if (rotation.turn && rotation.in_quads) return vpshufd(to, source.operand(), quad_order(*rotation.turn));
  if (rotation.turn) {
    const Zmm value = in_register(source, kTemp);
    return valignd(to, value, value, static_cast<uint8_t>(*rotation.turn));
  }
  vpbroadcastd(kTemp2, Xmm(in_register(read(kRotateCount), kTemp2).getIdx()));
  vmovdqa64(kTemp3, constants({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
  vpsubd(kTemp2, kTemp3, kTemp2);
  if (rotation.in_quads)
    vpermilps(to, in_register(source, kTemp), kTemp2);
  else
    vpermd(to, kTemp2, source.operand());
}

Source Emitter::half_to_float(const Source& v, bool high, const Zmm& to) {
  Zmm from = in_register(v, to);
  if (high) {
    vpsrld(to, from, 16);
    from = to;
  }
  vpmovdw(Ymm(to.getIdx()), from);
  vcvtph2ps(to, Ymm(to.getIdx()));
  return Source(to);
}

void Emitter::float_to_half(const Zmm& to, const Zmm& from) {
  vcvtps2ph(Ymm(to.getIdx()), from, 0);
  vpmovzxwd(to, Ymm(to.getIdx()));
}

/// unpacked() of alu.h.
Source Emitter::unpacked(Unpack unpack, const Source& v, const Zmm& to) {
  if (unpack == Unpack::kNone) return v;
  if (unpack == Unpack::kL || unpack == Unpack::kH) return half_to_float(v, unpack == Unpack::kH, to);
  const Zmm from = in_register(v, to);
  switch (unpack) {
    case Unpack::kAbs:
      vpandd(to, from, constant(0x7fffffff));
      break;
    case Unpack::kSat:  // a NaN is the first source, and gives the second one
      vmaxps(to, from, constant(0));
      vminps(to, to, constant(0x3f800000));
      break;
    case Unpack::kNsat:
      vmaxps(to, from, constant(0xbf800000));
      vminps(to, to, constant(0x3f800000));
      break;
    case Unpack::kMax0:
      vmaxps(to, from, constant(0));
      break;
    case Unpack::kFf:
      float_to_half(to, from);
      vpslld(kTemp, to, 16);
      vpord(to, to, kTemp);
      break;
    case Unpack::kLl:
      vpslld(kTemp, from, 16);
      vpandd(to, from, constant(0xffff));
      vpord(to, to, kTemp);
      break;
    case Unpack::kHh:
      vpsrld(kTemp, from, 16);
      vpandd(to, from, constant(0xffff0000));
      vpord(to, to, kTemp);
      break;
    case Unpack::kSwp:
      vprold(to, from, 16);
      break;
    case Unpack::kUl:
      vpandd(to, from, constant(0xffff));
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

void Emitter::compare_floats(const Opmask& x, const Source& a, const Source& b, uint8_t predicate) {
  vcmpps(x, in_register(a, kTemp), b.operand(), predicate);
}

/// @param a, b  unpacked if the operation compares them
void Emitter::compute_flag(const Half& half, const Source& a, const Source& b) {
  const OpInfo& op = info(half.in->op);
  const Flag which = info(half.in->flags).flag;
  const Opmask x = half.x;
  const uint8_t relation = which == Flag::kZ ? kEqual : which == Flag::kN ? kLess : kLessOrEqual;
  if (op.flags == FlagClass::kCompare) return compare_floats(x, a, b, relation);
  if (which != Flag::kC) {
    if (op.flags == FlagClass::kFloat)
      return compare_floats(x, Source(half.result), Source(constant(0)), relation);
    return which == Flag::kZ ? vptestnmd(x, half.result, half.result) : vpmovd2m(x, half.result);
  }
  switch (op.carry) {
    case Carry::kNone:
      return kxorw(x, x, x);
    case Carry::kOverflow:
      return vpcmpud(x, half.result, a.operand(), kLess);
    case Carry::kBorrow:
      return vpcmpud(x, in_register(a, kTemp), b.operand(), kLess);
    case Carry::kGreater:
      return vpcmpd(x, in_register(a, kTemp), b.operand(), kGreaterWord);
    case Carry::kAbove:
      return vpcmpud(x, in_register(a, kTemp), b.operand(), kGreaterWord);
  }
}

void Emitter::write_flags(const Half& half) {
  using enum FlagWriteInfo::Combination;
  switch (info(half.in->flags).combination) {
    case kNone:
      return;
    case kPush:
      kmovw(kFlagB, kFlagA);
      return kmovw(kFlagA, half.x);
    case kAnd:
      return kandw(kFlagA, kFlagA, half.x);
    case kAndNot:
      return kandnw(kFlagA, half.x, kFlagA);
    case kNor:
      korw(kFlagA, kFlagA, half.x);
      return knotw(kFlagA, kFlagA);
    case kNorNot:
      return kandnw(kFlagA, kFlagA, half.x);
  }
}

// ---- Writes

void Emitter::commit(Half& half) {
  if (half.committed) return;
  commit(half.to, half.in->pack, half.result, half.masked ? &half.exec : nullptr);
  half.committed = true;
}

void Emitter::commit(const Destination& to, Pack pack, const Zmm& value, const Opmask* exec) {
  using enum Destination::Target;
  if (to.target == kNone) return;
  if (to.target == kPort) {
    if (pack == Pack::kNone) return commit_port(to, value, exec);
    vpxord(kUnpackedA, kUnpackedA, kUnpackedA);
    return commit_port(to, packed(pack, value, Source(kUnpackedA)).reg(), exec);
  }
  if (to.target == kMsf) {
    Zmm v = value;
    if (pack != Pack::kNone) v = packed(pack, value, Source(at(offsetof(Thread, msf)))).reg();
    if (exec)
      vmovdqa32(at(offsetof(Thread, msf)) | *exec, v);
    else
      vmovdqa64(at(offsetof(Thread, msf)), v);
    return;
  }
  Source v(value);
  if (pack != Pack::kNone) v = packed(pack, value, read(to.reg));
  if (to.target == kRegister) return write(to.reg, v, exec);
  const auto direct = exec ? std::nullopt : begin_write(to.reg);
  const Zmm spread = direct.value_or(kTemp);
  if (to.target == kQuad)
    vpshufd(spread, v.reg(), 0);
  else
    vpbroadcastd(spread, Xmm(v.reg().getIdx()));
  if (!direct) write(to.reg, Source(spread), exec);
}

/// packed() of alu.h. The result is in kTemp.
Source Emitter::packed(Pack pack, const Zmm& value, const Source& old) {
  float_to_half(kTemp, value);
  if (pack == Pack::kH) vpslld(kTemp, kTemp, 16);
  vpandd(kTemp2, in_register(old, kTemp2), constant(pack == Pack::kL ? 0xffff0000 : 0xffff));
  vpord(kTemp, kTemp, kTemp2);
  return Source(kTemp);
}

// ---- Signals

/// Takes what the signals give, in the order of run_alu(). @param keep  puts it into the frame, for
/// commit_signals(), since what is written in between may change it
void Emitter::fetch_signals(const Instruction& i, bool keep) {
  const uint16_t s = i.signals;
  if (!keep) return;
  const auto loaded = in_frame(offsetof(Frame, loaded)), implicitly = in_frame(offsetof(Frame, implicitly));
  if (s & kLdtmu) pop_tmu(kTemp);
  if (s & kLdvary) load_varying(kTemp);
  if (s & (kLdtlb | kLdtlbu)) load_tlb_word(kTemp, s & kLdtlbu);
  if (s & kLdunifrf) vpbroadcastd(kTemp, next_uniform());
  if (s & kLdunifarf) load_unifa(kTemp);
  if (s & kSignalsWithAddress) vmovdqa64(loaded, kTemp);
  if (s & kLdunif) vpbroadcastd(kTemp, next_uniform());
  if (s & kLdunifa) load_unifa(kTemp);
  if (s & kSignalsImplicit) vmovdqa64(implicitly, kTemp);
  if (s & kWrtmuc) write_texture_config();
}

void Emitter::commit_signals(const Instruction& i, bool kept) {
  const uint16_t s = i.signals;
  const auto load = [&](const Destination& to, auto fetch) {
    const bool direct = to.target == Destination::Target::kRegister && pins_[to.reg].zmm >= 0;
    const Zmm reg = direct ? Zmm(pins_[to.reg].zmm) : kTemp;
    fetch(reg);
    if (direct)
      begin_write(to.reg);
    else
      commit(to, Pack::kNone, reg, nullptr);
  };
  const Destination implicit{Destination::Target::kRegister, this->implicit()};
  const Destination to =
      s & kSignalsWithAddress ? destination_of(generation(), i.signal_magic, i.signal_waddr) : Destination();
  if (kept) {
    if (s & kSignalsImplicit)
      load(implicit, [&](const Zmm& reg) { vmovdqa64(reg, in_frame(offsetof(Frame, implicitly))); });
    if (s & kSignalsWithAddress)
      load(to, [&](const Zmm& reg) { vmovdqa64(reg, in_frame(offsetof(Frame, loaded))); });
    return;
  }
  if (s & kLdunif) load(implicit, [&](const Zmm& reg) { vpbroadcastd(reg, next_uniform()); });
  if (s & kLdunifa) load(implicit, [&](const Zmm& reg) { load_unifa(reg); });
  if (s & kLdtmu) load(to, [&](const Zmm& reg) { pop_tmu(reg); });
  if (s & kLdvary) load(to, [&](const Zmm& reg) { load_varying(reg); });
  if (s & (kLdtlb | kLdtlbu)) load(to, [&](const Zmm& reg) { load_tlb_word(reg, s & kLdtlbu); });
  if (s & kLdunifrf) load(to, [&](const Zmm& reg) { vpbroadcastd(reg, next_uniform()); });
  if (s & kLdunifarf) load(to, [&](const Zmm& reg) { load_unifa(reg); });
  if (s & kWrtmuc) write_texture_config();
}

}  // namespace v3d::qpu::jit::avx512
