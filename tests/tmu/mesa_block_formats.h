/// Mesa's decoders of compressed blocks are called through this one interface.
#pragma once

#include <cstdint>

namespace v3d::tmu {

/// Decodes one block into RGBA bytes, or 16-bit channels (EAC R11 and RG11: 1 or 2 per texel).
/// @param type  texture data format
void mesa_decode_block(uint32_t type, bool srgb, const uint8_t* block, uint32_t width, uint32_t height,
                       uint8_t* texels);

}  // namespace v3d::tmu
