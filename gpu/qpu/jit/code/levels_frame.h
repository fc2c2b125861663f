/// Lookups by levels keep what they know at these places of the Frame, and in these registers meanwhile.
#pragma once

#include <xbyak/xbyak.h>

#include <cstddef>

#include "gpu/qpu/jit/code/frame.h"

namespace v3d::qpu::jit {

constexpr size_t in_levels(size_t offset) { return offsetof(Frame, levels) + offset; }
inline constexpr size_t kDetail = in_levels(offsetof(Frame::Levels, level)),
                        kWeights = in_levels(offsetof(Frame::Levels, weights)),
                        kSome = in_levels(offsetof(Frame::Levels, some)),
                        kNext = in_levels(offsetof(Frame::Levels, next)),
                        kOutOfAll = in_levels(offsetof(Frame::Levels, out)),
                        kTarget = in_levels(offsetof(Frame::Levels, target)),
                        kAllOfThem = in_levels(offsetof(Frame::Levels, lanes)),
                        kNearestLanes = in_levels(offsetof(Frame::Levels, nearest)),
                        kBlended = in_levels(offsetof(Frame::Levels, blended)),
                        kLeft = in_levels(offsetof(Frame::Levels, left)),
                        kOfNext = in_levels(offsetof(Frame::Levels, of_next)),
                        kGuesses = in_levels(offsetof(Frame::Levels, guesses)),
                        kToChannels = in_levels(offsetof(Frame::Levels, to_channels));

inline constexpr size_t kPartBytes = sizeof(Lanes) / 2, kQuadBytes = sizeof(Lanes) / 4, kChannels = 4;
constexpr size_t at_part(int part) { return static_cast<size_t>(part) * kPartBytes; }

inline const Xbyak::Ymm kY2(2), kY3(3), kY4(4), kY5(5), kY6(6);
inline const Xbyak::Xmm kX2(2), kX3(3), kX4(4), kX5(5), kX6(6);

}  // namespace v3d::qpu::jit
