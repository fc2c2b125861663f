#include <utility>

#include "gpu/qpu/isa/instruction.h"
#include "gpu/qpu/isa/vc4_assembler.h"

namespace v3d::qpu {
namespace {

using Kind = Operand::Kind;

constexpr uint64_t put(uint64_t value, int low) { return value << low; }

// Where the operands of both ALUs found a place in the word.
struct Allocation {
  uint8_t add_a = 0, add_b = 0, mul_a = 0, mul_b = 0;  // addresses, or muxes
  uint8_t raddr_a = 0, raddr_b = 0;                    // with muxes
  uint8_t immediates = 0;
};

struct OpcodeChoice {
  uint8_t opcode, selector;
  Variant variant;
};

// The opcode and selector whose modifiers are those of the half. `sel_mask` and `sel_value` fix the bits of
// the selector that belong to an operand.
std::optional<OpcodeChoice> choose_opcode(chip::Generation generation, Alu alu, const AluHalf& half,
                                          Variant order, uint32_t sel_mask, uint32_t sel_value) {
  const Modifiers wanted = {half.a.unpack, half.b.unpack, half.pack};
  for (const Encoding& e : encodings()) {
    if (!(e.generations & set_of(generation)) || e.alu != alu || e.op != half.op) continue;
    if ((e.variant == Variant::kOrdered || e.variant == Variant::kSwapped) && e.variant != order) continue;
    for (uint32_t opcode = e.first; opcode <= e.last; ++opcode) {
      for (uint32_t selector = e.sel_first; selector <= e.sel_last; ++selector) {
        Modifiers modifiers;
        if ((selector & sel_mask) == sel_value && read_modifiers(e, opcode, selector, modifiers) &&
            modifiers == wanted)
          return OpcodeChoice{static_cast<uint8_t>(opcode), static_cast<uint8_t>(selector), e.variant};
      }
    }
  }
  return {};
}

// FloatsPack opcodes: the sort key that tells FADD from FADDNF and FMIN from FMAX (decode.cc).
uint32_t float_code(Unpack unpack) {
  for (uint32_t code = 0; code < 4; ++code)
    if (kFloatUnpacks[code] == unpack) return code;
  return 1;
}

/// The bits of an ALU that say what its operands are.
uint64_t put_operands(WordForm form, Alu alu, uint8_t a, uint64_t selector) {
  switch (form) {
    case WordForm::kMuxes:
      return put(selector, alu == Alu::kAdd ? 12 : 18);
    case WordForm::kAddresses:
      return alu == Alu::kAdd ? put(a, 6) | selector : put(a, 18) | put(selector, 12);
  }
  chip::no_such_generation();
}

std::optional<uint64_t> encode_half(chip::Generation generation, Alu alu, const AluHalf& half,
                                    const Allocation& where) {
  const OpInfo& op = info(half.op);
  uint8_t a = alu == Alu::kAdd ? where.add_a : where.mul_a;
  uint8_t b = alu == Alu::kAdd ? where.add_b : where.mul_b;
  uint32_t mask = 0, value = 0;
  uint32_t key_a, key_b;
  switch (isa(generation).form) {
    case WordForm::kMuxes:
      mask = (op.operands > 0 ? 7u : 0u) | (op.operands > 1 ? 0x38u : 0u);
      value = (a | b * 8u) & mask;
      key_a = float_code(half.a.unpack) * 8 + a;
      key_b = float_code(half.b.unpack) * 8 + b;
      break;
    case WordForm::kAddresses:
      mask = op.operands > 1 ? 63 : 0;
      value = b & mask;
      key_a = (half.a.kind == Kind::kImmediate) * 256u + float_code(half.a.unpack) * 64 + a;
      key_b = (half.b.kind == Kind::kImmediate) * 256u + float_code(half.b.unpack) * 64 + b;
  }
  const auto choice = choose_opcode(generation, alu, half,
                                    key_a > key_b ? Variant::kSwapped : Variant::kOrdered, mask, value);
  if (!choice) return {};

  bool magic = half.magic;
  uint64_t waddr = half.waddr;
  if (choice->variant == Variant::kIn && magic) return {};  // bit MA selects the segment
  if (choice->variant == Variant::kOut) {
    if (magic) return {};
    magic = true;
  }
  if (choice->variant >= Variant::kWaddr0) {
    magic = false;
    waddr = static_cast<uint64_t>(choice->variant) - static_cast<uint64_t>(Variant::kWaddr0);
  }

  const uint64_t operands = put_operands(isa(generation).form, alu, a, choice->selector);
  if (alu == Alu::kAdd) return put(choice->opcode, 24) | put(waddr, 32) | put(magic, 44) | operands;
  return put(choice->opcode, 58) | put(waddr, 38) | put(magic, 45) | operands;
}

std::optional<uint8_t> encode_signal(chip::Generation generation, uint16_t signals, uint8_t immediates) {
  const SignalCode* codes = signal_codes(generation);
  for (uint8_t i = 0; i < 32; ++i)
    if (codes[i].valid && codes[i].signals == signals && codes[i].immediates == immediates) return i;
  return {};
}

std::optional<uint64_t> encode_conditions(const Instruction& i) {
  const auto cond = [](Cond c) { return static_cast<uint64_t>(c) - 1; };
  const uint64_t add_flags = static_cast<uint64_t>(i.add.flags),
                 mul_flags = static_cast<uint64_t>(i.mul.flags);
  const bool add_cond = i.add.cond != Cond::kNone, mul_cond = i.mul.cond != Cond::kNone;
  // The single ALU orders its conditions ifa, ifb, ifna, ifnb everywhere.
  if ((add_flags && (mul_flags || add_cond)) || (mul_flags && mul_cond)) return {};
  if (mul_cond && (add_cond || add_flags >= 4))
    return 0x40 | cond(i.mul.cond) << 4 | (add_cond ? cond(i.add.cond) : add_flags);
  if (mul_cond) return 0x30 | cond(i.mul.cond) << 2 | add_flags;
  if (add_cond) return mul_flags < 4 ? std::optional(0x20 | cond(i.add.cond) << 2 | mul_flags) : std::nullopt;
  return mul_flags ? 0x10 | mul_flags : add_flags;
}

Allocation allocate_addresses(const Instruction& i) {
  Allocation where;
  const auto place = [&](const Operand& operand, uint8_t bit, uint8_t& raddr) {
    if (operand.kind == Kind::kNone) return;
    raddr = operand.index;
    if (operand.kind == Kind::kImmediate) where.immediates |= bit;
  };
  place(i.add.a, 1, where.add_a);
  place(i.add.b, 2, where.add_b);
  place(i.mul.a, 4, where.mul_a);
  place(i.mul.b, 8, where.mul_b);
  return where;
}

// With muxes: at most two registers, or one and an immediate, for all four operands. `first` chooses which of
// two registers goes to raddr_a; `b_mask` the operands (bits 0..3) that prefer mux 7 when both addresses
// agree.
std::optional<Allocation> allocate_muxes(const Instruction& i, bool exchange, int b_mask) {
  Allocation where;
  const Operand* operands[4] = {&i.add.a, &i.add.b, &i.mul.a, &i.mul.b};
  uint8_t* muxes[4] = {&where.add_a, &where.add_b, &where.mul_a, &where.mul_b};
  int registers[2] = {-1, -1};  // at raddr_a, raddr_b
  bool immediate = false;
  for (const Operand* o : operands) {
    if (o->kind == Kind::kImmediate) {
      if (immediate && registers[1] != o->index) return {};
      immediate = true;
      registers[1] = o->index;
    }
  }
  if (i.signals & kRotate) {
    if (immediate) return {};
    registers[1] = i.rotate;
  }
  const bool b_taken = immediate || (i.signals & kRotate);
  for (const Operand* o : operands) {
    if (o->kind != Kind::kRegister) continue;
    const int index = o->index;
    if (registers[0] == index || (!immediate && registers[1] == index)) continue;
    const int slot = exchange && !b_taken && registers[1] < 0 ? 1 : registers[0] < 0 ? 0 : 1;
    if (registers[slot] >= 0) return {};
    registers[slot] = index;
  }
  for (int k = 0; k < 4; ++k) {
    const Operand& o = *operands[k];
    if (o.kind == Kind::kNone) continue;
    if (o.kind == Kind::kAccumulator) {
      *muxes[k] = o.index;
    } else if (o.kind == Kind::kImmediate) {
      *muxes[k] = 7;
      where.immediates = 2;
    } else {
      bool use_b = registers[0] != o.index;
      if (!use_b && !b_taken && (b_mask >> k & 1) && (registers[1] < 0 || registers[1] == o.index)) {
        registers[1] = o.index;
        use_b = true;
      }
      *muxes[k] = use_b ? 7 : 6;
    }
  }
  if (registers[0] >= 0) where.raddr_a = static_cast<uint8_t>(registers[0]);
  if (registers[1] >= 0) where.raddr_b = static_cast<uint8_t>(registers[1]);
  return where;
}

std::optional<uint64_t> encode_alu(chip::Generation generation, const Instruction& i,
                                   const Allocation& where) {
  const auto signal = encode_signal(generation, i.signals, where.immediates);
  const auto add = encode_half(generation, Alu::kAdd, i.add, where);
  const auto mul = encode_half(generation, Alu::kMul, i.mul, where);
  if (!signal || !add || !mul) return {};
  uint64_t word = *add | *mul | put(*signal, 53);
  switch (isa(generation).form) {
    case WordForm::kMuxes:
      word |= put(where.raddr_a, 6) | where.raddr_b;
      break;
    case WordForm::kAddresses:
      break;  // those of the halves
  }
  const auto conditions = encode_conditions(i);
  if (!conditions) return {};
  if (i.signals & kSignalsWithAddress) {
    if (*conditions != 0) return {};
    return word | put(i.signal_magic, 52) | put(i.signal_waddr, 46);
  }
  return word | put(*conditions, 46);
}

std::optional<uint64_t> encode_with_muxes(chip::Generation generation, const Instruction& i) {
  for (int exchange = 0; exchange < 2; ++exchange) {
    for (int b_mask = 0; b_mask < 16; ++b_mask) {
      const auto where = allocate_muxes(i, exchange, b_mask);
      if (!where) continue;
      if (const auto word = encode_alu(generation, i, *where)) return word;
    }
  }
  return {};
}

std::optional<uint64_t> encode_places(chip::Generation generation, const Instruction& i) {
  switch (isa(generation).form) {
    case WordForm::kMuxes:
      return encode_with_muxes(generation, i);
    case WordForm::kAddresses:
      return encode_alu(generation, i, allocate_addresses(i));
  }
  chip::no_such_generation();
}

uint64_t encode_branch(const Branch& b) {
  return put(16, 53) | put((b.offset >> 3) & 0x1fffff, 35) | put(b.offset >> 24, 24) |
         put(static_cast<uint64_t>(b.cond), 32) | put(b.set_link, 23) |
         put(static_cast<uint64_t>(b.msfign), 21) | put(b.uniform_target, 15) | put(b.uniforms, 14) |
         put(static_cast<uint64_t>(b.target), 12) | put(b.raddr, 6);
}

// The registers of the generation, in range, and operands that the operation has.
bool well_formed(chip::Generation generation, const AluHalf& half) {
  const OpInfo& op = info(half.op);
  const auto fits = [&](const Operand& o, bool present) {
    if ((o.kind != Kind::kNone) != present) return false;
    if (o.kind == Kind::kAccumulator) return isa(generation).has_accumulators && o.index < 6;
    return o.index < (o.kind == Kind::kImmediate ? kSmallImmediates : 64);
  };
  return fits(half.a, op.operands > 0) && fits(half.b, op.operands > 1) && half.waddr < 64;
}

}  // namespace

std::optional<uint64_t> encode(chip::Generation generation, const Instruction& i) {
  if (!isa(generation).has_words) return {};
  if (i.is_branch) return encode_branch(i.branch);
  if (!well_formed(generation, i.add) || !well_formed(generation, i.mul)) return {};
  if (const auto word = encode_places(generation, i)) return word;
  switch (i.add.op) {
    case Op::kFadd:
    case Op::kFaddnf:
    case Op::kFmin:
    case Op::kFmax: {
      Instruction swapped = i;
      std::swap(swapped.add.a, swapped.add.b);
      return encode_places(generation, swapped);
    }
    default:
      return {};
  }
}

bool is_canonical(chip::Generation generation, uint64_t word) {
  if (!isa(generation).has_words) return vc4::is_canonical(word);
  Instruction i;
  if (!decode(generation, word, i) || encode(generation, i) != word) return false;
  if (!i.is_branch) return true;
  const Branch& b = i.branch;
  const auto from_register = static_cast<uint8_t>(BranchTarget::kRegister);
  const bool reads_register =
      b.target == BranchTarget::kRegister || (b.uniforms && b.uniform_target == from_register);
  const bool has_offset = b.target == BranchTarget::kAbsolute || b.target == BranchTarget::kRelative;
  return b.cond != BranchCond::kUndefined && b.uniform_target <= from_register &&
         (reads_register || b.raddr == 0) && (has_offset || b.offset == 0);
}

}  // namespace v3d::qpu
