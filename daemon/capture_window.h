/// The window says which jobs go into a capture: all, those of some frames, or those between two triggers.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu/base/memory.h"
#include "gpu/chip/generation.h"
#include "gpu/device/device.h"

namespace v3d::daemon {

struct CaptureFrames {
  uint32_t first = 1, last = UINT32_MAX;  ///< of each program's, from 1
  /// "A-B" or "A". Nothing when it is neither.
  static std::optional<CaptureFrames> parse(const std::string& text);
};

/// Thread safe.
class CaptureWindow {
 public:
  /// @param open  whether it is before the first toggle()
  CaptureWindow(CaptureFrames frames, bool open) : frames_(frames), open_(open) {}

  bool takes(uint32_t frame) const { return open_ && frame >= frames_.first && frame <= frames_.last; }
  /// @return  whether it is open now
  bool toggle() { return !open_.fetch_xor(1); }

 private:
  const CaptureFrames frames_;
  std::atomic<uint8_t> open_;
};

/// Counts the frames of one context as its jobs come. A frame ends where the next image of the size, format
/// and layout of its first one is drawn, as for `v3demu profile --frames-by targets`.
class FrameCounter {
 public:
  struct Target {
    uint32_t address, width, height, format, layout;
    bool looks_like(const Target& other) const;
  };

  /// The frame to which the next job belongs that draws to no image.
  uint32_t current();
  /// The same of jobs that draw. @param targets  what they store, in the order of the list
  uint32_t draw(std::vector<Target> targets);

 private:
  uint32_t current_ = 0;
  bool drawn_ = false;
  std::vector<Target> first_;
};

/// Colour images that the tile lists of a rendering list store, each once. Of what a program writes the first
/// ones are enough: they tell a frame from the next.
inline constexpr uint32_t kMostTargets = 64, kMostTileLists = 1024;
std::vector<FrameCounter::Target> targets_of(Memory memory, chip::Generation generation,
                                             const device::ClJob& job);

}  // namespace v3d::daemon
