#include "gpu/qpu/isa/isa.h"

#include <array>
#include <bit>
#include <iterator>

namespace v3d::qpu {

namespace {

constexpr Encoding kEncodings[] = {
#define V3D_QPU_ENCODING(versions, alu, op, first, last, sel_first, sel_last, form, variant) \
  {versions, Alu::k##alu, Op::k##op, first, last, sel_first, sel_last, Form::form, Variant::variant},
#include "gpu/qpu/isa/isa.def"
};

// The first row of each version, ALU and opcode.
using FirstRows = std::array<uint16_t, 256>;
constexpr FirstRows first_rows(uint8_t version, Alu alu) {
  FirstRows rows;
  rows.fill(std::size(kEncodings));
  for (size_t n = std::size(kEncodings); n-- > 0;) {
    const Encoding& e = kEncodings[n];
    if (!(e.versions & version) || e.alu != alu) continue;
    for (uint32_t opcode = e.first; opcode <= e.last; ++opcode) rows[opcode] = static_cast<uint16_t>(n);
  }
  return rows;
}
constexpr FirstRows kFirstRows[2][2] = {{first_rows(k71, Alu::kAdd), first_rows(k71, Alu::kMul)},
                                        {first_rows(k42, Alu::kAdd), first_rows(k42, Alu::kMul)}};

constexpr uint8_t kImmA = 1, kImmB = 2, kImmC = 4, kImmD = 8;

// Source: Mesa qpu_pack.c, v3d71_sig_map and v3d42_sig_map. Codes 0..13 and 15..22 agree.
constexpr SignalCode kReserved = {0, 0, false};
constexpr SignalCode kSignals71[32] = {
    {0, 0, true},
    {kThrsw, 0, true},
    {kLdunif, 0, true},
    {kThrsw | kLdunif, 0, true},
    {kLdtmu, 0, true},
    {kThrsw | kLdtmu, 0, true},
    {kLdtmu | kLdunif, 0, true},
    {kThrsw | kLdtmu | kLdunif, 0, true},
    {kLdvary, 0, true},
    {kThrsw | kLdvary, 0, true},
    {kLdvary | kLdunif, 0, true},
    {kThrsw | kLdvary | kLdunif, 0, true},
    {kLdunifrf, 0, true},
    {kThrsw | kLdunifrf, 0, true},
    {0, kImmA, true},
    {0, kImmB, true},
    {kLdtlb, 0, true},
    {kLdtlbu, 0, true},
    {kWrtmuc, 0, true},
    {kThrsw | kWrtmuc, 0, true},
    {kLdvary | kWrtmuc, 0, true},
    {kThrsw | kLdvary | kWrtmuc, 0, true},
    {kUcb, 0, true},
    kReserved,
    {kLdunifa, 0, true},
    {kLdunifarf, 0, true},
    {kLdtmu | kWrtmuc, 0, true},
    {kThrsw | kLdtmu | kWrtmuc, 0, true},
    kReserved,
    kReserved,
    {0, kImmC, true},
    {0, kImmD, true},
};
constexpr SignalCode kSignals42[32] = {
    kSignals71[0],
    kSignals71[1],
    kSignals71[2],
    kSignals71[3],
    kSignals71[4],
    kSignals71[5],
    kSignals71[6],
    kSignals71[7],
    kSignals71[8],
    kSignals71[9],
    kSignals71[10],
    kSignals71[11],
    kSignals71[12],
    kSignals71[13],
    {kLdvary, kImmB, true},
    kSignals71[15],
    kSignals71[16],
    kSignals71[17],
    kSignals71[18],
    kSignals71[19],
    kSignals71[20],
    kSignals71[21],
    kSignals71[22],
    {kRotate, 0, true},
    kSignals71[24],
    kSignals71[25],
    kReserved,
    kReserved,
    kReserved,
    kReserved,
    kReserved,
    {kLdtmu, kImmB, true},
};

constexpr const char* kMagicNames[64] = {
    "r0",     "r1",    "r2",      "r3",    "r4",      "r5",     "-",        "tlb",     // 0
    "tlbu",   "unifa", "tmul",    "tmud",  "tmua",    "tmuau",  "vpm",      "vpmu",    // 8
    "sync",   "syncu", "syncb",   "recip", "rsqrt",   "exp",    "log",      "sin",     // 16
    "rsqrt2", nullptr, nullptr,   nullptr, nullptr,   nullptr,  nullptr,    nullptr,   // 24
    "tmuc",   "tmus",  "tmut",    "tmur",  "tmui",    "tmub",   "tmudref",  "tmuoff",  // 32
    "tmuscm", "tmusf", "tmuslod", "tmuhs", "tmuhscm", "tmuhsf", "tmuhslod", nullptr,   // 40
    nullptr,  nullptr, nullptr,   nullptr, nullptr,   nullptr,  nullptr,    "r5rep",   // 48
};

constexpr Unpack kFloatCodes[8] = {Unpack::kAbs, Unpack::kNone, Unpack::kL,    Unpack::kH,
                                   Unpack::kSat, Unpack::kNsat, Unpack::kMax0, Unpack::kNone};
constexpr Unpack kIntCodes[5] = {Unpack::kNone, Unpack::kUl, Unpack::kUh, Unpack::kIl, Unpack::kIh};
constexpr Unpack kHalfCodes[8] = {Unpack::kNone, Unpack::kFf, Unpack::kLl, Unpack::kHh,
                                  Unpack::kSwp,  Unpack::kU5, Unpack::kU6, Unpack::kU7};

}  // namespace

std::span<const Encoding> encodings() { return kEncodings; }

std::span<const Encoding> encodings_from(int version, Alu alu, uint32_t opcode) {
  return std::span(kEncodings).subspan(kFirstRows[version == 42][static_cast<int>(alu)][opcode & 255]);
}

const SignalCode* signal_codes(int version) { return version == 42 ? kSignals42 : kSignals71; }

const char* magic_name(int version, uint8_t waddr) {
  if (version >= 71 && waddr == kWaddrR5) return "quad";
  if (version >= 71 && waddr == kWaddrRep) return "rep";
  return kMagicNames[waddr & 63];
}

const char* signal_name(Signal signal) {
  static constexpr const char* kNames[kNumSignals] = {"thrsw",     "ldvary", "ldtmu",    "ldtlb",
                                                      "ldtlbu",    "ldunif", "ldunifrf", "ldunifa",
                                                      "ldunifarf", "wrtmuc", "ucb",      "rot"};
  return kNames[std::countr_zero(static_cast<unsigned>(signal))];
}

const char* name(NnMode mode) {
  static constexpr const char* kNames[] = {"uu", "su", "us", "ss"};
  return kNames[static_cast<int>(mode)];
}

const char* suffix(Unpack unpack) {
  static constexpr const char* kNames[] = {"",      ".abs", ".l",  ".h",  ".sat", ".nsat",
                                           ".max0", ".ff",  ".ll", ".hh", ".swp", ".u5",
                                           ".u6",   ".u7",  ".ul", ".uh", ".il",  ".ih"};
  return kNames[static_cast<int>(unpack)];
}

const char* suffix(Pack pack) {
  static constexpr const char* kNames[] = {"", ".l", ".h"};
  return kNames[static_cast<int>(pack)];
}

const char* suffix(Cond cond) {
  static constexpr const char* kNames[] = {"", ".ifa", ".ifb", ".ifna", ".ifnb"};
  return kNames[static_cast<int>(cond)];
}

const char* suffix(FlagWrite write) {
  static constexpr const char* kNames[] = {"",       ".pushz", ".pushn", ".pushc", ".andz",  ".andnz",
                                           ".nornz", ".norz",  ".andn",  ".andnn", ".nornn", ".norn",
                                           ".andc",  ".andnc", ".nornc", ".norc"};
  return kNames[static_cast<int>(write)];
}

bool read_modifiers(const Encoding& encoding, uint32_t opcode, uint32_t selector, Modifiers& modifiers) {
  const auto pack = [&](uint32_t code) {
    modifiers.pack = static_cast<Pack>(code);
    return code < 3;
  };
  modifiers = {};
  switch (encoding.form) {
    case Form::kPlain:
      return true;
    case Form::kFloatsPack:
      modifiers.a = kFloatCodes[(opcode >> 2) & 3];
      modifiers.b = kFloatCodes[opcode & 3];
      return pack((opcode >> 4) & 3);
    case Form::kFloats:
      modifiers.a = kFloatCodes[(opcode >> 2) & 3];
      modifiers.b = kFloatCodes[opcode & 3];
      return true;
    case Form::kFloatsMul:
      modifiers.a = kFloatCodes[(opcode >> 2) & 3];
      modifiers.b = kFloatCodes[opcode & 3];
      return pack(((opcode >> 4) & 3) - 1);
    case Form::kHalves:
      modifiers.a = kHalfCodes[opcode - encoding.first];
      return true;
    case Form::kSelPack:
      return pack(selector & 3);
    case Form::kSelFloatPack:
      modifiers.a = kFloatCodes[(selector >> 2) & 3];
      return pack(selector & 3);
    case Form::kSelFloat:
      modifiers.a = kFloatCodes[(selector >> 2) & 3];
      return (selector & 3) == 3;
    case Form::kSelFloatMove:
      modifiers.a = kFloatCodes[(selector >> 2) & 7];
      return (selector >> 2) != 7 && pack(selector & 3);
    case Form::kSelIntMove:
      if ((selector >> 2) >= 5 || (selector & 3) != 3) return false;
      modifiers.a = kIntCodes[selector >> 2];
      return true;
    case Form::kOpFloatPack:
      modifiers.a = kFloatCodes[(opcode >> 2) & 3];
      return pack((selector >> 3) & 3);
    case Form::kOpFloat:
      modifiers.a = kFloatCodes[(opcode >> 2) & 3];
      return true;
    case Form::kMuxPack:
      return pack((selector >> 3) & 3);
    case Form::kMuxFmov:
      modifiers.a = kFloatCodes[(selector >> 3) & 3];
      return pack(((opcode & 1) << 1) | ((selector >> 5) & 1));
  }
  return false;
}

}  // namespace v3d::qpu
