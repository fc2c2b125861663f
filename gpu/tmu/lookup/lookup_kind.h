/// A LookupKind is what code of a texture lookup depends on that is made for a draw's own textures and
/// samplers (gpu/qpu/graph/lookups.h); where the texture lies, and how large it is, are words that the code
/// reads. What there is no such code for is a kind, too, which says why.
#pragma once

#include <array>
#include <cstdint>

#include "gpu/base/compare.h"
#include "gpu/base/lanes.h"
#include "gpu/tmu/image/texture_state.h"
#include "gpu/tmu/texel/format.h"

namespace v3d::tmu {

struct Plan;

/// Why there is no code of a lookup.
enum class NotGenerated : uint8_t {
  kNothing,  ///< there is
  kCompressed,
  kFlip,
  kOffsets,
  kQuery,
  kAtomic,
  kStore,
  kFormat,
  kTransfer,
  kGather,
  kCube,
  kDimensions,
  kBorder,
  kFilter,
  kParameters,
  kLarge,
  kNoMemory,
  kLeftOut,  ///< on wish, all are (gpu/base/left_out.h)
};
inline constexpr int kNumNotGenerated = 18;
const char* name(NotGenerated not_generated);

/// All of it are bytes, by which kinds can be told apart.
struct LookupKind {
  enum class Filter : uint8_t { kNearest, kLinear };
  enum class Levels : uint8_t { kBase, kNearest, kLinear };
  /// What a texel holds: a byte for each channel, R, G and B of which may stand for other values; or what
  /// `packing` says.
  enum class Texels : uint8_t { kUnorm8, kSrgb8, kPacked };

  NotGenerated none = NotGenerated::kNothing;  ///< else all other members are as they were made
  Filter filter = Filter::kNearest;            ///< of lanes that magnify, and of the base level alone
  Filter minifying = Filter::kNearest;
  Levels levels = Levels::kBase;
  /// Of the base level's layout, as in addressing.h; not where there are several.
  uint8_t x_shift = 0, y0_shift = 0, y1_shift = 0;
  bool is_xor = false;
  uint8_t dims = 2;         ///< 2 or 3: S, T and R; of cubes 2, in a face; of fetches 1 as well
  bool is_cube = false;     ///< S, T and R are a direction
  uint8_t most_probes = 1;  ///< of anisotropy
  bool has_layers = false;  ///< the program tells the layer, of cubes that of its first face
  /// Where bytes are blended each is one of the first three.
  Wrap wrap[3] = {Wrap::kRepeat, Wrap::kRepeat, Wrap::kRepeat};
  int8_t offset[3] = {0, 0, 0};  ///< in texels
  Texels texels = Texels::kUnorm8;
  Packing packing = {};     ///< of kPacked
  bool is_general = false;  ///< indices may be far outside, or mirrored once
  bool in_float = false;    ///< values are blended, not bytes
  bool has_border = false;  ///< a wrap mode has
  bool compares = false;    ///< with the reference
  bool clamps_reference = false;
  Compare compare = Compare::kNever;
  bool tells_level = false;    ///< the program does, instead of derivatives
  bool has_bias = false;       ///< the program has: that is the level, where it tells it
  bool is_fetch = false;       ///< by integers, without a sampler, of the base level; has_bias: or of the Bth
  uint8_t stored_words = 0;    ///< of each texel: it stores, and returns nothing
  uint8_t log2_bytes = 0;      ///< of a texel
  bool per_pixel = false;      ///< lanes without a sample take no part
  bool wide = false;           ///< return words are floats or integers instead of two halves
  bool integers = false;       ///< the channels are
  uint8_t num_words = 0;       ///< that are returned
  uint8_t channel[4][2] = {};  ///< of each half of them, as Plan::word_channel
  uint8_t texture = 0;         ///< its number among those of the draw
  bool operator==(const LookupKind&) const = default;
  /// Whether it reads words of levels.
  bool has_levels() const { return levels != Levels::kBase || (is_fetch && has_bias); }
};

/// Words of a texture and its sampler that code reads.
enum class TextureWord : uint8_t {
  // Of the base level
  kAddress,  ///< and half the address space
  kScaleX,
  kScaleY,  ///< floats: 1/256 texels
  kLastX,
  kLastY,  ///< floats: where the last texel has its centre, in 1/256 texels
  kWidth,
  kHeight,       ///< texels
  kColumnPitch,  ///< of eight utiles, in units of 512 bytes
  kDepth,        ///< texels
  kSliceSize,    ///< bytes between slices of 3D textures
  kLayout,       ///< as LevelWord::kLayout, where kinds have several levels
  // Of all
  kLayerSize,  ///< bytes between layers, or faces
  kLastLayer,  ///< a float; of fetches the number of layers, an integer
  kBaseWidth,
  kBaseHeight,
  kBaseDepth,  ///< floats: texels of the base level
  kBias,       ///< a float
  kLeastDetail,
  kMostDetail,  ///< 1/256: the limits of the level of detail
  kBaseLevel,
  kLastLevel,  ///< not below the base level
  kBorder,     ///< of the first decoded channel; those of the others follow
  kNumWords = kBorder + 4
};
inline constexpr uint32_t kTextureWords = static_cast<uint32_t>(TextureWord::kNumWords);
/// Words of each level, where kinds have several.
enum class LevelWord : uint8_t {
  kAddress,  ///< as of the base level
  kSizes,    ///< width, and height above it
  kLayout,   ///< as below
  kDepth,
  kSliceSize,
  kNumWords
};
inline constexpr uint32_t kLevelWords = static_cast<uint32_t>(LevelWord::kNumWords);
/// First bits of what is above the column pitch in LevelWord::kLayout: the shifts, four bits each, and one.
inline constexpr uint32_t kLayoutXShift = 16, kLayoutY0Shift = 20, kLayoutY1Shift = 24, kLayoutXor = 28;

struct TextureData {
  /// Each as often as a vector of the host may want it.
  alignas(64) std::array<std::array<uint32_t, 8>, kTextureWords> words;
  /// Lane i belongs to level i. Only of kinds with several.
  alignas(64) std::array<Lanes, kLevelWords> levels;
};

/// The host's code of a kind. Code that was made at run time for a program calls it, with registers as
/// gpu/qpu/jit/graph/lookup_emitter.h says.
class LookupCode {
 public:
  virtual ~LookupCode() = default;
  virtual const void* begin() const = 0;
};

/// What the bytes of R, G and B of Texels::kSrgb8 stand for.
const float* values_of_srgb_bytes();
/// The upper halves of their 256 values, and then the lower ones. Aligned to 64 bytes.
const uint16_t* halves_of_srgb_values();

/// Of a complete plan; its texture's number is 0. @param data  complete, unless there is no code
LookupKind describe_lookup(const Plan& plan, TextureData& data);

}  // namespace v3d::tmu
