/// A SurfaceJob is a frame of VideoCore IV as SUBMIT_CL describes it, after the kernel's checks (vc4-abi.md
/// 2.3, 5). The kernel makes a rendering list of it; here it is run as it is.
#pragma once

#include <array>
#include <cstdint>

namespace v3d::cle {

struct SurfaceJob {
  /// One of the six surfaces.
  struct Surface {
    bool present = false;
    bool raw_samples = false;  ///< tiles of 16 KiB with all samples; else as `bits` says
    /// Of color_write those of TILE_RENDERING_MODE_CONFIG, of the others those of LOAD_ and
    /// STORE_TILE_BUFFER_GENERAL; of raw samples 0.
    uint16_t bits = 0;
    uint32_t address = 0;  ///< GPU virtual; its low 4 bits do not count
    uint64_t bytes = 0;    ///< up to the end of the BO: nothing of the surface lies beyond
  };
  Surface color_read, zs_read;
  /// The bits of color_write count also where it is not present: they say how many samples a tile has.
  Surface color_write, zs_write;
  Surface msaa_color_write, msaa_zs_write;

  uint16_t width = 0, height = 0;  ///< pixels; nothing is stored outside, whatever the tiles are
  /// Tiles that are rendered, inclusive; 256 in a row are that many.
  uint8_t min_x = 0, min_y = 0, max_x = 0, max_y = 0;
  /// Tiles are independent of each other, unless this is set: then they come in rows, one after the other.
  bool fixed_order = false;
  bool increasing_x = true, increasing_y = true;

  /// Where it is not set, the clear values of the job before stay in force.
  bool sets_clear_values = false;
  std::array<uint32_t, 2> clear_color{};
  uint32_t clear_z = 0;  ///< low 24 bits
  uint8_t clear_s = 0;

  /// GPU addresses of the binning list; equal: there is none, and tiles have no lists.
  uint32_t list_start = 0, list_end = 0;
  /// That are binned. A tile that is rendered outside of these has an empty list.
  uint8_t tiles_x = 0, tiles_y = 0;
};

}  // namespace v3d::cle
