/// A Footprint has the texels that a lookup touches, for whoever wants to know (gpu/perf/record).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/base/lanes.h"

namespace v3d::tmu {

class Footprint {
 public:
  /// One texel, or block of a compressed texture, of each lane.
  struct Texels {
    Lanes address;
    LaneMask lanes;
    uint32_t bytes;
  };

  void clear() {
    parts_.clear();
    stores_ = false;
  }
  void add(const Lanes& address, LaneMask lanes, uint32_t bytes) {
    if (lanes != 0) parts_.push_back({address, lanes, bytes});
  }
  void add_store(const Lanes& address, LaneMask lanes, uint32_t bytes) {
    add(address, lanes, bytes);
    stores_ = true;
  }
  std::span<const Texels> parts() const { return parts_; }
  bool stores() const { return stores_; }

 private:
  std::vector<Texels> parts_;
  bool stores_ = false;
};

}  // namespace v3d::tmu
