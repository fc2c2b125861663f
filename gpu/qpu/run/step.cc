#include "gpu/qpu/run/step.h"

#include <utility>

namespace v3d::qpu {

#define V3D_ROW(n)                                                                                       \
  splat(small_immediate(n)), splat(small_immediate((n) + 1)), splat(small_immediate((n) + 2)),           \
      splat(small_immediate((n) + 3)), splat(small_immediate((n) + 4)), splat(small_immediate((n) + 5)), \
      splat(small_immediate((n) + 6)), splat(small_immediate((n) + 7))
const Lanes kImmediateLanes[kSmallImmediates] = {V3D_ROW(0),  V3D_ROW(8),  V3D_ROW(16),
                                                 V3D_ROW(24), V3D_ROW(32), V3D_ROW(40)};
#undef V3D_ROW

namespace {

Lanes rep_lanes(Thread&, Lanes a, Lanes, LaneMask) { return splat(uint32_t{a[0]}); }
Lanes quad_lanes(Thread&, Lanes a, Lanes, LaneMask) { return replicate_quads(a); }

Source make_source(const Operand& o) {
  switch (o.kind) {
    case Operand::Kind::kNone:
      return {rf_offset(0), 0};
    case Operand::Kind::kRegister:
      return {rf_offset(o.index), 0};
    case Operand::Kind::kAccumulator:
      return {acc_offset(o.index), 0};
    case Operand::Kind::kImmediate:
      return {static_cast<uint16_t>(o.index * sizeof(Lanes)), 1};
  }
  return {};
}

// Where a write goes. Registers behind magic addresses: 4.2 has r0..r5, 7.1 writes rf0 as quad and rep.
struct Place {
  Half::Target target;
  uint16_t offset;
};
Place find_place(int version, bool magic, uint8_t waddr) {
  using enum Half::Target;
  if (!magic) return {kRegister, rf_offset(waddr)};
  if (waddr == kWaddrNop) return {kNone, 0};
  const uint16_t replicated = version == 42 ? acc_offset(5) : rf_offset(0);
  if (waddr == kWaddrR5) return {kQuad, replicated};
  if (waddr == kWaddrRep) return {kRep, replicated};
  if (version == 42 && waddr < kWaddrR5) return {kRegister, acc_offset(waddr)};
  return {kPort, 0};
}

Condition make_condition(Cond cond) {
  switch (cond) {
    case Cond::kNone:
      return {kAllLanes, 0, 0};
    case Cond::kIfa:
      return {0, 0, 0};
    case Cond::kIfb:
      return {0, 0, 1};
    case Cond::kIfna:
      return {0, kAllLanes, 0};
    case Cond::kIfnb:
      return {0, kAllLanes, 1};
  }
  return {};
}

// Push: A = x. andx: A & x. andnx: A & !x. norx: !(A | x). nornx: !(A | !x).
FlagUpdate make_flag_update(const AluHalf& in) {
  const FlagFn x = find_flag(in.op, in.flags, in.a.unpack, in.b.unpack);
  switch (in.flags) {
    case FlagWrite::kNone:
      return {};
    case FlagWrite::kPushz:
    case FlagWrite::kPushn:
    case FlagWrite::kPushc:
      return {x, 0, 0, kAllLanes};
    case FlagWrite::kAndz:
    case FlagWrite::kAndn:
    case FlagWrite::kAndc:
      return {x, 0, 0, 0};
    case FlagWrite::kAndnz:
    case FlagWrite::kAndnn:
    case FlagWrite::kAndnc:
      return {x, 0, kAllLanes, 0};
    case FlagWrite::kNorz:
    case FlagWrite::kNorn:
    case FlagWrite::kNorc:
      return {x, kAllLanes, kAllLanes, 0};
    case FlagWrite::kNornz:
    case FlagWrite::kNornn:
    case FlagWrite::kNornc:
      return {x, kAllLanes, 0, 0};
  }
  return {};
}

Half make_half(int version, const AluHalf& in) {
  const OpInfo& op = info(in.op);
  Half half;
  const Place place = find_place(version, in.magic, in.waddr);
  half.target = op.has_destination ? place.target : Half::Target::kNone;
  half.offset = place.offset;
  half.waddr = in.waddr;
  if (in.op == Op::kSetmsf) {
    half.target = Half::Target::kRegister;
    half.offset = offsetof(Thread, msf);
  }
  const bool effect = op.traits & (kEffect | kUnknown);
  if (half.target == Half::Target::kNone && in.flags == FlagWrite::kNone && !effect) return half;

  half.alu = find_alu(in.op, in.a.unpack, in.b.unpack);
  half.a = make_source(in.a);
  half.b = make_source(in.b);
  half.pack = in.pack;
  half.active_lanes = op.traits & kActiveLanes;
  half.condition = make_condition(in.cond);
  half.flags = make_flag_update(in);

  const bool move = (in.op == Op::kMov || in.op == Op::kFmov) && in.a.unpack == Unpack::kNone;
  if (move && (half.target == Half::Target::kQuad || half.target == Half::Target::kRep) &&
      in.pack == Pack::kNone && in.flags == FlagWrite::kNone) {
    half.alu = half.target == Half::Target::kRep ? rep_lanes : quad_lanes;
    half.target = Half::Target::kRegister;
  }
  return half;
}

// Writes one whole register and nothing else.
bool is_plain(const Half& half) {
  return half.target == Half::Target::kRegister && half.condition.always && !half.flags.x &&
         half.pack == Pack::kNone && !half.active_lanes;
}

bool writes_register(const Half& half) {
  return half.alu && half.target != Half::Target::kNone && half.target != Half::Target::kPort;
}

// Whether `reader`, executed after `writer`, would see what that wrote.
bool clashes(const Half& writer, const Half& reader) {
  if (!reader.alu || !writes_register(writer)) return false;
  return (!reader.a.immediate && reader.a.offset == writer.offset) ||
         (!reader.b.immediate && reader.b.offset == writer.offset) ||
         (writes_register(reader) && reader.offset == writer.offset);
}

bool make_load(int version, const Instruction& i, Step& step) {
  constexpr uint16_t kImplicit = kLdunif | kLdunifa;
  switch (i.signals) {
    case 0:
      step.load = Step::Load::kNone;
      return true;
    case kLdunif:
    case kLdunifrf:
      step.load = Step::Load::kUniform;
      break;
    case kLdunifa:
    case kLdunifarf:
      step.load = Step::Load::kUnifa;
      break;
    case kLdtmu:
      step.load = Step::Load::kTmu;
      break;
    case kLdvary:
      step.load = Step::Load::kVary;
      break;
    default:
      return false;
  }
  if (i.signals & kImplicit) {
    step.load_offset = version == 42 ? acc_offset(5) : rf_offset(0);
    return true;
  }
  const Place place = find_place(version, i.signal_magic, i.signal_waddr);
  step.load_offset = place.offset;
  return place.target == Half::Target::kRegister;
}

}  // namespace

Step make_step(int version, const Instruction& i) {
  Step step;
  if (i.is_branch) {
    step.kind = Step::Kind::kBranch;
    return step;
  }
  step.first = make_half(version, i.add);
  step.second = make_half(version, i.mul);
  step.signals = i.signals;
  step.signal_waddr = i.signal_waddr;
  step.signal_magic = i.signal_magic;
  step.rotate = i.rotate;
  step.setmsf = i.add.op == Op::kSetmsf;
  step.kind = Step::Kind::kGeneral;

  const bool ports = step.first.target == Half::Target::kPort || step.second.target == Half::Target::kPort;
  if (step.setmsf || ports || !make_load(version, i, step)) return step;
  if (clashes(step.first, step.second)) {
    if (clashes(step.second, step.first)) return step;
    std::swap(step.first, step.second);
  }
  if (!step.first.alu) std::swap(step.first, step.second);
  const bool plain = (!step.first.alu || is_plain(step.first)) && (!step.second.alu || is_plain(step.second));
  step.kind = plain ? Step::Kind::kPlain : Step::Kind::kMasked;
  return step;
}

}  // namespace v3d::qpu
