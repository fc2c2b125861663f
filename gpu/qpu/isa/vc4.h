/// These are the instruction words of V3D 2.1 (VideoCore IV): fields, names and text. Facts: vc4-qpu.md 1, 3
/// and 8. The rows stand in vc4.def.
///
/// Every word has fields, and the fields give the word back; what is no instruction, flaw() tells.
#pragma once

#include <cstdint>
#include <string>

namespace v3d::qpu::vc4 {

// ---- Fields

enum class Signal : uint8_t {
#define V3D_VC4_SIGNAL(signal, code, text) k##signal = (code),
#include "gpu/qpu/isa/vc4.def"
};

/// Of a half: the lanes in which it writes.
enum class Cond : uint8_t {
#define V3D_VC4_COND(cond, code, text) k##cond = (code),
#include "gpu/qpu/isa/vc4.def"
};

/// Codes 12..14 are reserved.
enum class BranchCond : uint8_t {
#define V3D_VC4_BRANCH_COND(cond, code, text) k##cond = (code),
#include "gpu/qpu/isa/vc4.def"
};

/// A multiplexer: 0..5 are r0..r5.
enum Mux : uint8_t { kMuxR4 = 4, kMuxR5 = 5, kMuxA = 6, kMuxB = 7 };

/// Addresses of files A and B: 0..31 are registers, the rest ports.
inline constexpr uint8_t kFirstPort = 32, kAddressNop = 39;

/// What kind of word it is, which the signal says.
enum class Form : uint8_t { kAlu, kLoadImmediate, kSemaphore, kBranch };

/// Immediates of Form::kLoadImmediate, in the field that is `unpack` in ALU words; the rest is reserved.
enum ImmediateMode : uint8_t {
  kImmediate32 = 0,
  kImmediateSigned = 1,
  kImmediateUnsigned = 3,
  kModeSemaphore = 4
};

/// Members that a form does not have are 0.
struct Instruction {
  Signal signal = Signal::kNone;
  uint8_t unpack = 0;  ///< or an ImmediateMode
  bool pm = false;     ///< conversions are of r4 and of the mul ALU's result, not of file A
  uint8_t pack = 0;
  Cond cond_add = Cond::kNever, cond_mul = Cond::kNever;
  bool sf = false;  ///< set flags; of a branch bit 0 of raddr_a
  bool ws = false;  ///< the add ALU writes column B and the mul ALU column A
  uint8_t waddr_add = kAddressNop, waddr_mul = kAddressNop;

  // ALU words
  uint8_t op_add = 0, op_mul = 0;
  uint8_t raddr_a = kAddressNop;  ///< branch: the register, 0..31
  uint8_t raddr_b = kAddressNop;  ///< or a small immediate
  uint8_t add_a = 0, add_b = 0, mul_a = 0, mul_b = 0;

  uint32_t immediate = 0;  ///< all other words: value, semaphore or distance

  BranchCond branch_cond = BranchCond::kAllZs;
  bool relative = false, with_register = false;

  bool operator==(const Instruction&) const = default;
  Form form() const {
    if (signal == Signal::kBranch) return Form::kBranch;
    if (signal != Signal::kLoadImmediate) return Form::kAlu;
    return unpack == kModeSemaphore ? Form::kSemaphore : Form::kLoadImmediate;
  }
};

Instruction decode(uint64_t word);
uint64_t encode(const Instruction& instruction);

/// Why the word is no instruction with a known meaning: it names a reserved code. Null if it is one.
const char* flaw(const Instruction& instruction);

/// Text as of Mesa's vc4_qpu_disasm, byte for byte, whether it is an instruction or not.
std::string disassemble(uint64_t word);

// ---- Tables

enum FloatUse : uint8_t { kNoFloats = 0, kTakesFloats = 1, kGivesFloats = 2 };
inline constexpr uint8_t kNoCode = 255;

enum class Op : uint8_t {
#define V3D_VC4_OP(op, text, add, mul, operands, floats) k##op,
#include "gpu/qpu/isa/vc4.def"
  kReserved
};
inline constexpr int kNumOps = static_cast<int>(Op::kReserved);

struct OpInfo {
  const char* text;
  uint8_t add, mul;  ///< its codes on the two ALUs, or kNoCode
  uint8_t operands;  ///< of one operand, it is a
  uint8_t floats;    ///< FloatUse
};
/// @param op  not kReserved
const OpInfo& info(Op op);
Op add_op(uint8_t code);
Op mul_op(uint8_t code);

enum class Unit : uint8_t { kNone, kTmu, kTlb, kSfu };
/// Files, or columns of write addresses.
enum Files : uint8_t { kFileA = 1, kFileB = 2, kFiles = 3 };

enum class ReadPort : uint8_t {
  kNone,      ///< a register
  kUnmapped,  ///< no port
#define V3D_VC4_READ(address, file, port, text) k##port,
#include "gpu/qpu/isa/vc4.def"
};
enum class WritePort : uint8_t {
  kNone,  ///< a register of the file
#define V3D_VC4_WRITE(address, file, port, text, unit) k##port,
#include "gpu/qpu/isa/vc4.def"
};
struct ReadAddress {
  ReadPort port = ReadPort::kUnmapped;
  const char* text = nullptr;
};
struct WriteAddress {
  WritePort port = WritePort::kNone;
  const char* text = nullptr;
  Unit unit = Unit::kNone;
};
/// @param file  kFileA or kFileB  @param address  32..63
const ReadAddress& read_address(Files file, uint8_t address);
const WriteAddress& write_address(Files file, uint8_t address);

/// "" for none; null for a reserved code.
const char* text(Cond cond);
const char* text(BranchCond cond);
const char* unpack_text(uint8_t unpack);
const char* pack_text(uint8_t pack, bool pm);
const char* text(Signal signal);

/// Which column a half writes.
inline Files column(const Instruction& i, bool mul) { return mul == i.ws ? kFileA : kFileB; }
/// Mesa's mov: an operation that gives its operand back, of one with itself.
inline bool is_move(const Instruction& i, bool mul) {
  return mul ? mul_op(i.op_mul) == Op::kV8min && i.mul_a == i.mul_b
             : add_op(i.op_add) == Op::kOr && i.add_a == i.add_b;
}

/// Small immediates: 0..47 are values; 48.. rotate the mul ALU's result, 48 by r5, the others by code - 48.
inline constexpr uint8_t kRotateByR5 = 48;
/// Codes of rotations used as an operand read as -16..-1.
constexpr uint32_t small_immediate(uint8_t code) {
  if (code < 16) return code;
  if (code < 32) return code - 32u;
  if (code < 40) return (127u + code - 32u) << 23;
  if (code < 48) return (127u + code - 48u) << 23;
  return code - 64u;
}
inline bool rotates(const Instruction& i) {
  return i.signal == Signal::kSmallImmediate && i.raddr_b >= kRotateByR5;
}

}  // namespace v3d::qpu::vc4
