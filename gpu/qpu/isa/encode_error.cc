#include "gpu/qpu/isa/encode_error.h"

#include <set>

#include "absl/strings/str_format.h"

namespace v3d::qpu {
namespace {

using Where = EncodeError::Where;

bool has_op(chip::Generation generation, Alu alu, Op op) {
  for (const Encoding& e : encodings())
    if ((e.generations & set_of(generation)) && e.alu == alu && e.op == op) return true;
  return false;
}

std::string conversions(const AluHalf& half) {
  std::string text;
  for (const char* name : {suffix(half.pack), suffix(half.a.unpack), suffix(half.b.unpack)}) {
    if (!*name) continue;
    if (!text.empty()) text += " with ";
    text += name;
  }
  return text;
}

std::string explain_half(chip::Generation generation, Alu alu, const AluHalf& half) {
  const char* unit = alu == Alu::kAdd ? "add" : "mul";
  const char* name = info(half.op).mnemonic;
  if (!has_op(generation, alu, half.op))
    return absl::StrFormat("the %s ALU of %s has no %s", unit, isa(generation).chip, name);
  if (!has_form(generation, alu, half))
    return absl::StrFormat("%s of the %s ALU of %s has no form %s", name, unit, isa(generation).chip,
                           conversions(half));
  if (half.cond != Cond::kNone && half.flags != FlagWrite::kNone)
    return "one operation is either conditional or writes flags";
  return {};
}

// Too many registers or immediates, or none if that is not it.
std::string explain_operands(chip::Generation generation, const Instruction& i) {
  std::set<int> registers, immediates;
  int count = 0;
  for (const Operand* o : {&i.add.a, &i.add.b, &i.mul.a, &i.mul.b}) {
    if (o->kind == Operand::Kind::kRegister) registers.insert(o->index);
    if (o->kind == Operand::Kind::kImmediate) {
      immediates.insert(o->index);
      ++count;
    }
  }
  switch (isa(generation).form) {
    case WordForm::kMuxes: {
      if (immediates.size() > 1) return "a word has one small immediate only";
      if ((i.signals & kRotate) && count) return "a rotation takes the place of small immediates";
      const size_t room = count || (i.signals & kRotate) ? 1 : 2;
      if (registers.size() > room)
        return absl::StrFormat("a word of %s reads at most two rf registers%s", isa(generation).chip,
                               room == 1 ? ", one beside a small immediate or a rotation" : "");
      if (count && i.signals && i.signals != kLdvary && i.signals != kLdtmu)
        return absl::StrFormat("on %s no signal but ldvary and ldtmu goes with a small immediate",
                               isa(generation).chip);
      return {};
    }
    case WordForm::kAddresses:
      if (count > 1)
        return absl::StrFormat("a word of %s has one small immediate only", isa(generation).chip);
      if (count && i.signals)
        return absl::StrFormat("on %s a small immediate takes the place of all signals",
                               isa(generation).chip);
      return {};
  }
  chip::no_such_generation();
}

bool is_signal_set(chip::Generation generation, uint16_t signals) {
  for (int n = 0; n < 32; ++n)
    if (signal_codes(generation)[n].valid && signal_codes(generation)[n].signals == signals) return true;
  return false;
}

std::string explain_conditions(const Instruction& i) {
  const bool any = i.add.cond != Cond::kNone || i.mul.cond != Cond::kNone ||
                   i.add.flags != FlagWrite::kNone || i.mul.flags != FlagWrite::kNone;
  if ((i.signals & kSignalsWithAddress) && any)
    return "the destination of a signal takes the place of conditions and flag writes";
  if (i.add.flags != FlagWrite::kNone && i.mul.flags != FlagWrite::kNone)
    return "only one of the two operations writes flags";
  if (i.add.cond != Cond::kNone && i.mul.flags > FlagWrite::kPushc)
    return "beside a condition of the add ALU, the mul ALU can push flags but not combine them";
  return {};
}

}  // namespace

bool has_form(chip::Generation generation, Alu alu, const AluHalf& half) {
  const Modifiers wanted = {half.a.unpack, half.b.unpack, half.pack};
  for (const Encoding& e : encodings()) {
    if (!(e.generations & set_of(generation)) || e.alu != alu || e.op != half.op) continue;
    for (uint32_t opcode = e.first; opcode <= e.last; ++opcode) {
      for (uint32_t selector = e.sel_first; selector <= e.sel_last; ++selector) {
        Modifiers modifiers;
        if (read_modifiers(e, opcode, selector, modifiers) && modifiers == wanted) return true;
      }
    }
  }
  return false;
}

EncodeError explain(chip::Generation generation, const Instruction& i) {
  if (std::string why = explain_half(generation, Alu::kAdd, i.add); !why.empty()) return {Where::kAdd, why};
  if (std::string why = explain_half(generation, Alu::kMul, i.mul); !why.empty()) return {Where::kMul, why};
  if (!is_signal_set(generation, i.signals))
    return {Where::kSignals,
            absl::StrFormat("%s has no word with these signals together", isa(generation).chip)};
  if (std::string why = explain_operands(generation, i); !why.empty()) return {Where::kWord, why};
  if (std::string why = explain_conditions(i); !why.empty()) return {Where::kWord, why};
  if (i.add.op == Op::kFmax || i.add.op == Op::kFaddnf)
    return {Where::kAdd, absl::StrFormat("%s of one operand with itself has no word; %s gives the same",
                                         info(i.add.op).mnemonic, i.add.op == Op::kFmax ? "fmin" : "fadd")};
  if (i.add.magic && info(i.add.op).has_destination && (info(i.add.op).traits & kVpm))
    return {Where::kAdd, absl::StrFormat("%s writes rf registers only", info(i.add.op).mnemonic)};
  return {Where::kWord, absl::StrFormat("%s has no word for this combination", isa(generation).chip)};
}

}  // namespace v3d::qpu
