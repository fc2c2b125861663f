/// The kernel shows a console on the display, whose memory is that of /dev/fb0 too (Linux drm_fbdev_dma.c,
/// drm_fb_helper.c).
#pragma once

#include <cstdint>
#include <memory>

#include "ioctl/display/state.h"

namespace v3d::ioctl::kms {

inline constexpr uint32_t kConsoleBits = 16;  ///< as vc4 asks for (vc4_drv.c)

/// As large as the memory must be: whole pages.
uint64_t console_bytes();
/// A framebuffer of the preferred mode.
/// @param mmap_offset  of its object, from Kernel::new_mmap_offset()
std::shared_ptr<Framebuffer> make_console(std::shared_ptr<Buffer> memory, uint64_t mmap_offset);

/// Lights the monitor of a CRTC with the console on the primary plane.
/// @param mode  blob of the preferred mode
void show_console(DisplayState& state, uint32_t pipe, const FramebufferPtr& console, const BlobPtr& mode);

}  // namespace v3d::ioctl::kms
