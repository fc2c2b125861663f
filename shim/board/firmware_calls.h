/// What the daemon does for /dev/vcio and /dev/mem: memory with bus addresses, programs on QPUs, and the
/// V3D's registers of boards with VideoCore IV (wire::FirmwareCall).
#pragma once

#include <cstdint>

#include "ioctl/link/firmware.h"

namespace v3d::shim {

/// Whether this board has such.
bool has_user_programs();

/// 0 or a negative errno. @param mapped  of kMap* and kAllocateShared: the descriptor
int call_firmware(wire::FirmwareCall call, uint32_t a, uint32_t b, uint32_t c, uint32_t* answer,
                  int* mapped = nullptr, uint32_t* handle = nullptr);

}  // namespace v3d::shim
