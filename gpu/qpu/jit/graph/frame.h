/// The frame of code of graphs: offsets from rsp.
#pragma once

namespace v3d::qpu::jit {

inline constexpr int kLaneBytes = 64;  // of a value
inline constexpr int kHostMode = 0,    // MXCSR as it was
    kOperands = 64,                    // of calls
    kSaved = kOperands + 3 * kLaneBytes, kSavedBytes = 32 * kLaneBytes, kSlots = kSaved + kSavedBytes;

}  // namespace v3d::qpu::jit
