/// The configuration is what the environment says, read once. It is usable before any constructor has run.
///
/// V3DEMU_SOCKET, XDG_RUNTIME_DIR  where the daemon is (place.h)
/// V3DEMU_DEVICE and what else a daemon goes by: the table of ioctl/link/place.h
/// V3DEMU_DAEMON, V3DEMU_LOG       its program and where its messages go (launch.cc)
/// V3DEMU_GPU_MEM=MIB              that the firmware of a Pi 0 to 3 keeps (shim/board/firmware.h)
/// V3DEMU_VC4=0                    no display device
/// V3DEMU_BOARD=0                  the machine stays what it is: no device tree, /proc/cpuinfo unchanged
/// V3DEMU_HOST_DRI=1               the host's own DRM nodes stay visible, ours take free numbers
/// V3DEMU_TREE=real                the device tree is mounted (run --sandbox): paths are left alone
/// V3DEMU_WSI=native               do not choose the presentation path (presentation.h)
/// V3DEMU_RUN                      of which `v3demu run` this process is, for the daemon (wire.h)
/// V3DEMU_COUNT=1                  tell in the end how many requests and system calls were made (counts.h)
#pragma once

#include "shim/process/place.h"

namespace v3d::shim {

/// The place is that of the user as whom the program started, who may have become another since: place().
struct Config : DaemonPlace {
  Text<128> run;    ///< $V3DEMU_RUN
  bool host_dri;    ///< $V3DEMU_HOST_DRI=1: the host's own DRM nodes stay visible
  bool no_vc4;      ///< $V3DEMU_VC4=0: no display device
  bool no_board;    ///< $V3DEMU_BOARD=0: nothing but the GPU is the board's
  bool real_tree;   ///< $V3DEMU_TREE=real: the device tree is where programs look for it
  bool native_wsi;  ///< $V3DEMU_WSI=native: leave the choice of presentation alone
  bool counts;      ///< $V3DEMU_COUNT=1: tell in the end what was counted
  Text<32> device;  ///< $V3DEMU_DEVICE
  uint32_t chip;    ///< 71 or 42 by $V3DEMU_DEVICE: what a daemon started now would model
};

const Config& config();

/// getenv without getenv, which the shim interposes. nullptr when unset.
const char* environment_variable(const char* name);

/// One line on stderr, prefixed by the library's name. The only way the shim ever prints.
void complain(const char* what, const char* detail = "", const char* more = "");

}  // namespace v3d::shim
