/// The instruction set is the operations, modifiers, signals and write addresses of V3D 7.1 and 4.2, and the
/// tables that decoder, encoder, disassembler, assembler, interpreter, hazard checker and qpu/flow share. The
/// rows stand in isa.def.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gpu/chip/generation.h"

namespace v3d::qpu {

// ---- Versions and registers

using chip::k21;
using chip::k42;
using chip::k71;
using chip::kBoth;
using chip::set_of;

/// A register of a thread: 0..63 rf0..rf63, 64..69 the accumulators r0..r5 of 4.2.
using Register = uint8_t;
inline constexpr Register kFirstAccumulator = 64;
inline constexpr Register kNumRegisters = 70;
inline constexpr Register kNoRegister = 255;
constexpr Register accumulator(int n) { return static_cast<Register>(kFirstAccumulator + n); }
/// Of the SFU, which write addresses of 4.2 lead to.
inline constexpr Register kSfuResult = accumulator(4);

/// Where a word says what its operands are.
enum class WordForm : uint8_t {
  kMuxes,  ///< a mux for each, which chooses among accumulators and two registers, or one and an immediate
  kAddresses,  ///< a register address for each
};

/// What differs between the generations once an instruction is decoded. What differs in one operation, signal
/// or write address stands in its row.
struct IsaProperties {
  const char* chip;  ///< for messages
  /// There are words of the tables here; those of 2.1 are in vc4.def.
  bool has_words;
  WordForm form;
  bool has_accumulators;       ///< r0..r5, which a thread switch may lose
  bool reads_and_waits_count;  ///< among the peripherals of which an instruction accesses one
  Register implicit;           ///< destination of ldunif and ldunifa, and of the C of ldvary
  /// Payload registers at thread start (qpu.md 6).
  Register fragment_w, fragment_centroid_w, fragment_z;
  Register workgroup_xy, workgroup_z_index;
};
inline constexpr IsaProperties kIsa71 = {.chip = "V3D 7.1",
                                         .has_words = true,
                                         .form = WordForm::kAddresses,
                                         .has_accumulators = false,
                                         .reads_and_waits_count = false,
                                         .implicit = 0,
                                         .fragment_w = 3,
                                         .fragment_centroid_w = 1,
                                         .fragment_z = 2,
                                         .workgroup_xy = 3,
                                         .workgroup_z_index = 2};
inline constexpr IsaProperties kIsa42 = {.chip = "V3D 4.2",
                                         .has_words = true,
                                         .form = WordForm::kMuxes,
                                         .has_accumulators = true,
                                         .reads_and_waits_count = true,
                                         .implicit = accumulator(5),
                                         .fragment_w = 0,
                                         .fragment_centroid_w = 1,
                                         .fragment_z = 2,
                                         .workgroup_xy = 0,
                                         .workgroup_z_index = 2};
inline constexpr IsaProperties kIsa21 = {.chip = "V3D 2.1",
                                         .has_words = false,
                                         .form = WordForm::kMuxes,
                                         .has_accumulators = true,
                                         .reads_and_waits_count = false,
                                         .implicit = kNoRegister,
                                         .fragment_w = kNoRegister,
                                         .fragment_centroid_w = kNoRegister,
                                         .fragment_z = kNoRegister,
                                         .workgroup_xy = kNoRegister,
                                         .workgroup_z_index = kNoRegister};
constexpr const IsaProperties& isa(chip::Generation generation) {
  switch (generation) {
    case chip::Generation::k21:
      return kIsa21;
    case chip::Generation::k42:
      return kIsa42;
    case chip::Generation::k71:
      return kIsa71;
  }
  chip::no_such_generation();
}

// ---- Operations

enum class Op : uint8_t {
#define V3D_QPU_OP(op, mnemonic, operands, destination, input, output, flags, carry, latency, traits) k##op,
#include "gpu/qpu/isa/isa.def"
};
inline constexpr int kNumOps = static_cast<int>(Op::kStvpmp) + 1;

/// Which conversions an operation allows on what it reads.
enum class Input : uint8_t {
  kRaw,        ///< none
  kFloat,      ///< abs, l, h on every operand
  kFloatMove,  ///< abs, l, h, sat, nsat, max0
  kIntMove,    ///< ul, uh, il, ih
  kHalf,       ///< ff, ll, hh, swp on operand a; u5, u6, u7 where the opcode has room for them
};
/// ... and on its result: kFloat allows .l and .h.
enum class Output : uint8_t { kRaw, kFloat };
/// How Z, N and C follow from the result (qpu.md 1.5). Of a result of two halves nothing is known; assumed: a
/// flag is set where both halves say so.
enum class FlagClass : uint8_t { kInteger, kFloat, kCompare, kHalves, kCompareHalves };
/// Flags of the operands, not of the result.
constexpr bool is_compare(FlagClass flags) {
  return flags == FlagClass::kCompare || flags == FlagClass::kCompareHalves;
}
constexpr bool is_of_halves(FlagClass flags) {
  return flags == FlagClass::kHalves || flags == FlagClass::kCompareHalves;
}

/// C of operations on integers; of the others FlagClass says it.
enum class Carry : uint8_t {
  kNone,      ///< 0
  kOverflow,  ///< carry out of bit 31 of a + b
  kBorrow,    ///< a < b, unsigned
  kGreater,   ///< a > b, signed
  kAbove,     ///< a > b, unsigned
};

enum Trait : uint16_t {
  kReadsThread = 1,  ///< needs more than its operands
  kEffect = 2,       ///< does something besides returning a value: not removable
  kActiveLanes = 4,  ///< takes part and writes only in lanes that MSF enables
  kSfu = 8,          ///< executes in the SFU (timing, delay slots)
  kVpm = 16,
  kUnknown = 32,  ///< no driver uses it and its meaning is not documented
  // State of the thread besides the registers. Conditions and flag writes come on top.
  kReadsA = 64,
  kReadsB = 128,
  kReadsRtop = 256,
  kWritesRtop = 512,  ///< all lanes, whatever the condition
  kReadsMsf = 1024,   ///< as a value; kActiveLanes looks at it too
  kWritesMsf = 2048,
  kReadsNnMode = 4096,
  kWritesNnMode = 8192,
};

struct OpInfo {
  const char* mnemonic;
  uint8_t operands;
  bool has_destination;
  Input input;
  Output output;
  FlagClass flags;
  Carry carry;
  /// Instructions until the result is there without a stall. It is correct from the next one on.
  uint8_t latency;
  uint16_t traits;
};
inline constexpr OpInfo kOpInfo[kNumOps] = {
#define V3D_QPU_OP(op, mnemonic, operands, destination, input, output, flags, carry, latency, traits) \
  {mnemonic,        operands, destination, Input::k##input, Output::k##output, FlagClass::k##flags,   \
   Carry::k##carry, latency,  traits},
#include "gpu/qpu/isa/isa.def"
};
constexpr const OpInfo& info(Op op) { return kOpInfo[static_cast<int>(op)]; }

/// How V8DOT reads the bytes of its sources: bit 0, the first is signed; bit 1, the second. SETNNMODE_UU,
/// _SU, _US, _SS in this order.
enum class NnMode : uint8_t { kUu, kSu, kUs, kSs };
const char* name(NnMode mode);  ///< "uu"
constexpr bool sets_nn_mode(Op op) { return info(op).traits & kWritesNnMode; }
/// @param op  one with sets_nn_mode()
constexpr NnMode nn_mode_of(Op op) {
  return static_cast<NnMode>(static_cast<int>(op) - static_cast<int>(Op::kSetnnmodeUu));
}

// ---- Modifiers

/// Conversion of an operand. kFf..kU7 apply to two packed halves (VFADD, VFMIN and so on). kU5..kU7 are codes
/// that exist and have no name in public sources: Mesa calls them three new ones of 7.1.
enum class Unpack : uint8_t {
#define V3D_QPU_UNPACK(unpack, suffix) k##unpack,
#include "gpu/qpu/isa/isa.def"
};
inline constexpr int kNumUnpacks = static_cast<int>(Unpack::kIh) + 1;
/// By their codes in opcodes and selectors. Two operands have the first four float codes; FMOV has all but
/// the last, which is reserved.
inline constexpr Unpack kFloatUnpacks[8] = {Unpack::kAbs, Unpack::kNone, Unpack::kL,    Unpack::kH,
                                            Unpack::kSat, Unpack::kNsat, Unpack::kMax0, Unpack::kNone};
inline constexpr Unpack kIntUnpacks[5] = {Unpack::kNone, Unpack::kUl, Unpack::kUh, Unpack::kIl, Unpack::kIh};
inline constexpr Unpack kHalfUnpacks[8] = {Unpack::kNone, Unpack::kFf, Unpack::kLl, Unpack::kHh,
                                           Unpack::kSwp,  Unpack::kU5, Unpack::kU6, Unpack::kU7};

/// Conversion of a result: kL and kH write one half as f16 and keep the other.
enum class Pack : uint8_t { kNone, kL, kH };
inline constexpr int kNumPacks = 3;

enum class Cond : uint8_t {
#define V3D_QPU_COND(cond, suffix, of_b, inverted) k##cond,
#include "gpu/qpu/isa/isa.def"
};
struct CondInfo {
  const char* suffix;
  bool of_b;      ///< looks at flag B, not A
  bool inverted;  ///< holds where the flag is clear
};
inline constexpr CondInfo kCondInfo[] = {
#define V3D_QPU_COND(cond, suffix, of_b, inverted) {suffix, of_b, inverted},
#include "gpu/qpu/isa/isa.def"
};
/// @param cond  kNone holds everywhere, whatever its row says
constexpr const CondInfo& info(Cond cond) { return kCondInfo[static_cast<int>(cond)]; }

/// Values 1..15 are the codes of the instruction word.
enum class FlagWrite : uint8_t {
#define V3D_QPU_FLAG_WRITE(write, suffix, flag, combination) k##write,
#include "gpu/qpu/isa/isa.def"
};
enum class Flag : uint8_t { kZ, kN, kC };
struct FlagWriteInfo {
  const char* suffix;
  Flag flag;  ///< X: which one of the result
  /// Push: B = A, A = X in all lanes. The others change A only: A & X, A & ~X, ~(A | X), ~(A | ~X).
  enum class Combination : uint8_t { kNone, kPush, kAnd, kAndNot, kNor, kNorNot } combination;
};
inline constexpr FlagWriteInfo kFlagWriteInfo[] = {
#define V3D_QPU_FLAG_WRITE(write, suffix, flag, combination) \
  {suffix, Flag::k##flag, FlagWriteInfo::Combination::k##combination},
#include "gpu/qpu/isa/isa.def"
};
constexpr const FlagWriteInfo& info(FlagWrite write) { return kFlagWriteInfo[static_cast<int>(write)]; }

const char* suffix(Unpack unpack);  ///< ".abs", or "" for kNone; likewise the others
const char* suffix(Pack pack);
const char* suffix(Cond cond);
const char* suffix(FlagWrite write);

// ---- Signals

/// Blocks that instructions reach. A word may use one of them, with the exceptions of hazard_facts.cc.
enum class Unit : uint8_t { kNone, kTmu, kTlb, kTsy, kVpm, kSfu };
/// Streams of uniform words that instructions take a word from.
enum class Stream : uint8_t { kNone, kMain, kUnifa };

namespace detail {
enum SignalIndex : uint8_t {
#define V3D_QPU_SIGNAL(signal, name, generations, unit, stream, latency, implicit_latency) kIndexOf##signal,
#include "gpu/qpu/isa/isa.def"
};
}  // namespace detail

/// Bits of Instruction::signals, in the order in which the disassembler prints them.
enum Signal : uint16_t {
#define V3D_QPU_SIGNAL(signal, name, generations, unit, stream, latency, implicit_latency) \
  k##signal = 1u << detail::kIndexOf##signal,
#include "gpu/qpu/isa/isa.def"
};
struct SignalInfo {
  Signal signal;
  const char* name;
  chip::Generations generations;
  Unit unit;
  Stream stream;
  /// Instructions until the register at the destination address holds the result; 0 if the signal has no
  /// address. It stands in the condition field.
  uint8_t latency;
  /// The same for IsaProperties::implicit.
  uint8_t implicit_latency;
};
inline constexpr SignalInfo kSignalInfo[] = {
#define V3D_QPU_SIGNAL(signal, name, generations, unit, stream, latency, implicit_latency) \
  {k##signal, name, generations, Unit::k##unit, Stream::k##stream, latency, implicit_latency},
#include "gpu/qpu/isa/isa.def"
};
inline constexpr int kNumSignals = static_cast<int>(std::size(kSignalInfo));
const char* signal_name(Signal signal);

template <typename Predicate>
constexpr uint16_t signals_where(const Predicate& predicate) {
  uint16_t set = 0;
  for (const SignalInfo& s : kSignalInfo)
    if (predicate(s)) set |= s.signal;
  return set;
}
/// Signals whose destination stands in the condition field.
inline constexpr uint16_t kSignalsWithAddress = signals_where([](auto& s) { return s.latency != 0; });
/// Signals whose result is in the implicit register for the next instruction: ldunif and ldunifa.
inline constexpr uint16_t kSignalsImplicit = signals_where([](auto& s) { return s.implicit_latency == 1; });
/// Instructions until the C of ldvary is in the implicit register.
inline constexpr int kVaryingLatency = kSignalInfo[detail::kIndexOfLdvary].implicit_latency;

/// One value of the signal field.
enum ImmediateOperand : uint8_t { kImmediateA = 1, kImmediateB = 2, kImmediateC = 4, kImmediateD = 8 };
struct SignalCode {
  uint16_t signals;
  uint8_t immediates;  ///< which of raddr_a, b, c, d is a small immediate
  bool valid;
};
/// @return 32 codes
const SignalCode* signal_codes(chip::Generation generation);

// ---- Write addresses

/// Magic write addresses (qpu.md 3.2).
enum Waddr : uint8_t {
#define V3D_QPU_WADDR(generations, address, waddr, name, unit, effect, uniform, reg, latency) \
  kWaddr##waddr = (address),
#include "gpu/qpu/isa/isa.def"
};

/// What a write to a magic address does.
enum class Effect : uint8_t {
  kUnknown,   ///< nothing that is known; it is dropped and reported
  kNothing,   ///< "-"
  kRegister,  ///< writes WaddrInfo::reg
  kQuads,     ///< ... each quad the value of its first lane
  kLane0,     ///< ... each lane the value of lane 0
  kSfuRecip,  ///< kSfuRecip..kSfuRsqrt2: starts sfu_operation(), whose result goes to WaddrInfo::reg
  kSfuRsqrt,
  kSfuExp,
  kSfuLog,
  kSfuSin,
  kSfuRsqrt2,
  kTlb,        ///< the next word of a TLB access sequence; with a uniform, of a new one that it configures
  kUnifa,      ///< the address of the second uniform stream
  kTmuData,    ///< a data word of the next general lookup
  kTmuConfig,  ///< the configuration of general lookups
  kTmuT,       ///< kTmuT..kTmuOff: a parameter of the next lookup
  kTmuR,
  kTmuI,
  kTmuB,
  kTmuDref,
  kTmuOff,
  kGeneral,  ///< the addresses of a general lookup, and starts it; a uniform configures it first
  kTexture,  ///< kTexture..kTextureLod: S of a texture lookup, and starts it
  kTextureCube,
  kTextureFetch,
  kTextureLod,
  kBarrier,  ///< waits at the next thread switch
};
constexpr bool starts_sfu(Effect effect) {
  return effect >= Effect::kSfuRecip && effect <= Effect::kSfuRsqrt2;
}
constexpr bool starts_texture(Effect effect) {
  return effect >= Effect::kTexture && effect <= Effect::kTextureLod;
}
/// Ends a sequence of TMU writes.
constexpr bool starts_lookup(Effect effect) { return effect == Effect::kGeneral || starts_texture(effect); }
/// @param effect  one with starts_sfu()
constexpr Op sfu_operation(Effect effect) {
  constexpr Op kOps[] = {Op::kRecip, Op::kRsqrt, Op::kExp, Op::kLog, Op::kSin, Op::kRsqrt2};
  return kOps[static_cast<int>(effect) - static_cast<int>(Effect::kSfuRecip)];
}

struct WaddrInfo {
  const char* name = nullptr;  ///< nullptr if neither generation has the address
  Unit unit = Unit::kNone;
  Effect effect = Effect::kUnknown;
  bool takes_uniform = false;  ///< of the main stream, whatever the condition of the write
  Register reg = kNoRegister;
  /// Instructions until `reg`, or ldunifa, gives what was written; 0 if nothing reads it back.
  uint8_t latency = 0;
};
/// @param waddr  0..63; a magic one
const WaddrInfo& waddr_info(chip::Generation generation, uint8_t waddr);

/// Small immediate of code 0..47 as the 32-bit value (qpu.md 1.3).
inline constexpr int kSmallImmediates = 48;
constexpr uint32_t small_immediate(uint8_t code) {
  if (code < 16) return code;
  if (code < 32) return static_cast<uint32_t>(code) - 32u;
  return (127u + code - 40u) << 23;
}

// ---- Encodings

enum class Alu : uint8_t { kAdd, kMul };

/// Where the modifiers of an operation stand in its opcode and selector. "Float code": index in
/// kFloatUnpacks.
enum class Form : uint8_t {
  kPlain,         ///< nowhere
  kFloatsPack,    ///< opcode 5:4 pack, 3:2 float code of a, 1:0 of b
  kFloats,        ///< opcode 3:2 float code of a, 1:0 of b
  kFloatsMul,     ///< as kFloatsPack, with pack + 1
  kHalves,        ///< opcode - first: 0 none, 1 ff, 2 ll, 3 hh, 4 swp, 5 u5, 6 u6, 7 u7
  kSelPack,       ///< selector 1:0 pack
  kSelFloatPack,  ///< selector 3:2 float code of a, 1:0 pack
  kSelFloat,      ///< selector 3:2 float code of a, 1:0 = 3
  kSelFloatMove,  ///< selector 4:2 float code of a, 1:0 pack
  kSelIntMove,    ///< selector 4:2 none, ul, uh, il, ih; 1:0 = 3
  kOpFloatPack,   ///< opcode 3:2 float code of a; mux_b 1:0 pack
  kOpFloat,       ///< opcode 3:2 float code of a
  kMuxPack,       ///< mux_b 1:0 pack
  kMuxFmov,       ///< opcode bit 0, mux_b bit 2: pack; mux_b 1:0 float code of a
};

/// What else tells operations with one opcode apart.
enum class Variant : uint8_t {
  kAny,
  kOrdered,  ///< key(a) <= key(b), see decode.cc
  kSwapped,  ///< key(a) > key(b)
  kIn,       ///< bit MA clear
  kOut,      ///< bit MA set
  kWaddr0,   ///< waddr_a = 0, 1, 2
  kWaddr1,
  kWaddr2,
};

struct Encoding {
  chip::Generations generations;
  Alu alu;
  Op op;
  uint8_t first, last;          ///< opcodes
  uint8_t sel_first, sel_last;  ///< selectors
  Form form;
  Variant variant;
};
std::span<const Encoding> encodings();
/// All rows from the first one that has the opcode; empty if none has it.
/// @param opcode  below 256
std::span<const Encoding> encodings_from(chip::Generation generation, Alu alu, uint32_t opcode);

struct Modifiers {
  Unpack a = Unpack::kNone, b = Unpack::kNone;
  Pack pack = Pack::kNone;
  bool operator==(const Modifiers&) const = default;
};
/// The modifiers that a word with this opcode and selector carries; false if the codes are reserved.
bool read_modifiers(const Encoding& encoding, uint32_t opcode, uint32_t selector, Modifiers& modifiers);

}  // namespace v3d::qpu
