/// An Instruction is one QPU instruction in neutral form. The way between it, the 64-bit word and
/// text is here, too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gpu/chip/generation.h"
#include "gpu/qpu/isa/isa.h"

namespace v3d::qpu {

struct Operand {
  enum class Kind : uint8_t { kNone, kRegister, kAccumulator, kImmediate };
  Kind kind = Kind::kNone;
  uint8_t index = 0;  ///< rf 0..63, r 0..5, or code 0..47 of a small immediate
  Unpack unpack = Unpack::kNone;
  bool operator==(const Operand&) const = default;
  /// kNoRegister for an immediate and no operand.
  Register reg() const {
    if (kind == Kind::kRegister) return index;
    return kind == Kind::kAccumulator ? accumulator(index) : kNoRegister;
  }
};

/// What one of the two ALUs does. Operations without destination keep the default one.
struct AluHalf {
  Op op = Op::kNop;
  Cond cond = Cond::kNone;
  FlagWrite flags = FlagWrite::kNone;
  bool magic = true;  ///< waddr is a Waddr, otherwise a register
  uint8_t waddr = kWaddrNop;
  Pack pack = Pack::kNone;
  Operand a, b;
  bool operator==(const AluHalf&) const = default;
};

enum class BranchCond : uint8_t { kAlways, kUndefined, kA0, kNa0, kAlla, kAnyna, kAnya, kAllna };
/// "alla", or "" for kAlways and kUndefined.
const char* branch_cond_name(BranchCond cond);
/// Lanes that a branch condition looks at: all, those with MSF != 0, or the quads with any such lane.
enum class Msfign : uint8_t { kNone, kP, kQ };
enum class BranchTarget : uint8_t { kAbsolute, kRelative, kLink, kRegister };

struct Branch {
  BranchCond cond = BranchCond::kAlways;
  Msfign msfign = Msfign::kNone;
  BranchTarget target = BranchTarget::kRelative;
  bool set_link = false;
  bool uniforms = false;       ///< the uniform stream moves too
  uint8_t uniform_target = 0;  ///< a BranchTarget; 4..7 are undefined
  uint8_t raddr = 0;           ///< register of kRegister
  uint32_t offset = 0;         ///< address, or signed distance from the instruction after the delay slots
  bool operator==(const Branch&) const = default;
};

struct Instruction {
  bool is_branch = false;
  AluHalf add, mul;
  uint16_t signals = 0;
  bool signal_magic = false;  ///< destination of the signal in kSignalsWithAddress, if there is one
  uint8_t signal_waddr = 0;
  uint8_t rotate = 0;  ///< code of the count, with kRotate
  Branch branch;
  bool operator==(const Instruction&) const = default;
};

/// @return false if the word is no instruction: reserved opcode, signal, condition or small immediate
bool decode(chip::Generation generation, uint64_t word, Instruction& instruction);

/// The inverse of decode: decode(encode(i)) == i, but for FMIN/FMAX and FADD/FADDNF, whose operands are
/// exchanged when only the other order says what is wanted. Empty if there is no such word.
std::optional<uint64_t> encode(chip::Generation generation, const Instruction& instruction);

/// Whether the word of its text is the word itself (assembler.h): all fields without meaning are 0. False for
/// words that are no instruction.
bool is_canonical(chip::Generation generation, uint64_t word);

/// Text as of Mesa's v3d_qpu_disasm; the differences stand in disassemble.cc.
std::string disassemble(chip::Generation generation, const Instruction& instruction);
/// "invalid instruction" if the word is no instruction.
std::string disassemble(chip::Generation generation, uint64_t word);

}  // namespace v3d::qpu
