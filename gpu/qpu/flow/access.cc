#include "gpu/qpu/flow/access.h"

namespace v3d::qpu::flow {
namespace {

bool goes_nowhere(chip::Generation generation, const AluHalf& half) {
  if (!info(half.op).has_destination) return true;
  return half.magic && waddr_info(generation, half.waddr).effect == Effect::kNothing;
}

class Collector {
 public:
  Collector(chip::Generation generation, const Instruction& i) : generation_(generation), i_(i) {
    half(i.add, Part::kAdd);
    half(i.mul, Part::kMul);
    signals();
    port(i.add, Part::kAdd);
    port(i.mul, Part::kMul);
    if (i.signals & kSignalsWithAddress)
      destination(i.signal_magic, i.signal_waddr, Part::kSignalWrite, true);
  }
  const Access& access() const { return a_; }

 private:
  void half(const AluHalf& h, Part part) {
    if (is_idle(generation_, h)) return;
    const OpInfo& op = info(h.op);
    if (op.operands > 0) a_.reads.registers.add(h.a.reg());
    if (op.operands > 1) a_.reads.registers.add(h.b.reg());
    if (part == Part::kMul && (i_.signals & kRotate) && i_.rotate == 0)
      a_.reads.registers.add(accumulator(5));
    condition(h.cond);
    state(op, h);
    if (h.flags == FlagWrite::kNone) return;
    if (info(h.flags).combination == FlagWriteInfo::Combination::kPush) {
      write(kFlagA | kFlagB, true);
      a_.reads.state |= kFlagA;  // B = A
    } else {
      a_.reads.state |= kFlagA;
      write(kFlagA, true);
    }
  }

  void condition(Cond cond) {
    if (cond != Cond::kNone) a_.reads.state |= info(cond).of_b ? kFlagB : kFlagA;
  }

  void state(const OpInfo& op, const AluHalf& h) {
    const auto has = [&](int trait) { return (op.traits & trait) != 0; };
    if (has(kReadsA)) a_.reads.state |= kFlagA;
    if (has(kReadsB)) a_.reads.state |= kFlagB;
    if (has(kReadsRtop)) a_.reads.state |= kRtop;
    if (has(kReadsMsf | kActiveLanes)) a_.reads.state |= kMsf;
    if (has(kReadsNnMode)) a_.reads.state |= kNnMode;
    if (h.op == Op::kLr) a_.reads.state |= kLink;
    if (has(kWritesRtop)) write(kRtop, true);
    const bool everywhere = h.cond == Cond::kNone;
    if (has(kWritesMsf)) write(kMsf, everywhere && h.pack == Pack::kNone);
    if (has(kWritesNnMode)) write(kNnMode, everywhere);
  }

  void write(int state, bool all) {
    a_.writes.state |= static_cast<uint16_t>(state);
    if (all) a_.destroys.state |= static_cast<uint16_t>(state);
  }
  void write(Register r, bool all) {
    a_.writes.registers.add(r);
    if (all) a_.destroys.registers.add(r);
  }

  void signals() {
    for (const SignalInfo& s : kSignalInfo) {
      if (!(i_.signals & s.signal)) continue;
      if (s.implicit_latency == 1) write(isa(generation_).implicit, true);
    }
    using Kind = Event::Kind;
    if (i_.signals & kLdtmu) a_.add({Kind::kLdtmu, Part::kSignal});
    if (i_.signals & kLdvary) a_.add({Kind::kLdvary, Part::kSignal});
    a_.ldvary = i_.signals & kLdvary;
    for (const Signal signal : {kLdtlb, kLdtlbu, kLdunifrf, kLdunifarf, kLdunif, kLdunifa, kWrtmuc}) {
      if (!(i_.signals & signal)) continue;
      const Kind kind = signal == kLdtlb || signal == kLdtlbu ? Kind::kLdtlb
                        : signal == kWrtmuc                   ? Kind::kWrtmuc
                                                              : Kind::kLoad;
      a_.add({kind, Part::kSignal, Effect::kNothing, stream_of(signal)});
      if (kind == Kind::kLdtlb) a_.reads.state |= kMsf;
    }
  }

  static Stream stream_of(Signal signal) {
    for (const SignalInfo& s : kSignalInfo)
      if (s.signal == signal) return s.stream;
    return Stream::kNone;
  }

  void port(const AluHalf& h, Part part) {
    if (is_idle(generation_, h) || !info(h.op).has_destination || h.op == Op::kSetmsf) return;
    const bool whole = h.cond == Cond::kNone && h.pack == Pack::kNone && !(info(h.op).traits & kActiveLanes);
    destination(h.magic, h.waddr, part, whole);
  }

  void destination(bool magic, uint8_t waddr, Part part, bool whole) {
    if (!magic) return write(Register{waddr}, whole);
    const WaddrInfo& w = waddr_info(generation_, waddr);
    if (w.effect == Effect::kNothing) return;
    if (starts_sfu(w.effect)) {
      a_.sfu = true;
      return;
    }
    if (w.reg != kNoRegister) return write(w.reg, whole);
    a_.add({Event::Kind::kWrite, part, w.effect, w.takes_uniform ? Stream::kMain : Stream::kNone});
    if (starts_lookup(w.effect)) a_.reads.state |= kMsf;
    if (w.effect == Effect::kBarrier) a_.barrier = true;
    if (w.effect == Effect::kTlb) {
      a_.reads.state |= kMsf;
      write(kMsf, false);  // a depth test narrows it
    }
  }

  const chip::Generation generation_;
  const Instruction& i_;
  Access a_;
};

Access of_branch(const Branch& b) {
  Access a;
  if (b.cond != BranchCond::kAlways && b.cond != BranchCond::kUndefined) {
    a.reads.state |= kFlagA;
    const bool lane0 = b.cond == BranchCond::kA0 || b.cond == BranchCond::kNa0;
    if (b.msfign != Msfign::kNone && !lane0) a.reads.state |= kMsf;
  }
  const auto reads = [&](BranchTarget from) {
    if (from == BranchTarget::kLink) a.reads.state |= kLink;
    if (from == BranchTarget::kRegister) a.reads.registers.add(b.raddr);
  };
  reads(b.target);
  if (b.set_link) a.writes.state |= kLink;
  if (!b.uniforms) return a;
  const auto from = static_cast<BranchTarget>(b.uniform_target);
  if (b.uniform_target <= static_cast<uint8_t>(BranchTarget::kRegister)) reads(from);
  if (from == BranchTarget::kAbsolute || from == BranchTarget::kRelative)
    a.add({Event::Kind::kBranch, Part::kBranch, Effect::kNothing, Stream::kMain});
  return a;
}

}  // namespace

bool is_idle(chip::Generation generation, const AluHalf& half) {
  return goes_nowhere(generation, half) && half.flags == FlagWrite::kNone &&
         !(info(half.op).traits & (kEffect | kUnknown));
}

Access access_of(chip::Generation generation, const Instruction& instruction) {
  if (instruction.is_branch) return of_branch(instruction.branch);
  return Collector(generation, instruction).access();
}

}  // namespace v3d::qpu::flow
