/// @file Texels of compressed formats, through the cache of decoded blocks.
#include "gpu/tmu/lookup/addressing.h"

namespace v3d::tmu {
namespace {

LanesF channel_value(BlockScale scale, Lanes v) {
  switch (scale) {
    case BlockScale::kUnorm8:
      return unorm8(to_float(as_int(v)));
    case BlockScale::kUnorm16: {
      // As the ASTC specification makes halves of them: truncated, and 65535 is 1.
      const LanesF f = to_float(as_int(v)) * 0x1p-16f;
      return v == 0xffffu ? splat(1.0f) : as_float(as_uint(f) & ~0x1fffu);
    }
    case BlockScale::kUnorm11:
      return to_float(as_int(v)) / 2047.0f;
    case BlockScale::kSnorm11:
      break;
  }
  return to_float(as_int(v << 16) >> 16) / 1023.0f;
}

}  // namespace

void BlockCache::decode(Memory memory, const Format& format, bool srgb, GpuAddr address, Entry& entry) {
  uint8_t block[16];
  memory.read(address, block, format.cpp);
  format.decode_block(block, srgb, entry.texels);
  entry.address = address;
  entry.kind = kind_of(format, srgb);
}

Texel read_compressed(const Plan& plan, TexelMemory& texels, const TexelPlace& at, LaneMask mask) {
  if (texels.footprint) texels.footprint->add(at.address, mask, plan.format->cpp);
  Texel texel = {};
  for (int i = 0; i < kLanes; ++i) {
    if (!((mask >> i) & 1)) continue;
    if (texels.meter.ended()) break;
    const BlockTexel* block = texels.blocks.find(texels.meter, texels.memory, *plan.format,
                                                 plan.block_transfer != nullptr, at.address[i]);
    for (int c = 0; c < 4; ++c) texel.c[c][i] = block[at.in_block[i]][c];
  }
  for (int c = 0; c < 4; ++c) {
    if (plan.block_transfer)
      texel.c[c] =
          c < 3 ? look_up(plan.block_transfer, texel.c[c]) : as_uint(unorm8(to_float(as_int(texel.c[c]))));
    else
      texel.c[c] = as_uint(channel_value(plan.format->block_scale, texel.c[c]));
  }
  return texel;
}

}  // namespace v3d::tmu
