/// These functions say what instructions of V3D 2.1 do to ports, by their fields.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

#include "gpu/qpu/isa/vc4.h"

namespace v3d::qpu::vc4 {

/// Of ports that have one address, or one that means them in both columns.
constexpr uint8_t address_of(WritePort port) {
  constexpr struct {
    uint8_t address;
    WritePort port;
  } kAddresses[] = {
#define V3D_VC4_WRITE(address, file, port, text, unit) {address, WritePort::k##port},
#include "gpu/qpu/isa/vc4.def"
  };
  for (const auto& row : kAddresses)
    if (row.port == port) return row.address;
  return kAddressNop;
}
constexpr uint8_t address_of(ReadPort port) {
  constexpr struct {
    uint8_t address;
    ReadPort port;
  } kAddresses[] = {
#define V3D_VC4_READ(address, file, port, text) {address, ReadPort::k##port},
#include "gpu/qpu/isa/vc4.def"
  };
  for (const auto& row : kAddresses)
    if (row.port == port) return row.address;
  return kAddressNop;
}

/// Those besides is_tmu() and is_sfu() at which a write neither waits nor costs more than an instruction.
constexpr bool is_quick(WritePort port) {
  switch (port) {
    case WritePort::kMsFlags:
    case WritePort::kStencilSetup:
    case WritePort::kTlbZ:
    case WritePort::kTlbColorMs:
    case WritePort::kTlbColorAll:
    case WritePort::kVpm:
    case WritePort::kVpmReadSetup:
    case WritePort::kVpmWriteSetup:
      return true;
    default:
      return false;
  }
}
constexpr bool is_sfu(WritePort port) {
  return port == WritePort::kSfuRecip || port == WritePort::kSfuRecipsqrt || port == WritePort::kSfuExp ||
         port == WritePort::kSfuLog;
}
constexpr bool is_tmu(WritePort port) { return address_of(port) >= address_of(WritePort::kTmu0S); }
/// Of one that is_tmu(): 0 or 1.
constexpr uint32_t tmu_of(WritePort port) { return address_of(port) >= address_of(WritePort::kTmu1S); }
/// Of one that is_tmu(): 0 S, which starts a lookup, 1 T, 2 R, 3 B.
constexpr uint32_t tmu_parameter_of(WritePort port) { return address_of(port) % 4; }

inline bool writes(const Instruction& i, uint8_t address) {
  return i.waddr_add == address || i.waddr_mul == address;
}
inline bool writes(const Instruction& i, WritePort port) { return writes(i, address_of(port)); }
inline bool writes_unit(const Instruction& i, uint8_t waddr, Unit unit) {
  return waddr >= kFirstPort && write_address(kFileA, waddr).unit == unit && i.form() != Form::kBranch;
}
inline bool writes_unit(const Instruction& i, Unit unit) {
  return writes_unit(i, i.waddr_add, unit) || writes_unit(i, i.waddr_mul, unit);
}

/// What takes place, whether an operand chooses it or not.
inline bool fetches(const Instruction& i, ReadPort port) {
  if (i.form() != Form::kAlu) return false;
  return i.raddr_a == address_of(port) ||
         (i.signal != Signal::kSmallImmediate && i.raddr_b == address_of(port));
}

/// Follows the set-up of lookups, one word after the other: writes to t, r and b, and to s after these, take
/// a uniform each; s alone loads the word at an address (vc4-qpu.md 4.8).
class LookupWrites {
 public:
  struct Found {
    uint8_t uniforms = 0;  ///< that the word takes by its writes
    uint8_t started = 0;   ///< lookups: bit n of TMU n
  };
  Found step(const Instruction& i) {
    Found found;
    for (const uint8_t waddr : {i.waddr_add, i.waddr_mul}) {
      if (!writes_unit(i, waddr, Unit::kTmu)) continue;
      const auto offset = static_cast<uint8_t>(waddr - address_of(WritePort::kTmu0S));
      bool& open = open_[offset / 4];
      if (offset % 4 != 0) open = true;
      found.uniforms = static_cast<uint8_t>(found.uniforms + open);
      if (offset % 4 != 0) continue;
      found.started = static_cast<uint8_t>(found.started | 1u << offset / 4);
      open = false;
    }
    return found;
  }

 private:
  std::array<bool, 2> open_{};  ///< something but s was written
};

}  // namespace v3d::qpu::vc4
