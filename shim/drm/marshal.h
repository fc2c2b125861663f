/// Which memory of the client an ioctl argument leads to. The daemon sees that memory as segments of the
/// request; what cannot be read is left out, so that the daemon's copy_from_user fails where the kernel's
/// would.
#pragma once

#include <cstdint>
#include <span>

#include "shim/link/connection.h"

namespace v3d::shim {

/// Whose ioctl numbers: both drivers use 0x40 to 0x9f, each in its way.
enum class Driver { kV3d, kVc4, kFence, kFramebuffer };  // kFence: sync_file and dma-buf

/// Appends to `call`, whose payload so far is IoctlRequest and the argument, the segments and descriptors
/// that the argument names, and enters their numbers in the IoctlRequest. false: no memory.
/// @param syncobjs  handles; 0: none
/// @param signalled  becomes the one of these that a submit on V3D gives a fence, 0: none
bool append_segments(Call* call, Driver driver, uint32_t request, uint32_t arg_size,
                     std::span<const uint32_t> syncobjs, uint32_t* signalled);

/// A signal takes the request back (kInterruptible).
bool is_wait(Driver driver, uint32_t request);

inline uint32_t ioctl_type(uint32_t request) { return request >> 8 & 0xff; }
inline uint32_t ioctl_number(uint32_t request) { return request & 0xff; }
inline uint32_t ioctl_size(uint32_t request) { return request >> 16 & 0x3fff; }
inline bool ioctl_writes(uint32_t request) { return request >> 30 & 1; }  ///< user to kernel
inline bool ioctl_reads(uint32_t request) { return request >> 31 & 1; }   ///< kernel to user

}  // namespace v3d::shim
