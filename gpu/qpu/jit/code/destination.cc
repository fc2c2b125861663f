#include "gpu/qpu/jit/code/destination.h"

#include "gpu/qpu/flow/access.h"

namespace v3d::qpu::jit {

Destination destination_of(chip::Generation generation, bool magic, uint8_t waddr) {
  using enum Destination::Target;
  if (!magic) return {kRegister, Register{waddr}};
  const WaddrInfo& w = waddr_info(generation, waddr);
  switch (w.effect) {
    case Effect::kNothing:
      return {};
    case Effect::kRegister:
      return {kRegister, w.reg};
    case Effect::kQuads:
      return {kQuad, w.reg};
    case Effect::kLane0:
      return {kRep, w.reg};
    default:
      return {kPort, kNoRegister, w.effect, w.takes_uniform, waddr};
  }
}

Destination destination_of(chip::Generation generation, const AluHalf& half) {
  if (half.op == Op::kSetmsf) return {Destination::Target::kMsf};
  return info(half.op).has_destination ? destination_of(generation, half.magic, half.waddr) : Destination();
}

bool writes_by_call(const Destination& to) {
  if (to.target != Destination::Target::kPort) return false;
  switch (to.effect) {
    case Effect::kUnifa:
    case Effect::kTmuData:
    case Effect::kTmuConfig:
    case Effect::kGeneral:  // its rare calls keep everything
      return false;
    default:
      return !starts_sfu(to.effect) && (to.effect < Effect::kTmuT || to.effect > Effect::kTmuOff);
  }
}

std::optional<Rotation> rotation_of(const Instruction& i, const Operand& operand) {
  const Register reg = operand.reg();
  if (!(i.signals & kRotate) || reg == kNoRegister) return {};
  const bool in_quads = reg < kFirstAccumulator;
  if (i.rotate == 0) return Rotation{{}, in_quads};
  const uint32_t turn = (0 - small_immediate(i.rotate)) & (in_quads ? 3 : 15);
  return turn == 0 ? std::nullopt : std::optional(Rotation{turn, in_quads});
}

uint8_t quad_order(uint32_t turn) {
  uint32_t order = 0;
  for (uint32_t i = 0; i < 4; ++i) order |= ((i + turn) & 3) << (2 * i);
  return static_cast<uint8_t>(order);
}

bool is_plain_move(const AluHalf& half) {
  return (half.op == Op::kMov || half.op == Op::kFmov) && half.a.unpack == Unpack::kNone;
}
bool reads(const AluHalf& half, Register r) {
  const int operands = info(half.op).operands;
  return (operands > 0 && half.a.reg() == r) || (operands > 1 && half.b.reg() == r);
}
bool looks_at_operands(const AluHalf& half) {
  if (half.flags == FlagWrite::kNone) return false;
  const OpInfo& op = info(half.op);
  return is_compare(op.flags) || (info(half.flags).flag == Flag::kC && op.carry != Carry::kNone);
}

}  // namespace v3d::qpu::jit
