#include "gpu/qpu/isa/isa.h"

#include <array>
#include <bit>
#include <iterator>

namespace v3d::qpu {

namespace {

constexpr Encoding kEncodings[] = {
#define V3D_QPU_ENCODING(generations, alu, op, first, last, sel_first, sel_last, form, variant) \
  {generations, Alu::k##alu, Op::k##op, first, last, sel_first, sel_last, Form::form, Variant::variant},
#include "gpu/qpu/isa/isa.def"
};

// The first row of each generation, ALU and opcode.
using FirstRows = std::array<uint16_t, 256>;
constexpr FirstRows first_rows(chip::Generations generation, Alu alu) {
  FirstRows rows;
  rows.fill(std::size(kEncodings));
  for (size_t n = std::size(kEncodings); n-- > 0;) {
    const Encoding& e = kEncodings[n];
    if (!(e.generations & generation) || e.alu != alu) continue;
    for (uint32_t opcode = e.first; opcode <= e.last; ++opcode) rows[opcode] = static_cast<uint16_t>(n);
  }
  return rows;
}

struct SignalCodes {
  SignalCode of[32];
};
constexpr SignalCodes signal_codes_of(chip::Generations generation) {
  SignalCodes codes = {};
#define V3D_QPU_SIGNAL_CODE(generations, code, signals, immediates) \
  if ((generations)&generation) codes.of[code] = {signals, immediates, true};
#include "gpu/qpu/isa/isa.def"
  return codes;
}

struct WaddrRow {
  chip::Generations generations;
  uint8_t address;
  WaddrInfo info;
};
constexpr WaddrRow kWaddrRows[] = {
#define V3D_QPU_WADDR(generations, address, waddr, name, unit, effect, uniform, reg, latency) \
  {generations, address, {name, Unit::k##unit, Effect::k##effect, uniform, reg, latency}},
#include "gpu/qpu/isa/isa.def"
};
using Waddrs = std::array<WaddrInfo, 64>;
constexpr Waddrs waddrs_of(chip::Generations generation) {
  Waddrs waddrs = {};
  for (const WaddrRow& row : kWaddrRows) {
    WaddrInfo& w = waddrs[row.address];
    if (row.generations & generation)
      w = row.info;
    else if (!w.name)
      w.name = row.info.name;
  }
  return waddrs;
}

/// The rows of one generation, found by their numbers.
struct Index {
  FirstRows add, mul;
  SignalCodes signals;
  Waddrs waddrs;
};
constexpr Index index_of(chip::Generations generation) {
  return {first_rows(generation, Alu::kAdd), first_rows(generation, Alu::kMul), signal_codes_of(generation),
          waddrs_of(generation)};
}
constexpr Index kIndex21 = index_of(k21), kIndex42 = index_of(k42), kIndex71 = index_of(k71);

const Index& index(chip::Generation generation) {
  switch (generation) {
    case chip::Generation::k21:  // no row is its
      return kIndex21;
    case chip::Generation::k42:
      return kIndex42;
    case chip::Generation::k71:
      return kIndex71;
  }
  chip::no_such_generation();
}

}  // namespace

std::span<const Encoding> encodings() { return kEncodings; }

std::span<const Encoding> encodings_from(chip::Generation generation, Alu alu, uint32_t opcode) {
  const Index& rows = index(generation);
  return std::span(kEncodings).subspan((alu == Alu::kAdd ? rows.add : rows.mul)[opcode & 255]);
}

const SignalCode* signal_codes(chip::Generation generation) { return index(generation).signals.of; }

const WaddrInfo& waddr_info(chip::Generation generation, uint8_t waddr) {
  return index(generation).waddrs[waddr & 63];
}

const char* signal_name(Signal signal) {
  return kSignalInfo[std::countr_zero(static_cast<unsigned>(signal))].name;
}

const char* name(NnMode mode) {
  static constexpr const char* kNames[] = {"uu", "su", "us", "ss"};
  return kNames[static_cast<int>(mode)];
}

const char* suffix(Unpack unpack) {
  static constexpr const char* kNames[] = {
#define V3D_QPU_UNPACK(unpack, suffix) suffix,
#include "gpu/qpu/isa/isa.def"
  };
  return kNames[static_cast<int>(unpack)];
}

const char* suffix(Pack pack) {
  static constexpr const char* kNames[kNumPacks] = {"", ".l", ".h"};
  return kNames[static_cast<int>(pack)];
}

const char* suffix(Cond cond) { return info(cond).suffix; }
const char* suffix(FlagWrite write) { return info(write).suffix; }

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
      modifiers.a = kFloatUnpacks[(opcode >> 2) & 3];
      modifiers.b = kFloatUnpacks[opcode & 3];
      return pack((opcode >> 4) & 3);
    case Form::kFloats:
      modifiers.a = kFloatUnpacks[(opcode >> 2) & 3];
      modifiers.b = kFloatUnpacks[opcode & 3];
      return true;
    case Form::kFloatsMul:
      modifiers.a = kFloatUnpacks[(opcode >> 2) & 3];
      modifiers.b = kFloatUnpacks[opcode & 3];
      return pack(((opcode >> 4) & 3) - 1);
    case Form::kHalves:
      modifiers.a = kHalfUnpacks[opcode - encoding.first];
      return true;
    case Form::kSelPack:
      return pack(selector & 3);
    case Form::kSelFloatPack:
      modifiers.a = kFloatUnpacks[(selector >> 2) & 3];
      return pack(selector & 3);
    case Form::kSelFloat:
      modifiers.a = kFloatUnpacks[(selector >> 2) & 3];
      return (selector & 3) == 3;
    case Form::kSelFloatMove:
      modifiers.a = kFloatUnpacks[(selector >> 2) & 7];
      return (selector >> 2) != 7 && pack(selector & 3);
    case Form::kSelIntMove:
      if ((selector >> 2) >= 5 || (selector & 3) != 3) return false;
      modifiers.a = kIntUnpacks[selector >> 2];
      return true;
    case Form::kOpFloatPack:
      modifiers.a = kFloatUnpacks[(opcode >> 2) & 3];
      return pack((selector >> 3) & 3);
    case Form::kOpFloat:
      modifiers.a = kFloatUnpacks[(opcode >> 2) & 3];
      return true;
    case Form::kMuxPack:
      return pack((selector >> 3) & 3);
    case Form::kMuxFmov:
      modifiers.a = kFloatUnpacks[(selector >> 3) & 3];
      return pack(((opcode & 1) << 1) | ((selector >> 5) & 1));
  }
  return false;
}

}  // namespace v3d::qpu
