/// A captured frame is one of VideoCore IV as words of a capture.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "gpu/chip/profile.h"
#include "gpu/device/surface_job.h"

namespace v3d::daemon {

/// The six surfaces in the order of SurfaceJob: 1 where it is there, 2 for raw samples; bits, address, bytes
/// (two words). Then width and height; tiles, a byte each; flags (1 in order, 2 and 4 increasing X and Y, 8
/// clear values); these; the binning list and its tiles.
using FrameWords = std::array<uint32_t, 6 * 5 + 10>;

/// Whether render jobs of a chip have frames, not rendering lists.
bool brings_surfaces(const chip::Profile& profile);

FrameWords words_of(const device::SurfaceJob& job);
/// Null if a word says what no frame has.
std::shared_ptr<const device::SurfaceJob> frame_of(const FrameWords& words);

}  // namespace v3d::daemon
