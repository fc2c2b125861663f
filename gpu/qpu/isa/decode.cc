#include "gpu/qpu/isa/any_word.h"
#include "gpu/qpu/isa/instruction.h"
#include "gpu/qpu/isa/vc4.h"

namespace v3d::qpu {
namespace {

constexpr uint32_t field(uint64_t word, int high, int low) {
  return static_cast<uint32_t>(word >> low) & ((1u << (high - low + 1)) - 1);
}

// The operand fields of one ALU: 7.1 has a register address per operand, 4.2 a mux per operand.
struct OperandFields {
  uint8_t a, b;
  bool immediate_a, immediate_b;
};

// 4.2: mux 6 and 7 select the registers at raddr_a and raddr_b.
struct Raddrs {
  uint8_t a, b;
};

bool read_operand(chip::Generation generation, uint8_t code, bool immediate, Raddrs raddrs,
                  Operand& operand) {
  switch (isa(generation).form) {
    case WordForm::kMuxes:
      if (code < 6) {
        operand.kind = Operand::Kind::kAccumulator;
        operand.index = code;
        return true;
      }
      immediate = immediate && code == 7;
      code = code == 6 ? raddrs.a : raddrs.b;
      break;
    case WordForm::kAddresses:
      break;
  }
  operand.kind = immediate ? Operand::Kind::kImmediate : Operand::Kind::kRegister;
  operand.index = code;
  return !immediate || code < kSmallImmediates;
}

/// @param immediates  as SignalCode has them
void read_operand_fields(WordForm form, uint64_t word, uint8_t immediates, OperandFields& add,
                         OperandFields& mul) {
  const auto byte = [word](int high, int low) { return static_cast<uint8_t>(field(word, high, low)); };
  const auto is = [immediates](int bit) { return (immediates & bit) != 0; };
  switch (form) {
    case WordForm::kMuxes:
      add = {byte(14, 12), byte(17, 15), is(2), is(2)};
      mul = {byte(20, 18), byte(23, 21), is(2), is(2)};
      break;
    case WordForm::kAddresses:
      add = {byte(11, 6), byte(5, 0), is(1), is(2)};
      mul = {byte(23, 18), byte(17, 12), is(4), is(8)};
  }
}

// FADD and FADDNF, FMIN and FMAX share their opcodes; the order of the operands tells them apart.
bool is_swapped(chip::Generation generation, uint32_t opcode, const OperandFields& f) {
  const uint32_t unpack_a = (opcode >> 2) & 3, unpack_b = opcode & 3;
  switch (isa(generation).form) {
    case WordForm::kMuxes:
      return unpack_a * 8 + f.a > unpack_b * 8 + f.b;
    case WordForm::kAddresses:
      return f.immediate_a * 256u + unpack_a * 64 + f.a > f.immediate_b * 256u + unpack_b * 64 + f.b;
  }
  chip::no_such_generation();
}

uint32_t selector_of(WordForm form, const OperandFields& f) {
  switch (form) {
    case WordForm::kMuxes:
      return f.b * 8u + f.a;
    case WordForm::kAddresses:
      return f.b;
  }
  chip::no_such_generation();
}

bool matches(const Encoding& e, chip::Generation generation, uint32_t opcode, const OperandFields& f,
             bool magic, uint8_t waddr) {
  switch (e.variant) {
    case Variant::kAny:
      return true;
    case Variant::kOrdered:
      return !is_swapped(generation, opcode, f);
    case Variant::kSwapped:
      return is_swapped(generation, opcode, f);
    case Variant::kIn:
      return !magic;
    case Variant::kOut:
      return magic;
    case Variant::kWaddr0:
    case Variant::kWaddr1:
    case Variant::kWaddr2:
      return waddr == static_cast<int>(e.variant) - static_cast<int>(Variant::kWaddr0);
  }
  return false;
}

bool read_half(chip::Generation generation, Alu alu, uint32_t opcode, const OperandFields& f, Raddrs raddrs,
               bool magic, uint8_t waddr, AluHalf& half) {
  const uint32_t selector = selector_of(isa(generation).form, f);
  for (const Encoding& e : encodings_from(generation, alu, opcode)) {
    if (!(e.generations & set_of(generation)) || e.alu != alu || opcode < e.first || opcode > e.last ||
        selector < e.sel_first || selector > e.sel_last || !matches(e, generation, opcode, f, magic, waddr))
      continue;
    Modifiers modifiers;
    if (!read_modifiers(e, opcode, selector, modifiers)) continue;
    const OpInfo& op = info(e.op);
    half.op = e.op;
    half.pack = modifiers.pack;
    if (op.has_destination) {
      half.magic = magic && e.variant != Variant::kOut;
      half.waddr = waddr;
    }
    half.a.unpack = modifiers.a;
    half.b.unpack = modifiers.b;
    if (op.operands > 0 && !read_operand(generation, f.a, f.immediate_a, raddrs, half.a)) return false;
    return op.operands < 2 || read_operand(generation, f.b, f.immediate_b, raddrs, half.b);
  }
  return false;
}

// The seven condition bits (qpu.md 1.4).
bool read_conditions(uint32_t bits, Instruction& i) {
  const uint32_t low = bits & 15, code = bits & 3;
  if (bits & 0x40) {
    static constexpr Cond kConds[4] = {Cond::kIfa, Cond::kIfb, Cond::kIfna, Cond::kIfnb};
    i.mul.cond = kConds[(bits >> 4) & 3];
    if (low < 4)
      i.add.cond = kConds[code];
    else
      i.add.flags = static_cast<FlagWrite>(low);
    return true;
  }
  static constexpr Cond kConds[4] = {Cond::kIfa, Cond::kIfb, Cond::kIfna, Cond::kIfnb};
  switch (bits >> 4) {
    case 0:
      i.add.flags = static_cast<FlagWrite>(low);
      return true;
    case 1:
      i.mul.flags = static_cast<FlagWrite>(low);
      return low != 0;
    case 2:
      i.add.cond = kConds[low >> 2];
      i.mul.flags = static_cast<FlagWrite>(code);
      return true;
    default:
      i.mul.cond = kConds[low >> 2];
      i.add.flags = static_cast<FlagWrite>(code);
      return true;
  }
}

bool decode_branch(uint64_t word, Instruction& i) {
  i.is_branch = true;
  Branch& b = i.branch;
  b.cond = static_cast<BranchCond>(field(word, 34, 32));
  if (field(word, 22, 21) == 3) return false;
  b.msfign = static_cast<Msfign>(field(word, 22, 21));
  b.target = static_cast<BranchTarget>(field(word, 13, 12));
  b.set_link = field(word, 23, 23);
  b.uniforms = field(word, 14, 14);
  if (b.uniforms) b.uniform_target = static_cast<uint8_t>(field(word, 17, 15));
  b.raddr = static_cast<uint8_t>(field(word, 11, 6));
  b.offset = field(word, 55, 35) << 3 | field(word, 31, 24) << 24;
  return true;
}

}  // namespace

bool decode(chip::Generation generation, uint64_t word, Instruction& i) {
  i = {};
  if (!isa(generation).has_words) return false;
  const uint32_t op_mul = field(word, 63, 58), sig = field(word, 57, 53);
  if (op_mul == 0) return (sig & 24) == 16 && decode_branch(word, i);

  const SignalCode& signal = signal_codes(generation)[sig];
  if (!signal.valid) return false;
  i.signals = signal.signals;

  const Raddrs raddrs = {static_cast<uint8_t>(field(word, 11, 6)), static_cast<uint8_t>(field(word, 5, 0))};
  OperandFields add, mul;
  read_operand_fields(isa(generation).form, word, signal.immediates, add, mul);
  if (isa(generation).form == WordForm::kMuxes && (i.signals & kRotate)) i.rotate = raddrs.b;
  if (i.rotate >= 32) return false;
  if (!read_half(generation, Alu::kAdd, field(word, 31, 24), add, raddrs, field(word, 44, 44),
                 static_cast<uint8_t>(field(word, 37, 32)), i.add) ||
      !read_half(generation, Alu::kMul, op_mul, mul, raddrs, field(word, 45, 45),
                 static_cast<uint8_t>(field(word, 43, 38)), i.mul))
    return false;

  const uint32_t cond = field(word, 52, 46);
  if (i.signals & kSignalsWithAddress) {
    i.signal_magic = cond & 64;
    i.signal_waddr = cond & 63;
    return true;
  }
  return read_conditions(cond, i);
}

bool is_instruction(chip::Generation generation, uint64_t word) {
  Instruction i;
  return isa(generation).has_words ? decode(generation, word, i) : vc4::flaw(vc4::decode(word)) == nullptr;
}

}  // namespace v3d::qpu
