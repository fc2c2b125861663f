#include "gpu/tmu/lookup/lookup_kind.h"

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <optional>

#include "gpu/tmu/lookup/atomic.h"
#include "gpu/tmu/lookup/plan.h"
#include "gpu/tmu/texel/transfer.h"

namespace v3d::tmu {
namespace {

using Texels = LookupKind::Texels;

std::optional<Texels> texels_of(const Plan& plan) {
  const Format& format = *plan.format;
  const Transfer transfer = format.transfers ? plan.texture.transfer : Transfer::kNone;
  if (format.unorm_bytes > 0 && transfer == Transfer::kNone) return Texels::kUnorm8;
  if (format.unorm_bytes == 4 && transfer == Transfer::kSrgb) return Texels::kSrgb8;
  if (format.compressed() || transfer != Transfer::kNone) return {};
  return Texels::kPacked;
}

bool is_filtered(const Plan& plan) {
  return !plan.sampler.mag_nearest || (plan.needs_lod && !plan.sampler.min_nearest);
}

constexpr uint32_t kLauncherShift = 16, kDataShift = 8;
Launcher launcher_of(const Plan& plan) { return static_cast<Launcher>(plan.key.shape >> kLauncherShift); }
uint32_t data_words(const Plan& plan) { return plan.key.shape >> kDataShift & 0xff; }

struct Refusal {
  bool is_so;
  NotGenerated what;
};
NotGenerated first_of(std::initializer_list<Refusal> refusals) {
  for (const Refusal& refusal : refusals)
    if (refusal.is_so) return refusal.what;
  return NotGenerated::kNothing;
}

/// Of a fetch, or of a store to an image.
NotGenerated why_no_fetch(const Plan& plan) {
  // Products of columns are of halves with signs.
  constexpr int32_t kMostSize = 1 << 14;
  const uint32_t level = plan.texture.base_level, written = plan.key.shape & 0xff;
  const bool stores = data_words(plan) != 0, has_levels = (written & kB) != 0;
  const uint32_t coordinates = plan.dims == 1 ? 0 : plan.dims == 2 ? kT : kT | kR;
  const bool is_large = plan.levels.width[level] > kMostSize || plan.levels.height[level] > kMostSize;
  return first_of({
      {plan.format->compressed(), NotGenerated::kCompressed},
      {plan.flips || plan.texture.swap_st, NotGenerated::kFlip},
      {plan.general_wrap, NotGenerated::kOffsets},
      {plan.options.dimension_query, NotGenerated::kQuery},
      {plan.options.op != kRegular, NotGenerated::kAtomic},
      {stores && (plan.packing != nullptr || plan.options.write_conversion || plan.format->cpp < 4 ||
                  plan.num_words != 0),
       NotGenerated::kStore},
      {!stores && !texels_of(plan), NotGenerated::kTransfer},
      {(written & ~(kB | kI)) != coordinates || level > static_cast<uint32_t>(plan.texture.max_level),
       NotGenerated::kParameters},
      {plan.dims == 1 && has_levels, NotGenerated::kDimensions},
      {plan.dims > 1 && is_large, NotGenerated::kLarge},
  });
}

NotGenerated why_none(const Plan& plan) {
  if (plan.format == nullptr) return NotGenerated::kFormat;
  const Launcher launcher = launcher_of(plan);
  if (launcher == Launcher::kSF) return why_no_fetch(plan);
  constexpr uint32_t kOthers = 0xff00 | (0xff & ~(kT | kR | kI | kB | kDref));
  const uint32_t needed = plan.cube ? kT | kR : kT;
  return first_of({
      {plan.format->compressed(), NotGenerated::kCompressed},
      {plan.flips || plan.texture.swap_st, NotGenerated::kFlip},
      {plan.unnormalized || (plan.key.shape & kOff) != 0, NotGenerated::kOffsets},
      {plan.options.dimension_query || plan.options.lod_query, NotGenerated::kQuery},
      {plan.options.gather, NotGenerated::kGather},
      {plan.sampler.layer_border && (plan.key.shape & kI) != 0, NotGenerated::kBorder},
      {plan.dims == 1, NotGenerated::kDimensions},
      {!texels_of(plan), NotGenerated::kTransfer},
      {plan.first_texel && is_filtered(plan), NotGenerated::kFilter},
      {plan.compare && plan.format->kind != Kind::kFloat, NotGenerated::kFormat},
      {plan.cube && (plan.general_wrap || plan.levels.width[0] != plan.levels.height[0]),
       NotGenerated::kCube},
      {(plan.key.shape & needed) != needed || (plan.key.shape & kOthers) != 0, NotGenerated::kParameters},
  });
}

constexpr uint32_t kHalfTheSpace = 0x80000000, kPitchUnit = 512;

void set_levels(const LevelTables& tables, TextureData& data) {
  const auto of = [&](LevelWord word) -> Lanes& { return data.levels[static_cast<size_t>(word)]; };
  of(LevelWord::kAddress) = tables.address + kHalfTheSpace;
  of(LevelWord::kSizes) = as_uint(tables.width) | as_uint(tables.height) << 16;
  of(LevelWord::kDepth) = as_uint(tables.depth);
  of(LevelWord::kSliceSize) = tables.slice_size;
  of(LevelWord::kLayout) = tables.column_pitch / kPitchUnit | tables.x_shift << kLayoutXShift |
                           tables.y0_shift << kLayoutY0Shift | tables.y1_shift << kLayoutY1Shift |
                           as_uint(tables.xor_bit != 0) << 31 >> (31 - kLayoutXor);
}

void set(TextureData& data, TextureWord word, uint32_t value) {
  data.words[static_cast<size_t>(word)].fill(value);
}

/// Of the base level.
void set_level_words(const LevelTables& tables, uint32_t level, TextureData& data) {
  const auto bits = [](float v) { return std::bit_cast<uint32_t>(v); };
  set(data, TextureWord::kAddress, tables.address[level] + kHalfTheSpace);
  set(data, TextureWord::kScaleX, bits(tables.scale_x[level]));
  set(data, TextureWord::kScaleY, bits(tables.scale_y[level]));
  set(data, TextureWord::kLastX, bits(tables.last_x[level]));
  set(data, TextureWord::kLastY, bits(tables.last_y[level]));
  set(data, TextureWord::kWidth, static_cast<uint32_t>(tables.width[level]));
  set(data, TextureWord::kHeight, static_cast<uint32_t>(tables.height[level]));
  set(data, TextureWord::kColumnPitch, tables.column_pitch[level] / kPitchUnit);
  set(data, TextureWord::kDepth, static_cast<uint32_t>(tables.depth[level]));
  set(data, TextureWord::kSliceSize, tables.slice_size[level]);
}

void set_detail_words(const Plan& plan, TextureData& data) {
  const auto bits = [](float v) { return std::bit_cast<uint32_t>(v); };
  const uint32_t level = plan.texture.base_level;
  set(data, TextureWord::kBaseWidth, bits(static_cast<float>(plan.levels.width[level])));
  set(data, TextureWord::kBaseHeight, bits(static_cast<float>(plan.levels.height[level])));
  set(data, TextureWord::kBaseDepth, bits(static_cast<float>(plan.levels.depth[level])));
  set(data, TextureWord::kBias, bits(static_cast<float>(plan.sampler.bias) * (1.0f / 256)));
  set(data, TextureWord::kLeastDetail, static_cast<uint32_t>(plan.sampler.min_lod));
  set(data, TextureWord::kMostDetail, static_cast<uint32_t>(plan.sampler.max_lod));
  set(data, TextureWord::kBaseLevel, level);
  set(data, TextureWord::kLastLevel, std::max<uint32_t>(level, plan.texture.max_level));
}

void set_layout(const LevelTables& tables, uint32_t level, LookupKind& kind) {
  kind.x_shift = static_cast<uint8_t>(tables.x_shift[level]);
  kind.y0_shift = static_cast<uint8_t>(tables.y0_shift[level]);
  kind.y1_shift = static_cast<uint8_t>(tables.y1_shift[level]);
  kind.is_xor = tables.xor_bit[level] != 0;
}

void set_border_words(const Plan& plan, TextureData& data) {
  for (size_t c = 0; c < 4; ++c)
    data.words[static_cast<size_t>(TextureWord::kBorder) + c].fill(plan.border[c][0]);
}

void set_layer_words(const TextureState& texture, TextureData& data) {
  const uint32_t last = std::max<uint32_t>(texture.depth, 1) - 1;
  set(data, TextureWord::kLayerSize, texture.array_stride);
  set(data, TextureWord::kLastLayer, std::bit_cast<uint32_t>(static_cast<float>(last)));
}

void set_texels(const Plan& plan, LookupKind& kind) {
  kind.texels = *texels_of(plan);
  if (kind.texels == Texels::kPacked) kind.packing = plan.format->packing;
  kind.integers = plan.format->kind != Kind::kFloat;
  kind.in_float = kind.texels != Texels::kUnorm8;
}

/// What lookups of values have, which are not bytes alone.
void describe_values(const Plan& plan, LookupKind& kind) {
  kind.dims = plan.dims;
  kind.is_cube = plan.cube;
  if (plan.anisotropic) kind.most_probes = static_cast<uint8_t>(plan.sampler.max_anisotropy);
  kind.has_layers = (plan.key.shape & kI) != 0;
  std::copy_n(plan.options.offset, plan.dims, kind.offset);
  set_texels(plan, kind);
  kind.has_border = plan.has_border;
  kind.compares = plan.compare;
  kind.clamps_reference = plan.compare && plan.format->clamps_reference();
  if (plan.compare) kind.compare = plan.sampler.compare;
  const bool is_usual =
      std::all_of(plan.sampler.wrap, plan.sampler.wrap + 2, [](Wrap wrap) { return wrap <= Wrap::kMirror; });
  kind.is_general = plan.general_wrap || !is_usual;
  kind.in_float |= plan.has_border || plan.compare;
}

void set_returned(const Plan& plan, LookupKind& kind) {
  kind.wide = plan.wide_output;
  kind.num_words = plan.num_words;
  for (int word = 0; word < plan.num_words; ++word)
    std::copy_n(plan.word_channel[word], 2, kind.channel[word]);
}

/// @param data  gets those of the base level
LookupKind describe_fetch(const Plan& plan, TextureData& data) {
  LookupKind kind;
  kind.is_fetch = true;
  kind.has_bias = (plan.key.shape & kB) != 0;
  kind.log2_bytes = static_cast<uint8_t>(plan.log2_cpp);
  kind.per_pixel = plan.per_pixel;
  kind.dims = plan.dims;
  kind.has_layers = (plan.key.shape & kI) != 0;
  data.words = {};
  set_level_words(plan.levels, plan.texture.base_level, data);
  set_layout(plan.levels, plan.texture.base_level, kind);
  if (kind.has_layers) {
    set(data, TextureWord::kLayerSize, plan.texture.array_stride);
    set(data, TextureWord::kLastLayer, plan.texture.depth);
  }
  if (kind.has_bias) {
    set(data, TextureWord::kBaseLevel, plan.texture.base_level);
    set(data, TextureWord::kLastLevel, plan.texture.max_level);
    set_levels(plan.levels, data);
  }
  kind.stored_words =
      static_cast<uint8_t>(std::min<uint32_t>(plan.format->cpp / sizeof(uint32_t), data_words(plan)));
  if (kind.stored_words != 0) return kind;
  set_texels(plan, kind);
  set_returned(plan, kind);
  return kind;
}

}  // namespace

const char* name(NotGenerated not_generated) {
  static constexpr const char* kNames[kNumNotGenerated] = {
      "nothing",
      "compressed texture",
      "flipped axis",
      "offset that is computed, or unnormalized coordinates",
      "query",
      "atomic",
      "store",
      "format",
      "transfer function",
      "gather",
      "cube with offsets, or whose faces are no squares",
      "1D texture",
      "border outside of layers",
      "linear filter of the format",
      "other parameters than S, T, R, layer, bias and reference",
      "fetch of a large texture",
      "no memory for code",
      "left out"};
  return kNames[static_cast<int>(not_generated)];
}

const float* values_of_srgb_bytes() { return transfer_table(Transfer::kSrgb, 8); }

const uint16_t* halves_of_srgb_values() {
  constexpr size_t kBytes = 256;
  struct alignas(64) Halves {
    std::array<uint16_t, 2 * kBytes> words;
  };
  static const Halves halves = [] {
    Halves of;
    for (size_t n = 0; n < kBytes; ++n) {
      const auto bits = std::bit_cast<uint32_t>(values_of_srgb_bytes()[n]);
      of.words[n] = static_cast<uint16_t>(bits >> 16);
      of.words[kBytes + n] = static_cast<uint16_t>(bits);
    }
    return of;
  }();
  return halves.words.data();
}

LookupKind describe_lookup(const Plan& plan, TextureData& data) {
  using Filter = LookupKind::Filter;
  LookupKind kind;
  kind.none = why_none(plan);
  if (kind.none != NotGenerated::kNothing) return kind;
  if (launcher_of(plan) == Launcher::kSF) return describe_fetch(plan, data);
  const SamplerState& sampler = plan.sampler;
  kind.filter = sampler.mag_nearest ? Filter::kNearest : Filter::kLinear;
  kind.minifying = !plan.needs_lod ? kind.filter : sampler.min_nearest ? Filter::kNearest : Filter::kLinear;
  std::copy_n(sampler.wrap, plan.dims, kind.wrap);
  kind.log2_bytes = static_cast<uint8_t>(plan.log2_cpp);
  kind.per_pixel = plan.per_pixel;
  set_returned(plan, kind);
  data.words = {};
  if (plan.needs_lod || plan.anisotropic) set_detail_words(plan, data);
  set_level_words(plan.levels, plan.texture.base_level, data);
  describe_values(plan, kind);
  if (plan.has_border) set_border_words(plan, data);
  if (kind.is_cube || kind.has_layers) set_layer_words(plan.texture, data);
  if (plan.needs_lod) {
    kind.levels = sampler.mip_nearest ? LookupKind::Levels::kNearest : LookupKind::Levels::kLinear;
    kind.tells_level = plan.explicit_lod;
    kind.has_bias = (plan.key.shape & kB) != 0;
    set_levels(plan.levels, data);
    set(data, TextureWord::kLayout,
        data.levels[static_cast<size_t>(LevelWord::kLayout)][plan.texture.base_level & (kLanes - 1)]);
  } else {
    set_layout(plan.levels, plan.texture.base_level, kind);
  }
  return kind;
}

}  // namespace v3d::tmu
