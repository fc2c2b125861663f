/// A Profile is a chip as data. Identity registers: drm-abi.md 2.8.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "gpu/chip/generation.h"

namespace v3d::chip {

struct Profile {
  const char* name;
  const char* description;
  const char* v3d_device;      ///< name of the platform device, as in by-path links and DRM's unique name
  const char* display_device;  ///< the same of the one that the vc4 driver has
  Generation generation;
  int revision;  ///< HUB_IDENT3 IPREV
  int slices;
  int qpus_per_slice;
  int clock_mhz;
  double read_ns_per_byte, write_ns_per_byte;  ///< of memory that streams (compute-and-timing.md 18)
  uint32_t uifcfg, hub_ident1, hub_ident2, hub_ident3;
  uint32_t core_ident0, core_ident1, core_ident2;

  int qpu_count() const { return slices * qpus_per_slice; }
  /// Instructions that one QPU issues in a second: one in four clocks.
  double qpu_rate() const { return clock_mhz * 1e6 / 4; }
  /// CFG4 of a compute job is the number of batches, not that number minus 1 (compute-and-timing.md 1).
  bool csd_batches_exact() const {
    switch (generation) {
      case Generation::k42:
        return false;
      case Generation::k71:
        return revision >= 6;
    }
    no_such_generation();
  }
  /// GL shader state records have the form with draw index (Mesa v3d_device_info.h,
  /// v3d_device_has_draw_index).
  bool has_draw_index() const {
    switch (generation) {
      case Generation::k42:
        return false;
      case Generation::k71:
        return revision >= 10;
    }
    no_such_generation();
  }
  /// QPUs that are equally busy get batches in order; else slices take turns, which leaves gaps when there
  /// are fewer batches than QPUs (compute-and-timing.md 3).
  bool csd_fills_in_order() const {
    switch (generation) {
      case Generation::k42:
        return false;
      case Generation::k71:
        return true;
    }
    no_such_generation();
  }
  /// Unit of the constant factor of depth offsets on 16-bit depth (cle-and-tiles.md 4.6).
  double depth16_offset_unit() const {
    switch (generation) {
      case Generation::k42:
        return 0x1p-24;
      case Generation::k71:
        return 0x1p-16;
    }
    no_such_generation();
  }
  /// Fraction bits of Xs, Ys in shaded vertices and of CLIPPER_XY_SCALING (cle-and-tiles.md 3.3).
  int coord_fraction_bits() const {
    switch (generation) {
      case Generation::k42:
        return 8;
      case Generation::k71:
        return 6;
    }
    no_such_generation();
  }
};

/// All, the default first.
std::span<const Profile> profiles();
/// nullptr when there is no profile of that name.
const Profile* find_profile(std::string_view name);
/// rpi5.
const Profile& default_profile();

}  // namespace v3d::chip
