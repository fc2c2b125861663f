/// Marshalling finds the memory of the client that an ioctl argument leads to. The daemon sees that memory as
/// segments of the request; what cannot be read is left out, so that the daemon's copy_from_user fails where
/// the kernel's would.
#pragma once

#include <cstdint>
#include <span>

#include "shim/drm/driver.h"
#include "shim/link/connection.h"
#include "shim/link/submit_order.h"

namespace v3d::shim {

/// What a submit on V3D gives a fence.
struct Signals {
  uint32_t wanted = 0;  ///< the one of `syncobjs`, 0: none
  SyncobjSet all = 0;
};

/// Appends to `call`, whose payload so far is IoctlRequest and the argument, the segments and descriptors
/// that the argument names, and enters their numbers in the IoctlRequest. false: no memory.
/// @param word  the request
/// @param syncobjs  handles; 0: none
bool append_segments(Call* call, Driver driver, uint32_t word, uint32_t arg_size,
                     std::span<const uint32_t> syncobjs, Signals* signals);

/// A signal takes the request back (kInterruptible).
bool is_wait(Driver driver, uint32_t word);

}  // namespace v3d::shim
