/// A Plan is everything that is constant in a texture lookup, decoded once per job for each distinct set of
/// configuration words.
#pragma once

#include <cstdint>
#include <memory>

#include "gpu/base/lanes.h"
#include "gpu/base/work_meter.h"
#include "gpu/chip/generation.h"
#include "gpu/tmu/image/layout.h"
#include "gpu/tmu/image/texture_state.h"
#include "gpu/tmu/lookup/block_cache.h"
#include "gpu/tmu/lookup/footprint.h"
#include "gpu/tmu/lookup/lookup_kind.h"
#include "gpu/tmu/lookup/unit.h"
#include "gpu/tmu/texel/encode.h"
#include "gpu/tmu/texel/format.h"

namespace v3d::tmu {

/// What a lookup may use besides its plan.
struct TexelMemory {
  Memory memory;
  BlockCache blocks;
  Footprint* footprint = nullptr;  ///< of the lookup under way; null: nobody asks for it
  WorkMeter meter;
};

struct Plan;
/// Executes a lookup: writes plan.num_words words to out.
using Run = void (*)(const Plan& plan, TexelMemory& texels, const TextureLookup& lookup, LaneMask active,
                     Lanes* out);

/// P2, decoded (texture.md 2.2).
struct LookupOptions {
  uint8_t op;
  bool lod_query, dimension_query, write_conversion, gather, disable_autolod, wide_offsets;
  uint8_t gather_component;
  int8_t sample[3];  ///< S, T, R of the sample number, in texels
  int8_t offset[3];  ///< S, T, R in texels, with those of the sample number
};

/// Lane i of every table belongs to level i; levels beyond the last repeat it.
struct LevelTables {
  Lanes address;                ///< of the level in layer 0
  LanesI width, height, depth;  ///< extent in texels, at least 1 (fetches of 1D: width may be 0)
  Lanes slice_size;             ///< bytes between slices of a 3D level
  // Terms of the offset inside a tiled level, see column() and row() in addressing.h.
  Lanes x_shift, column_pitch, y0_shift, y1_shift, xor_bit;
  /// Of code: what a coordinate is multiplied by to count 1/256 texels, and where the last texel has its
  /// center.
  LanesF scale_x, scale_y, last_x, last_y;
};

/// What differs between the generations of the chip (texture.md 4, 6, 8).
struct LookupProperties {
  bool has_dimension_query, has_write_conversion;  ///< bits 25 and 26 of the third word
  bool encoded_border;  ///< border colours of float formats are stored in the form of what a lookup returns
  bool wrap16;          ///< vectors of general accesses go on at the start of their 16 bytes (texture.md 8)
};
constexpr LookupProperties lookup_properties(chip::Generation generation) {
  switch (generation) {
    case chip::Generation::k21:  // whose lookups packed.h does
      return {.has_dimension_query = false,
              .has_write_conversion = false,
              .encoded_border = false,
              .wrap16 = false};
    case chip::Generation::k42:
      return {.has_dimension_query = false,
              .has_write_conversion = false,
              .encoded_border = true,
              .wrap16 = true};
    case chip::Generation::k71:
      return {.has_dimension_query = true,
              .has_write_conversion = true,
              .encoded_border = false,
              .wrap16 = false};
  }
  chip::no_such_generation();
}

/// What stands for a channel that is always 0 or 1.
inline constexpr uint8_t kZeroSource = 4, kOneSource = 5;

struct Plan {
  /// The words that make lookups equal; the rest of a lookup is lane data.
  struct Key {
    uint32_t p0, p1, p2, shape;  ///< shape: launcher, parameters written, number of data words
    bool operator==(const Key&) const = default;
  } key;

  Run run;
  Run run_request;              ///< what run_swapped runs
  const Format* format;         ///< null only when run ignores it
  DecodeTexels decode;          ///< plain formats, transfer function applied
  const float* block_transfer;  ///< compressed formats: values of 8-bit colours, or null
  TextureState texture;
  SamplerState sampler;
  LookupOptions options;

  uint8_t dims;  ///< coordinates: 1 (raster memory), 2, 3
  bool per_pixel, unnormalized, wide_output;
  bool cube;
  bool anisotropic;
  bool compare;       ///< shadow lookup
  bool first_texel;   ///< linear filters return the first texel of their footprint alone
  bool flips;         ///< an axis of the texture is flipped
  bool has_border;    ///< an axis in use wraps to the border colour
  bool general_wrap;  ///< indices may be far outside: offsets, unnormalized coordinates
  bool explicit_lod;
  bool magnifies_below_one;  ///< footprints of up to one texel use the base level and the mag filter
  bool needs_lod;            ///< the result depends on the level of detail
  uint8_t num_words;
  uint32_t cost;  ///< of a lookup at most, for a WorkMeter; without blocks that are decoded for it
  /// The R, G, B, A (0..3) in each half of each return word; 32-bit output: first only.
  uint8_t word_source[4][2];
  /// The same as decoded channels: 0..3, 4 zero, 5 one.
  uint8_t word_channel[4][2];
  uint8_t channel[4];      ///< decoded channel (or 4, 5) for each of R, G, B, A after all swizzles
  uint8_t order[4];        ///< decoded channel for each of R, G, B, A before the swizzles
  const Packing* packing;  ///< of the format, for stores that convert
  uint8_t channels_used;   ///< bit c: decoded channel c reaches the output
  Lanes border[4];         ///< border colour per decoded channel
  Lanes one;               ///< 1.0f or 1

  // Geometry of the format
  int log2_cpp, log2_utile_width, log2_utile_height;
  LevelTables levels;

  LookupKind kind;
  TextureData data;  ///< of the kind, where there is code
  /// Null: lookups are executed by run. What begins there stays as long as `code` is the same.
  const void* code_begin;
  std::shared_ptr<const LookupCode> code;
};

struct PlanSlot {
  uint64_t job = 0;  ///< number of the job for which the plan was made; 0: there is none
  Plan plan;
};

/// Coordinates by which a lookup finds its texel: 1, 2 or 3, of cubes 2 in a face.
inline uint8_t dimensions(const TextureLookup& lookup) {
  if (lookup.launcher == Launcher::kSCm || (lookup.written & (kT | kR)) == kT) return 2;
  return lookup.written & kR ? 3 : 1;
}

/// Decodes the state records and picks the functions. Wild addresses and values are harmless.
void make_plan(const Plan::Key& key, const TextureLookup& lookup, Memory memory, chip::Generation generation,
               Plan& plan);

/// For Plan::cost, when all else is decided: texels that 16 lanes read, and how they are blended.
uint32_t lookup_cost(const Plan& plan);

/// Swizzles decoded channels and packs the return words; lanes outside `active` give 0.
void finish(const Plan& plan, const Lanes* rgba, LaneMask active, Lanes* out);
/// The same for four values that already stand in R, G, B, A order (gather, LOD query).
void finish_ordered(const Plan& plan, const Lanes* values, LaneMask active, Lanes* out);

/// The same for integers, whatever the format.
void finish_integers(const Plan& plan, const Lanes* values, LaneMask active, Lanes* out);

// The functions that make_plan picks from.
Run sampling_function(const Plan& plan);
Run fetch_function(const Plan& plan);
Run store_function(const Plan& plan);   ///< of plain formats; with plan.packing: converting
Run atomic_function(const Plan& plan);  ///< of plain formats
void run_dimension_query(const Plan&, TexelMemory&, const TextureLookup&, LaneMask, Lanes*);
/// Exchanges S and T, and their offsets, before anything else looks at them (assumed of the request's flip).
void run_swapped(const Plan&, TexelMemory&, const TextureLookup&, LaneMask, Lanes*);
/// Reads nothing and returns zeros: features that are not modelled, cache operations.
void run_nothing(const Plan&, TexelMemory&, const TextureLookup&, LaneMask, Lanes*);

}  // namespace v3d::tmu
