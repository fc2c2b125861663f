/// The QPU instruction set: operations, modifiers, signals and write addresses of V3D 7.1 and 4.2, and the
/// tables that decoder, encoder, disassembler and interpreter share. The rows stand in isa.def.
#pragma once

#include <cstdint>
#include <span>

namespace v3d::qpu {

enum class Op : uint8_t {
#define V3D_QPU_OP(op, mnemonic, operands, destination, input, output, flags, traits) k##op,
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

enum Trait : uint8_t {
  kReadsThread = 1,  ///< needs more than its operands
  kEffect = 2,       ///< does something besides returning a value: not removable
  kActiveLanes = 4,  ///< takes part and writes only in lanes that MSF enables
  kSfu = 8,          ///< executes in the SFU (timing, delay slots)
  kVpm = 16,
  kUnknown = 32,  ///< no driver uses it and its meaning is not documented
};

struct OpInfo {
  const char* mnemonic;
  uint8_t operands;
  bool has_destination;
  Input input;
  Output output;
  FlagClass flags;
  uint8_t traits;
};
inline constexpr OpInfo kOpInfo[kNumOps] = {
#define V3D_QPU_OP(op, mnemonic, operands, destination, input, output, flags, traits) \
  {mnemonic, operands, destination, Input::k##input, Output::k##output, FlagClass::k##flags, traits},
#include "gpu/qpu/isa/isa.def"
};
constexpr const OpInfo& info(Op op) { return kOpInfo[static_cast<int>(op)]; }

/// How V8DOT reads the bytes of its sources: bit 0, the first is signed; bit 1, the second. SETNNMODE_UU,
/// _SU, _US, _SS in this order.
enum class NnMode : uint8_t { kUu, kSu, kUs, kSs };
const char* name(NnMode mode);  ///< "uu"
constexpr bool sets_nn_mode(Op op) { return op >= Op::kSetnnmodeUu && op <= Op::kSetnnmodeSs; }
/// @param op  one with sets_nn_mode()
constexpr NnMode nn_mode_of(Op op) {
  return static_cast<NnMode>(static_cast<int>(op) - static_cast<int>(Op::kSetnnmodeUu));
}

/// Conversion of an operand. kFf..kU7 apply to two packed halves (VFADD, VFMIN and so on). kU5..kU7 are codes
/// that exist and have no name in public sources: Mesa calls them three new ones of 7.1.
enum class Unpack : uint8_t {
  kNone,
  kAbs,
  kL,
  kH,
  kSat,
  kNsat,
  kMax0,
  kFf,
  kLl,
  kHh,
  kSwp,
  kU5,
  kU6,
  kU7,
  kUl,
  kUh,
  kIl,
  kIh
};
/// Conversion of a result: kL and kH write one half as f16 and keep the other.
enum class Pack : uint8_t { kNone, kL, kH };
enum class Cond : uint8_t { kNone, kIfa, kIfb, kIfna, kIfnb };
/// Values 1..15 are the codes of the instruction word. Push: B = A, A = X. The others change A only.
enum class FlagWrite : uint8_t {
  kNone,
  kPushz,
  kPushn,
  kPushc,
  kAndz,
  kAndnz,
  kNornz,
  kNorz,
  kAndn,
  kAndnn,
  kNornn,
  kNorn,
  kAndc,
  kAndnc,
  kNornc,
  kNorc
};

const char* suffix(Unpack unpack);  ///< ".abs", or "" for kNone; likewise the others
const char* suffix(Pack pack);
const char* suffix(Cond cond);
const char* suffix(FlagWrite write);

/// Bits of Instruction::signals, in the order in which the disassembler prints them.
enum Signal : uint16_t {
  kThrsw = 1u << 0,
  kLdvary = 1u << 1,
  kLdtmu = 1u << 2,
  kLdtlb = 1u << 3,
  kLdtlbu = 1u << 4,
  kLdunif = 1u << 5,
  kLdunifrf = 1u << 6,
  kLdunifa = 1u << 7,
  kLdunifarf = 1u << 8,
  kWrtmuc = 1u << 9,
  kUcb = 1u << 10,
  kRotate = 1u << 11,  ///< 4.2: rotates the operands of the mul ALU
};
inline constexpr int kNumSignals = 12;
const char* signal_name(Signal signal);
/// Signals whose destination stands in the condition field.
inline constexpr uint16_t kSignalsWithAddress = kLdvary | kLdtmu | kLdtlb | kLdtlbu | kLdunifrf | kLdunifarf;

/// One value of the signal field.
struct SignalCode {
  uint16_t signals;
  uint8_t immediates;  ///< bit 0..3: raddr_a, b, c, d is a small immediate
  bool valid;
};
/// @param version  71 or 42
/// @return 32 codes
const SignalCode* signal_codes(int version);

/// Magic write addresses (qpu.md 3.2).
enum Waddr : uint8_t {
  kWaddrR0 = 0,  ///< 0..4: accumulators r0..r4 of 4.2
  kWaddrR5 = 5,  ///< 4.2: r5 of each quad; 7.1: "quad", writes rf0
  kWaddrNop = 6,
  kWaddrTlb = 7,
  kWaddrTlbu = 8,
  kWaddrUnifa = 9,
  kWaddrTmul = 10,
  kWaddrTmud = 11,
  kWaddrTmua = 12,
  kWaddrTmuau = 13,
  kWaddrVpm = 14,
  kWaddrVpmu = 15,
  kWaddrSync = 16,
  kWaddrSyncu = 17,
  kWaddrSyncb = 18,
  kWaddrRecip = 19,  ///< 19..24: SFU of 4.2, result in r4
  kWaddrRsqrt = 20,
  kWaddrExp = 21,
  kWaddrLog = 22,
  kWaddrSin = 23,
  kWaddrRsqrt2 = 24,
  kWaddrTmuc = 32,
  kWaddrTmus = 33,
  kWaddrTmut = 34,
  kWaddrTmur = 35,
  kWaddrTmui = 36,
  kWaddrTmub = 37,
  kWaddrTmudref = 38,
  kWaddrTmuoff = 39,
  kWaddrTmuscm = 40,
  kWaddrTmusf = 41,
  kWaddrTmuslod = 42,
  kWaddrTmuhs = 43,
  kWaddrTmuhscm = 44,
  kWaddrTmuhsf = 45,
  kWaddrTmuhslod = 46,
  kWaddrRep = 55,  ///< 7.1: rf0 of all lanes; 4.2: r5 of all lanes
};
/// nullptr for a reserved address.
const char* magic_name(int version, uint8_t waddr);

/// Small immediate of code 0..47 as the 32-bit value (qpu.md 1.3).
inline constexpr int kSmallImmediates = 48;
constexpr uint32_t small_immediate(uint8_t code) {
  if (code < 16) return code;
  if (code < 32) return static_cast<uint32_t>(code) - 32u;
  return (127u + code - 40u) << 23;
}

// ---- Encodings

enum class Alu : uint8_t { kAdd, kMul };

inline constexpr uint8_t k71 = 1, k42 = 2, kBoth = 3;
constexpr uint8_t version_bit(int version) { return version == 42 ? k42 : k71; }

/// Where the modifiers of an operation stand in its opcode and selector. "Float code": 0 abs, 1 none, 2 l,
/// 3 h, and in three bits 4 sat, 5 nsat, 6 max0.
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
  uint8_t versions;
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
std::span<const Encoding> encodings_from(int version, Alu alu, uint32_t opcode);

struct Modifiers {
  Unpack a = Unpack::kNone, b = Unpack::kNone;
  Pack pack = Pack::kNone;
  bool operator==(const Modifiers&) const = default;
};
/// The modifiers that a word with this opcode and selector carries; false if the codes are reserved.
bool read_modifiers(const Encoding& encoding, uint32_t opcode, uint32_t selector, Modifiers& modifiers);

}  // namespace v3d::qpu
