/// What programs ask of the firmware and of the V3D's registers, on boards with VideoCore IV: a request of
/// the protocol of wire.h. No dependencies: the shim includes it.
#pragma once

#include <cstdint>

namespace v3d::wire {

/// The file of the request stands for a process: what it allocates is its own, and goes with the file.
enum class FirmwareCall : uint32_t {
  kAllocate,      ///< bytes, alignment, flags -> handle; 0: none
  kLock,          ///< handle -> bus address; 0: no such
  kUnlock,        ///< handle -> 0, or else no such
  kRelease,       ///< the same
  kEnable,        ///< whether QPUs have power -> 0
  kExecute,       ///< programs, bus address of pairs (uniforms, code), ms -> 0, or kFirmwareTimeout
  kMapMemory,     ///< physical address, bytes -> offset in the descriptor; EPERM: not wholly of an allocation
  kMapRegisters,  ///< nothing -> 0; a page to read
  kWriteRegister,   ///< offset in the page, value -> nothing; EINVAL: nothing is known of it
  kAllocateShared,  ///< bytes -> bus address, and in `handle` the firmware's; a dma-buf, with which it goes
};
inline constexpr uint32_t kFirmwareTimeout = 0x80000000;

struct FirmwareRequest {
  uint64_t token;
  FirmwareCall call;
  uint32_t words[3];
  uint32_t
      kept_mib;  ///< of the board's memory, that the firmware keeps for itself and such programs; 0: as usual
  uint32_t reserved;
};
struct FirmwareReply {
  uint32_t word;
  uint32_t handle;
};

/// The page of registers, and what stands in its last 8 bytes, where there are no registers.
inline constexpr uint32_t kRegisterBytes = 4096, kRegisterMark = kRegisterBytes - 8;
inline constexpr uint64_t kRegisterMagic = 0x676552442d563364;

}  // namespace v3d::wire
