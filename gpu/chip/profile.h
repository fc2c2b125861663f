/// A Profile is a chip as data. Identity registers: drm-abi.md 2.8.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "gpu/chip/generation.h"

namespace v3d::chip {

/// What the fixed functions of a generation do differently, once packets are decoded.
struct Pipeline {
  /// Largest magnitude of Xs, Ys in shaded vertices, in 1/64 px, relative to the viewport's centre.
  int32_t max_view_coordinate;
  /// Lines both of whose ends lie beyond one of the four sides of the viewport are not drawn, even where
  /// their width would reach into it.
  bool rejects_lines_beside_view;
  /// One depth for all samples of a pixel, that of its centre (vc4-graphics.md 3.3).
  bool depth_per_pixel;
  /// The fragment program says what to do with stencil values; no packet does (vc4-graphics.md 4.3).
  bool stencil_from_program;
  /// Lookups return one word of four bytes, not words or halves of each channel (vc4-graphics.md 5.1).
  bool packed_lookups;
  /// Attributes reach programs as the bytes that they are in memory; programs convert them.
  bool raw_attributes;
  /// Points and lines always have the varyings that tell where in them a fragment lies.
  bool implicit_varyings_always;
  bool has_tfu, has_compute_jobs;
};
inline constexpr Pipeline kPipelineOfV3d = {.max_view_coordinate = 1 << 21,
                                            .rejects_lines_beside_view = false,
                                            .depth_per_pixel = false,
                                            .stencil_from_program = false,
                                            .packed_lookups = false,
                                            .raw_attributes = false,
                                            .implicit_varyings_always = false,
                                            .has_tfu = true,
                                            .has_compute_jobs = true};
/// s12.4 has no more than 2047.9 px.
inline constexpr Pipeline kPipelineOfVideoCoreIv = {.max_view_coordinate = 2048 * 64 - 4,
                                                    .rejects_lines_beside_view = true,
                                                    .depth_per_pixel = true,
                                                    .stencil_from_program = true,
                                                    .packed_lookups = true,
                                                    .raw_attributes = true,
                                                    .implicit_varyings_always = true,
                                                    .has_tfu = false,
                                                    .has_compute_jobs = false};
constexpr const Pipeline& pipeline(Generation generation) {
  switch (generation) {
    case Generation::k21:
      return kPipelineOfVideoCoreIv;
    case Generation::k42:
    case Generation::k71:
      return kPipelineOfV3d;
  }
  no_such_generation();
}

struct Profile {
  const char* name;
  const char* description;
  const char* drivers;         ///< what programs have on it, in a few words, for lists
  const char* v3d_device;      ///< name of the platform device, as in by-path links and DRM's unique name
  const char* display_device;  ///< the same of the one that the vc4 driver has
  Generation generation;
  int revision;  ///< HUB_IDENT3 IPREV; 0 where there is no hub
  int slices;
  int qpus_per_slice;
  int clock_mhz;
  double read_ns_per_byte, write_ns_per_byte;  ///< of memory that streams (compute-and-timing.md 18)
  /// MiB that buffers are made of (vc4-abi.md 6.5); 0: no limit but the board's memory
  int buffer_memory_mib;
  uint32_t uifcfg, hub_ident1, hub_ident2, hub_ident3;
  uint32_t core_ident0, core_ident1, core_ident2;

  int qpu_count() const { return slices * qpus_per_slice; }
  /// Instructions that one QPU issues in a second: one in four clocks.
  double qpu_rate() const { return clock_mhz * 1e6 / 4; }
  /// CFG4 of a compute job is the number of batches, not that number minus 1 (compute-and-timing.md 1).
  bool csd_batches_exact() const {
    switch (generation) {
      case Generation::k21:  // has no compute jobs
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
      case Generation::k21:
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
      case Generation::k21:  // has no compute jobs
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
      case Generation::k21:  // has depth of 24 bits alone
      case Generation::k42:
        return 0x1p-24;
      case Generation::k71:
        return 0x1p-16;
    }
    no_such_generation();
  }
  /// Fraction bits of Xs, Ys in shaded vertices and of CLIPPER_XY_SCALING (cle-and-tiles.md 3.3,
  /// vc4-graphics.md 2.2).
  int coord_fraction_bits() const {
    switch (generation) {
      case Generation::k21:
        return 4;
      case Generation::k42:
        return 8;
      case Generation::k71:
        return 6;
    }
    no_such_generation();
  }
  const Pipeline& pipeline() const { return chip::pipeline(generation); }
};

/// All, the default first.
std::span<const Profile> profiles();
/// nullptr when there is no profile of that name.
const Profile* find_profile(std::string_view name);
/// rpi5.
const Profile& default_profile();

}  // namespace v3d::chip
