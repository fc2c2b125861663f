/// These functions decode compressed blocks (Khronos Data Format Specification 1.3: ETC2/EAC, S3TC and ASTC
/// chapters).
#pragma once

#include "gpu/tmu/texel/format.h"

namespace v3d::tmu {

// 8-bit channels.
void decode_etc2_rgb(const uint8_t* block, bool srgb, BlockTexel* texels);
void decode_etc2_punchthrough(const uint8_t* block, bool srgb, BlockTexel* texels);
void decode_etc2_rgba(const uint8_t* block, bool srgb, BlockTexel* texels);
void decode_bc1(const uint8_t* block, bool srgb, BlockTexel* texels);
void decode_bc2(const uint8_t* block, bool srgb, BlockTexel* texels);
void decode_bc3(const uint8_t* block, bool srgb, BlockTexel* texels);

// 11-bit channels: 0..2047, or -1023..1023 as int16_t.
void decode_eac_r11(const uint8_t* block, bool srgb, BlockTexel* texels);
void decode_eac_signed_r11(const uint8_t* block, bool srgb, BlockTexel* texels);
void decode_eac_rg11(const uint8_t* block, bool srgb, BlockTexel* texels);
void decode_eac_signed_rg11(const uint8_t* block, bool srgb, BlockTexel* texels);

/// 16-bit channels, or 8-bit ones for sRGB. LDR profile: illegal blocks, HDR void extents
/// and partitions with HDR endpoints give the error colour.
void decode_astc_block(const uint8_t* block, bool srgb, int width, int height, BlockTexel* texels);

template <int kWidth, int kHeight>
void decode_astc(const uint8_t* block, bool srgb, BlockTexel* texels) {
  decode_astc_block(block, srgb, kWidth, kHeight, texels);
}

}  // namespace v3d::tmu
