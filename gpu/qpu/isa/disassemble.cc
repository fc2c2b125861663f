#include <cstdio>

#include "gpu/qpu/isa/instruction.h"
#include "gpu/qpu/isa/vc4.h"

namespace v3d::qpu {
namespace {

// Mesa prints these differently, because its decoder or name table is wrong (qpu.md 1.10); the test against
// Mesa excludes exactly these classes:
//  - 7.1 FROUND, FTRUNC, FFLOOR, FCEIL, FDX, FDY: no unpack;
//  - 7.1 mul FMOV: .sat as .abs, .nsat as none, .max0 as .l;
//  - 7.1 VFMIN, VFMUL, and MOV with ul, uh, il, ih: not printable;
//  - 7.1 VFMAX: not decoded;
//  - ITOF, UTOF, FXCD, FYCD: no pack;
//  - 4.2 IID: "vdwwt";
//  - magic address 44: "tmuscm";
//  - ucb, rot and the "l" of branches that set the link register: not printed.

constexpr size_t kMulColumn = 30, kSignalColumn = 60;

void pad(std::string& text, size_t column) {
  if (text.size() < column) text.append(column - text.size(), ' ');
}

template <typename... Args>
void append(std::string& text, const char* format, Args... args) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), format, args...);
  text += buffer;
}

void append_operand(std::string& text, const Operand& o) {
  switch (o.kind) {
    case Operand::Kind::kNone:
      break;
    case Operand::Kind::kRegister:
      append(text, "rf%d", o.index);
      break;
    case Operand::Kind::kAccumulator:
      append(text, "r%d", o.index);
      break;
    case Operand::Kind::kImmediate:
      if (o.index < 32)
        append(text, "%d", static_cast<int32_t>(small_immediate(o.index)));
      else
        append(text, "0x%08x", small_immediate(o.index));
      break;
  }
  text += suffix(o.unpack);
}

void append_destination(std::string& text, chip::Generation generation, bool magic, uint8_t waddr,
                        const char* unknown) {
  if (!magic)
    append(text, "rf%d", waddr);
  else if (const char* name = waddr_info(generation, waddr).name)
    text += name;
  else
    append(text, unknown, waddr);
}

void append_half(std::string& text, chip::Generation generation, const AluHalf& half, bool is_mul) {
  const OpInfo& op = info(half.op);
  text += op.mnemonic;
  text += suffix(half.cond);
  text += suffix(half.flags);
  if (is_mul && half.op == Op::kNop) return;
  text += ' ';
  if (op.has_destination) {
    append_destination(text, generation, half.magic, half.waddr, "waddr UNKNOWN %d");
    text += suffix(half.pack);
  }
  if (op.operands > 0) {
    if (op.has_destination) text += ", ";
    append_operand(text, half.a);
  }
  if (op.operands > 1) {
    text += ", ";
    append_operand(text, half.b);
  }
}

void append_signals(std::string& text, chip::Generation generation, const Instruction& i) {
  for (const SignalInfo& s : kSignalInfo) {
    if (!(i.signals & s.signal)) continue;
    pad(text, kSignalColumn);
    text += "; ";
    text += s.name;
    if (s.signal == kRotate && i.rotate != 0)
      append(text, ".%d", static_cast<int32_t>(small_immediate(i.rotate)));
    if (!(s.signal & kSignalsWithAddress)) continue;
    text += '.';
    append_destination(text, generation, i.signal_magic, i.signal_waddr, "UNKNOWN%d");
  }
}

std::string disassemble_branch(const Branch& b) {
  static constexpr const char* kMsfigns[] = {"", "p", "q"};
  std::string text = b.uniforms ? "bu" : "b";
  if (b.set_link) text += 'l';
  if (*branch_cond_name(b.cond)) text += '.';
  text += branch_cond_name(b.cond);
  text += kMsfigns[static_cast<int>(b.msfign)];
  text += "  ";
  switch (b.target) {
    case BranchTarget::kAbsolute:
      append(text, "zero_addr+0x%08x", b.offset);
      break;
    case BranchTarget::kRelative:
      append(text, "%d", static_cast<int32_t>(b.offset));
      break;
    case BranchTarget::kLink:
      text += "lri";
      break;
    case BranchTarget::kRegister:
      append(text, "rf%d", b.raddr);
      break;
  }
  if (!b.uniforms) return text;
  switch (b.uniform_target) {
    case static_cast<int>(BranchTarget::kAbsolute):
      text += ", a:unif";
      break;
    case static_cast<int>(BranchTarget::kRelative):
      text += ", r:unif";
      break;
    case static_cast<int>(BranchTarget::kLink):
      text += ", lri";
      break;
    case static_cast<int>(BranchTarget::kRegister):
      append(text, ", rf%d", b.raddr);
      break;
    default:
      break;
  }
  return text;
}

}  // namespace

const char* branch_cond_name(BranchCond cond) {
  static constexpr const char* kNames[] = {"", "", "a0", "na0", "alla", "anyna", "anya", "allna"};
  return kNames[static_cast<int>(cond)];
}

std::string disassemble(chip::Generation generation, const Instruction& i) {
  if (i.is_branch) return disassemble_branch(i.branch);
  std::string text;
  append_half(text, generation, i.add, false);
  pad(text, kMulColumn);
  text += "; ";
  append_half(text, generation, i.mul, true);
  append_signals(text, generation, i);
  return text;
}

std::string disassemble(chip::Generation generation, uint64_t word) {
  if (!isa(generation).has_words) return vc4::disassemble(word);
  Instruction i;
  return decode(generation, word, i) ? disassemble(generation, i) : "invalid instruction";
}

}  // namespace v3d::qpu
