/// A Followed is a pixel with what its histories end with; compare() holds that against memory.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gpu/base/memory.h"
#include "gpu/tlb/tile_buffer.h"
#include "tools/inspect/inspector.h"

namespace v3d::inspect {

/// What a pixel and its samples hold when they are stored, by their histories.
struct Followed {
  PixelPlace place;
  tlb::Config config;
  std::vector<tlb::LoadStore> stores;                           ///< the last one of each image
  std::array<std::vector<tlb::TileBuffer::Sample>, 4> samples;  ///< for each of the stores
  bool has_fragment = false;
};

struct Counts {
  int pixels = 0;
  int compared = 0;  ///< values: samples of stores
  int drawn = 0;     ///< of pixels that have fragments
  int wrong = 0;
  std::map<std::string, int> kinds;    ///< what was compared
  std::map<std::string, int> excused;  ///< what could not be, by reasons that the documents name
  std::map<std::string, int> failed;   ///< what could not be, and should
};

/// @param memory  as the job leaves it
void compare(Memory memory, const Followed& followed, Counts& counts);

}  // namespace v3d::inspect
