/// This is the texture unit as threads of V3D 2.1 use it (vc4-graphics.md 5.1).
#pragma once

#include "gpu/qpu/run/vc4_thread.h"
#include "gpu/tmu/lookup/unit.h"

namespace v3d::qpu::vc4 {

class Textures final : public Tmu {
 public:
  explicit Textures(tmu::Unit& unit) : unit_(unit) {}

  /// Before each thread. @param live  lanes that exist: of pixels, those with coverage. Whole quads of these
  /// take part in lookups.
  void begin_thread(LaneMask live) { live_ = live; }

  void set_footprint(tmu::Footprint* footprint) override { unit_.set_footprint(footprint); }

  Lanes texture(Thread&, const Lookup& lookup) override {
    tmu::PackedLookup packed;
    // One by one, as they were written just before: a processor waits that reads them together.
    const volatile uint32_t* const p = lookup.p;
    for (size_t i = 0; i < packed.p.size(); ++i) packed.p[i] = p[i];
    packed.written = static_cast<uint8_t>((lookup.has_t ? tmu::kT : 0) | (lookup.has_r ? tmu::kR : 0) |
                                          (lookup.has_b ? tmu::kB : 0));
    packed.live = live_;
    packed.s = lookup.s;
    packed.t = lookup.t;
    packed.r = lookup.has_r ? Lanes(lookup.r) : Lanes{};
    if (lookup.has_b) packed.b = lookup.b;  // else nobody looks at it
    return unit_.packed(packed);
  }

 private:
  tmu::Unit& unit_;
  LaneMask live_ = kAllLanes;
};

}  // namespace v3d::qpu::vc4
