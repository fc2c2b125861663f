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

using Target = StepTarget::Target;

Lanes rep_lanes(Thread&, Lanes a, Lanes, LaneMask) { return splat(uint32_t{a[0]}); }
Lanes quad_lanes(Thread&, Lanes a, Lanes, LaneMask) { return replicate_quads(a); }

Source make_source(const Operand& o) {
  switch (o.kind) {
    case Operand::Kind::kNone:
      return {register_offset(0), 0};
    case Operand::Kind::kRegister:
    case Operand::Kind::kAccumulator:
      return {register_offset(o.reg()), 0};
    case Operand::Kind::kImmediate:
      return {static_cast<uint16_t>(o.index * sizeof(Lanes)), 1};
  }
  return {};
}

StepTarget find_place(chip::Generation generation, bool magic, uint8_t waddr) {
  using enum StepTarget::Target;
  if (!magic) return {register_offset(waddr), kRegister, {}};
  const WaddrInfo& w = waddr_info(generation, waddr);
  switch (w.effect) {
    case Effect::kNothing:
      return {};
    case Effect::kRegister:
      return {register_offset(w.reg), kRegister, {}};
    case Effect::kQuads:
      return {register_offset(w.reg), kQuad, {}};
    case Effect::kLane0:
      return {register_offset(w.reg), kRep, {}};
    default:
      return {0, kPort, {w.effect, w.takes_uniform, waddr}};
  }
}

Condition make_condition(Cond cond) {
  if (cond == Cond::kNone) return {kAllLanes, 0, 0};
  return {0, info(cond).inverted ? kAllLanes : LaneMask{0}, info(cond).of_b};
}

FlagUpdate make_flag_update(const AluHalf& in) {
  using enum FlagWriteInfo::Combination;
  const FlagFn x = find_flag(in.op, in.flags, in.a.unpack, in.b.unpack);
  switch (info(in.flags).combination) {
    case kNone:
      return {};
    case kPush:
      return {x, 0, 0, kAllLanes};
    case kAnd:
      return {x, 0, 0, 0};
    case kAndNot:
      return {x, 0, kAllLanes, 0};
    case kNor:
      return {x, kAllLanes, kAllLanes, 0};
    case kNorNot:
      return {x, kAllLanes, 0, 0};
  }
  return {};
}

Half make_half(chip::Generation generation, const AluHalf& in) {
  const OpInfo& op = info(in.op);
  Half half;
  if (in.op == Op::kSetmsf)
    half.to = {offsetof(Thread, msf), Target::kRegister, {}};
  else if (op.has_destination)
    half.to = find_place(generation, in.magic, in.waddr);
  const bool effect = op.traits & (kEffect | kUnknown);
  if (half.to.target == Target::kNone && in.flags == FlagWrite::kNone && !effect) return half;

  half.alu = find_alu(in.op, in.a.unpack, in.b.unpack);
  half.a = make_source(in.a);
  half.b = make_source(in.b);
  half.pack = in.pack;
  half.active_lanes = op.traits & kActiveLanes;
  half.condition = make_condition(in.cond);
  half.flags = make_flag_update(in);

  const bool move = (in.op == Op::kMov || in.op == Op::kFmov) && in.a.unpack == Unpack::kNone;
  if (move && (half.to.target == Target::kQuad || half.to.target == Target::kRep) && in.pack == Pack::kNone &&
      in.flags == FlagWrite::kNone) {
    half.alu = half.to.target == Target::kRep ? rep_lanes : quad_lanes;
    half.to.target = Target::kRegister;
  }
  return half;
}

// Writes one whole register and nothing else.
bool is_plain(const Half& half) {
  return half.to.target == Target::kRegister && half.condition.always && !half.flags.x &&
         half.pack == Pack::kNone && !half.active_lanes;
}

bool writes_register(const Half& half) {
  return half.alu && half.to.target != Target::kNone && half.to.target != Target::kPort;
}

// Whether `reader`, executed after `writer`, would see what that wrote.
bool clashes(const Half& writer, const Half& reader) {
  if (!reader.alu || !writes_register(writer)) return false;
  return (!reader.a.immediate && reader.a.offset == writer.to.offset) ||
         (!reader.b.immediate && reader.b.offset == writer.to.offset) ||
         (writes_register(reader) && reader.to.offset == writer.to.offset);
}

bool make_load(chip::Generation generation, const Instruction& i, Step& step) {
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
  const StepTarget& to = step.signal_to;
  const bool implicit = i.signals & kSignalsImplicit;
  step.load_offset = implicit ? register_offset(isa(generation).implicit) : to.offset;
  return implicit || to.target == Target::kRegister;
}

}  // namespace

Step make_step(chip::Generation generation, const Instruction& i) {
  Step step;
  if (i.is_branch) {
    step.kind = Step::Kind::kBranch;
    return step;
  }
  step.first = make_half(generation, i.add);
  step.second = make_half(generation, i.mul);
  step.signals = i.signals;
  if (i.signals & kSignalsWithAddress)
    step.signal_to = find_place(generation, i.signal_magic, i.signal_waddr);
  step.rotate = i.rotate;
  step.setmsf = i.add.op == Op::kSetmsf;
  step.kind = Step::Kind::kGeneral;

  const bool ports = step.first.to.target == Target::kPort || step.second.to.target == Target::kPort;
  if (step.setmsf || ports || !make_load(generation, i, step)) return step;
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
