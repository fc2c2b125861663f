/// The daemon knows a process that asks the firmware for memory and programs by an open file, which stands
/// for it: what the firmware gave goes with the last descriptor of that file. Whoever makes calls for another
/// process defines find_firmware_file() anew (tools/box).
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace v3d::shim {

struct FirmwareFile {
  int fd;  ///< of this process
  pid_t daemon;
  uint64_t token;
};

/// The caller's, opened if it has none. Children of a fork go on with it. 0 or a negative errno.
int find_firmware_file(FirmwareFile* out);

/// Opens one; the descriptor is whoever's that called. 0 or a negative errno.
int open_firmware_file(FirmwareFile* out);

}  // namespace v3d::shim
