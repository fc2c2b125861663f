/// A Format is a texture data format (texture.md 5): how texels lie in memory and what they mean.
#pragma once

#include <cstdint>

#include "gpu/base/lanes.h"
#include "gpu/chip/generation.h"
#include "gpu/tmu/texel/transfer.h"

namespace v3d::tmu {

/// Representation of decoded channels: raw bits of one of these in every lane.
enum class Kind : uint8_t { kFloat, kInt, kUint };

// ---- The columns of gpu/tmu/texel/formats.def

/// What the texture type field of a descriptor holds. No code compares one: what a format can do is in its
/// row.
enum class TextureType : uint32_t {};
inline constexpr uint32_t kTextureTypes = 128;
/// Of a format that chips do not have.
inline constexpr TextureType kNoType{~0u};

/// How the channels of a texel are coded. Channels of 32 bits are kFloat, kInt or kUint.
enum class Number : uint8_t {
  kUnorm,
  kSnorm,
  kHalf,
  kSmallFloat,      ///< unsigned, with the exponent of a half
  kSharedExponent,  ///< of RGB9_E5
  kFloat,
  kInt,
  kUint,
  kDepth,  ///< unorm, rounded towards zero
};

struct Channel {
  uint8_t first = 0, bits = 0;  ///< counted through the texel's words; 0 bits: not there
  bool operator==(const Channel&) const = default;
};

/// Where R, G, B and A lie in a texel.
struct Packing {
  Number number;
  Channel channels[4];
  bool operator==(const Packing&) const = default;
};

/// Encoding of the words of a custom border colour on 4.2 (texture.md 3.4), for 32-bit output.
enum class BorderEncoding : uint8_t { kUnorm16, kSnorm14, kSnorm15, kF16, kF32, kRaw };

/// What filters do with texels.
enum class Filtering : uint8_t {
  kLinear,
  kComparison,  ///< blend results of comparisons; else as kFirstTexel
  kFirstTexel,  ///< take the first texel of the linear footprint
  kNearest,     ///< take the nearest texel
};

/// What the TFU does with texels: kFilters makes mip levels of them, too.
enum class TfuUse : uint8_t { kNothing, kCopies, kFilters };

/// How texels of a decoded block become floats.
enum class BlockScale : uint8_t { kUnorm8, kUnorm16, kUnorm11, kSnorm11 };

/// Raw words of 16 texels to RGBA. Missing channels become 0, 0, 1.
/// @param words  1 word for texels of up to 32 bits (zero extended), 2 for 64, 4 for 128
using DecodeTexels = void (*)(const Lanes* words, Lanes* rgba);

/// The word of 16 texels of up to 32 bits to what lookups of VideoCore IV return: a byte for each of R, G, B
/// and A, narrow channels with their bits repeated (assumed). Texels that are no unorm are returned as they
/// are.
using TexelBytes = Lanes (*)(Lanes word);

/// One channel of one texel of a decoded block; unused channels hold 0, alpha the value of 1.0.
using BlockTexel = uint16_t[4];
inline constexpr int kMaxBlockTexels = 144;
/// A compressed block of `cpp` bytes to block_width * block_height texels in raster order.
/// @param srgb  ASTC: the sRGB variant of the profile (8-bit results), for every transfer function
using DecodeBlock = void (*)(const uint8_t* block, bool srgb, BlockTexel* texels);

struct Format {
  const char* name;
  TextureType type;                   ///< of V3D, or kNoType
  TextureType vc4_type;               ///< of VideoCore IV, or kNoType
  uint8_t cpp;                        ///< bytes of a texel or block
  uint8_t block_width, block_height;  ///< 1 for plain formats
  Kind kind;
  Filtering filtering;
  TfuUse tfu;
  BorderEncoding border;
  // Plain formats
  Packing packing;
  uint8_t unorm_bytes;            ///< 1, 2 or 4: so many channels, all of them unorm bytes in order; else 0
  DecodeTexels decode;            ///< null: a compressed format
  TexelBytes bytes;               ///< null: VideoCore IV does not have it
  const DecodeTexels* transfers;  ///< kTransfers functions, null: as decode; null when all are
  // Compressed formats
  DecodeBlock decode_block;
  BlockScale block_scale;
  bool block_srgb;  ///< transfer functions apply

  bool compressed() const { return decode_block != nullptr; }
  bool depth() const { return filtering == Filtering::kComparison; }
  bool clamps_reference() const { return packing.number == Number::kDepth; }
  /// How image stores write it; null for compressed formats and depth.
  const Packing* stored_packing() const { return compressed() || depth() ? nullptr : &packing; }
  /// The decoder of a plain format after a transfer function, or null where that has no effect.
  DecodeTexels decoder(Transfer transfer) const {
    return transfers ? transfers[static_cast<int>(transfer)] : nullptr;
  }
};

/// The format of which a chip of that generation has the number. Null for unassigned values and formats that
/// are not modelled.
const Format* find_format(chip::Generation generation, TextureType type);
/// Name for messages, also of formats that are not modelled.
const char* format_name(chip::Generation generation, TextureType type);

/// v / 255, correctly rounded, for integers 0..255 in float form.
inline LanesF unorm8(LanesF v) {
  const LanesF t = v * 65793.0f;  // exact; 65793 / (2^24 - 1) = 1 / 255
  return t * 0x1p-24f + t * 0x1p-48f;
}

}  // namespace v3d::tmu
