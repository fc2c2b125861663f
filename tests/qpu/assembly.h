/// This is a small way to write QPU programs in tests and benchmarks: instructions as structs, words by the
/// encoder.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "gpu/chip/generation.h"
#include "gpu/qpu/isa/instruction.h"

namespace v3d::qpu::assembly {

inline Operand rf(int n, Unpack unpack = Unpack::kNone) {
  return {Operand::Kind::kRegister, static_cast<uint8_t>(n), unpack};
}
inline Operand acc(int n, Unpack unpack = Unpack::kNone) {
  return {Operand::Kind::kAccumulator, static_cast<uint8_t>(n), unpack};
}
/// -16..15.
inline Operand imm(int n, Unpack unpack = Unpack::kNone) {
  return {Operand::Kind::kImmediate, static_cast<uint8_t>(n < 0 ? n + 32 : n), unpack};
}

/// Destination: a register or a magic address.
struct Dst {
  uint8_t waddr;
  bool magic;
};
inline Dst to(int n) { return {static_cast<uint8_t>(n), false}; }
inline Dst to(Waddr waddr) { return {waddr, true}; }

inline AluHalf half(Op op, Dst dst = {kWaddrNop, true}, Operand a = {}, Operand b = {}) {
  AluHalf h;
  h.op = op;
  h.magic = dst.magic;
  h.waddr = dst.waddr;
  h.a = a;
  h.b = b;
  return h;
}

/// One instruction: `I().add(Op::kFadd, to(1), rf(2), rf(3)).mul(...).sig(kThrsw)`.
struct I : Instruction {
  I& add(Op op, Dst dst = {kWaddrNop, true}, Operand a = {}, Operand b = {}) {
    Instruction::add = half(op, dst, a, b);
    return *this;
  }
  I& mul(Op op, Dst dst = {kWaddrNop, true}, Operand a = {}, Operand b = {}) {
    Instruction::mul = half(op, dst, a, b);
    return *this;
  }
  I& add_if(Cond cond) { return Instruction::add.cond = cond, *this; }
  I& mul_if(Cond cond) { return Instruction::mul.cond = cond, *this; }
  I& add_flags(FlagWrite write) { return Instruction::add.flags = write, *this; }
  I& mul_flags(FlagWrite write) { return Instruction::mul.flags = write, *this; }
  I& add_pack(Pack pack) { return Instruction::add.pack = pack, *this; }
  I& mul_pack(Pack pack) { return Instruction::mul.pack = pack, *this; }
  I& sig(int bits) { return signals = static_cast<uint16_t>(bits), *this; }
  I& sig(int bits, Dst dst) {
    signal_magic = dst.magic;
    signal_waddr = dst.waddr;
    return sig(bits);
  }
};

inline Instruction jump(int distance_in_instructions, BranchCond cond = BranchCond::kAlways,
                        Msfign msfign = Msfign::kNone) {
  Instruction i;
  i.is_branch = true;
  i.branch.cond = cond;
  i.branch.msfign = msfign;
  i.branch.offset = static_cast<uint32_t>(distance_in_instructions * 8);
  return i;
}

inline Instruction nop() { return {}; }
inline Instruction thrsw() { return I().sig(kThrsw); }

/// The words of a program. Aborts on an instruction that has no word: a fault of the test.
inline std::vector<uint64_t> assemble(chip::Generation generation, const std::vector<Instruction>& program) {
  std::vector<uint64_t> words;
  for (const Instruction& i : program) {
    const auto word = encode(generation, i);
    if (!word) {
      std::fprintf(stderr, "no word for: %s\n", disassemble(generation, i).c_str());
      std::abort();
    }
    words.push_back(*word);
  }
  return words;
}

/// Program end for a thread in its final section.
inline void append_end(std::vector<Instruction>& program) {
  program.push_back(thrsw());
  program.push_back(nop());
  program.push_back(nop());
}

}  // namespace v3d::qpu::assembly
