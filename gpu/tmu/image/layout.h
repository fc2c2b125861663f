/// Layouts say how images lie in memory: utiles, LT, UB-linear, UIF (texture.md 1), and those of VideoCore IV
/// (vc4-graphics.md 5.4). The TMU, the TLB and the TFU use them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/base/memory.h"

namespace v3d::tmu {

/// The values below 8 are those of the TLB's "memory format" on V3D (texture.md 1.2).
enum class Tiling : uint8_t {
  kRaster = 0,
  kLineartile = 1,
  kUblinear1 = 2,
  kUblinear2 = 3,
  kUif = 4,
  kUifXor = 5,
  // Of VideoCore IV:
  kT = 8,               ///< gpu/base/t_tiles.h
  kLineartileRows = 9,  ///< its LT: rows of utiles, as many as the image has
};

/// Whether utiles stand in blocks of 2x2.
constexpr bool has_uif_blocks(Tiling tiling) {
  return tiling >= Tiling::kUblinear1 && tiling <= Tiling::kUifXor;
}

/// Width and height of a 64-byte utile of V3D in texels. @param cpp  1, 2, 4, 8 or 16
constexpr uint32_t utile_width(uint32_t cpp) {
  return cpp == 1 ? 8 : cpp <= 4 ? (cpp == 2 ? 8 : 4) : (cpp == 8 ? 4 : 2);
}
constexpr uint32_t utile_height(uint32_t cpp) { return cpp == 1 ? 8 : cpp <= 4 ? 4 : 2; }
/// The same on VideoCore IV, of 1, 2, 4 or 8 bytes: all but the smallest texels are in rows of 16 bytes.
constexpr uint32_t vc4_utile_row_bytes(uint32_t cpp) { return cpp == 1 ? 8 : 16; }
constexpr uint32_t vc4_utile_width(uint32_t cpp) { return vc4_utile_row_bytes(cpp) / cpp; }
constexpr uint32_t vc4_utile_height(uint32_t cpp) { return 64 / vc4_utile_row_bytes(cpp); }

/// Byte offset of texel (x, y) inside one image level.
/// @param stride_or_height  raster and layouts of VideoCore IV: bytes per row, of T in whole tiles; UIF:
/// padded
///                          height in UIF blocks; else ignored
/// Source: Mesa v3d_tiling.c, v3d_get_uif_pixel_offset and its siblings; vc4_tiling.c.
uint32_t texel_offset(Tiling tiling, uint32_t cpp, uint32_t stride_or_height, uint32_t x, uint32_t y);

/// Extra UIF-block rows below an image of that many block rows (texture.md 1.4).
uint32_t ub_pad(uint32_t block_rows);

/// One 2D image in GPU memory.
struct Surface {
  GpuAddr address;
  Tiling tiling;
  uint32_t cpp;               ///< 1, 2, 4, 8 or 16
  uint32_t stride_or_height;  ///< as for texel_offset
};

/// Copies the rectangle [x, x + width) x [y, y + height) of a surface to rows of texels in host memory.
/// Nothing outside the rectangle is touched; addresses wrap at 4 GiB.
/// @param pitch  bytes from one host row to the next, at least width * cpp
void load_rectangle(Memory memory, const Surface& surface, uint32_t x, uint32_t y, uint32_t width,
                    uint32_t height, uint8_t* rows, size_t pitch);
/// The same in the other direction.
void store_rectangle(Memory memory, const Surface& surface, uint32_t x, uint32_t y, uint32_t width,
                     uint32_t height, const uint8_t* rows, size_t pitch);

inline constexpr uint32_t kMaxLevels = 16;

/// One level of an image, as hardware infers it.
struct Level {
  Tiling tiling;
  uint32_t width, height, depth;         ///< extent for sampling, in blocks of the format
  uint32_t padded_width, padded_height;  ///< in texels (blocks)
  uint32_t stride;                       ///< bytes of one padded row
  uint32_t padded_height_ub;             ///< padded height in UIF blocks (UIF only)
  uint32_t slice_size;                   ///< bytes of one 2D slice
  int64_t offset;                        ///< from the base address of level 0; negative above level 0
};

/// Shape of a whole image, for compute_levels.
struct ImageShape {
  uint32_t width, height, depth;  ///< level 0, in texels
  uint32_t cpp;                   ///< bytes per texel or block
  uint32_t block_width = 1, block_height = 1;
  uint32_t num_levels = 1;   ///< 1..kMaxLevels
  bool raster = false;       ///< 1D images
  bool uif_top = false;      ///< level 0 is strictly UIF: multisample, shared
  bool multisample = false;  ///< doubles width and height
};

/// Fills levels[0 .. num_levels). Sizes are taken modulo 4 GiB: no input is invalid except a cpp.
/// Source: Mesa v3d_resource.c, v3d_setup_slices (texture.md 1.4, 1.5).
void compute_levels(const ImageShape& shape, Level* levels);
/// The same of VideoCore IV, whose texture unit takes T or LT by the size of a level alone (vc4-graphics.md
/// 5.5). Of the shape only size, cpp of 1 to 8, blocks and levels count. Driver's images that others share
/// are T whatever their size: no texture unit reads these.
void compute_vc4_levels(const ImageShape& shape, Level* levels);

}  // namespace v3d::tmu
