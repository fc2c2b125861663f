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
  const Packing& packing = format.packing;
  const int bits = packing.channels[0].bits;
  if (packing.number == Number::kHalf && bits == 16 && format.cpp <= 8) return Texels::kHalf;
  if (packing.number == Number::kDepth) return bits == 16 ? Texels::kDepth16 : Texels::kDepth24;
  if (packing.number == Number::kFloat && bits == 32 && format.cpp == 4) return Texels::kFloat;
  return {};
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
/// Null: none is so.
const char* first_of(std::initializer_list<Refusal> refusals) {
  for (const Refusal& refusal : refusals)
    if (refusal.is_so) return name(refusal.what);
  return nullptr;
}

/// Of a fetch, or of a store to an image. Null: there is code.
const char* why_no_fetch(const Plan& plan) {
  // Products of columns are of halves with signs.
  constexpr int32_t kMostSize = 1 << 14;
  const uint32_t level = plan.texture.base_level;
  const bool stores = data_words(plan) != 0;
  const char* const refusal = first_of({
      {plan.format->compressed(), NotGenerated::kCompressed},
      {plan.flips || plan.texture.swap_st, NotGenerated::kFlip},
      {plan.general_wrap, NotGenerated::kOffsets},
      {plan.options.dimension_query, NotGenerated::kQuery},
      {plan.options.op != kRegular, NotGenerated::kAtomic},
      {plan.dims != 2, NotGenerated::kDimensions},
      {stores && (plan.packing != nullptr || plan.options.write_conversion || plan.format->cpp < 4 ||
                  plan.num_words != 0),
       NotGenerated::kStore},
      {!stores && !texels_of(plan), NotGenerated::kFormat},
  });
  if (refusal != nullptr) return refusal;
  if ((plan.key.shape & 0xff & ~kB) != kT || level > static_cast<uint32_t>(plan.texture.max_level))
    return "a fetch with other parameters than S, T and a level";
  if (plan.levels.width[level] > kMostSize || plan.levels.height[level] > kMostSize)
    return "a fetch of a large texture";
  return nullptr;
}

/// Null: there is code.
const char* why_none(const Plan& plan) {
  if (plan.format == nullptr) return name(NotGenerated::kFormat);
  const Launcher launcher = launcher_of(plan);
  if (launcher == Launcher::kSF) return why_no_fetch(plan);
  constexpr uint32_t kOthers = 0xff00 | (0xff & ~(kT | kR | kI | kB | kDref));
  const char* const refusal = first_of({
      {plan.format->compressed(), NotGenerated::kCompressed},
      {plan.flips || plan.texture.swap_st, NotGenerated::kFlip},
      {plan.unnormalized, NotGenerated::kOffsets},
      {plan.options.dimension_query || plan.options.lod_query, NotGenerated::kQuery},
      {plan.options.gather, NotGenerated::kGather},
      {plan.sampler.layer_border && (plan.key.shape & kI) != 0, NotGenerated::kBorder},
      {plan.dims == 1, NotGenerated::kDimensions},
      {!texels_of(plan), NotGenerated::kFormat},
      {plan.first_texel && is_filtered(plan), NotGenerated::kFilter},
  });
  if (refusal != nullptr) return refusal;
  if (plan.cube && (plan.general_wrap || plan.levels.width[0] != plan.levels.height[0]))
    return "lookup in a cube map with offsets, or whose faces are no squares";
  const uint32_t needed = plan.cube ? kT | kR : kT;
  if ((plan.key.shape & needed) != needed || (plan.key.shape & kOthers) != 0)
    return "lookup with other parameters than S, T, R, layer, bias and reference";
  return nullptr;
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

/// Of the base level.
void set_level_words(const LevelTables& tables, uint32_t level, TextureData& data) {
  const auto set = [&](TextureWord word, uint32_t value) { data.words[static_cast<size_t>(word)] = value; };
  const auto bits = [](float v) { return std::bit_cast<uint32_t>(v); };
  set(TextureWord::kAddress, tables.address[level] + kHalfTheSpace);
  set(TextureWord::kScaleX, bits(tables.scale_x[level]));
  set(TextureWord::kScaleY, bits(tables.scale_y[level]));
  set(TextureWord::kLastX, bits(tables.last_x[level]));
  set(TextureWord::kLastY, bits(tables.last_y[level]));
  set(TextureWord::kWidth, static_cast<uint32_t>(tables.width[level]));
  set(TextureWord::kHeight, static_cast<uint32_t>(tables.height[level]));
  set(TextureWord::kColumnPitch, tables.column_pitch[level] / kPitchUnit);
  set(TextureWord::kDepth, static_cast<uint32_t>(tables.depth[level]));
  set(TextureWord::kSliceSize, tables.slice_size[level]);
}

void set_detail_words(const Plan& plan, TextureData& data) {
  const auto set = [&](TextureWord word, uint32_t value) { data.words[static_cast<size_t>(word)] = value; };
  const auto bits = [](float v) { return std::bit_cast<uint32_t>(v); };
  const uint32_t level = plan.texture.base_level;
  set(TextureWord::kBaseWidth, bits(static_cast<float>(plan.levels.width[level])));
  set(TextureWord::kBaseHeight, bits(static_cast<float>(plan.levels.height[level])));
  set(TextureWord::kBaseDepth, bits(static_cast<float>(plan.levels.depth[level])));
  set(TextureWord::kBias, bits(static_cast<float>(plan.sampler.bias) * (1.0f / 256)));
  set(TextureWord::kLeastDetail, static_cast<uint32_t>(plan.sampler.min_lod));
  set(TextureWord::kMostDetail, static_cast<uint32_t>(plan.sampler.max_lod));
  set(TextureWord::kBaseLevel, level);
  set(TextureWord::kLastLevel, std::max<uint32_t>(level, plan.texture.max_level));
}

void set_layout(const LevelTables& tables, uint32_t level, LookupKind& kind) {
  kind.x_shift = static_cast<uint8_t>(tables.x_shift[level]);
  kind.y0_shift = static_cast<uint8_t>(tables.y0_shift[level]);
  kind.y1_shift = static_cast<uint8_t>(tables.y1_shift[level]);
  kind.is_xor = tables.xor_bit[level] != 0;
}

void set_border_words(const Plan& plan, TextureData& data) {
  for (size_t c = 0; c < 4; ++c)
    data.words[static_cast<size_t>(TextureWord::kBorder) + c] = plan.border[c][0];
}

void set_layer_words(const TextureState& texture, TextureData& data) {
  const uint32_t last = std::max<uint32_t>(texture.depth, 1) - 1;
  data.words[static_cast<size_t>(TextureWord::kLayerSize)] = texture.array_stride;
  data.words[static_cast<size_t>(TextureWord::kLastLayer)] =
      std::bit_cast<uint32_t>(static_cast<float>(last));
}

/// What lookups of values have, which are not bytes alone.
void describe_values(const Plan& plan, LookupKind& kind) {
  kind.dims = plan.dims;
  kind.is_cube = plan.cube;
  if (plan.anisotropic) kind.most_probes = static_cast<uint8_t>(plan.sampler.max_anisotropy);
  kind.has_layers = (plan.key.shape & kI) != 0;
  std::copy_n(plan.options.offset, plan.dims, kind.offset);
  kind.texels = *texels_of(plan);
  kind.has_border = plan.has_border;
  kind.compares = plan.compare;
  kind.clamps_reference = plan.compare && plan.format->clamps_reference();
  if (plan.compare) kind.compare = plan.sampler.compare;
  const bool is_usual =
      std::all_of(plan.sampler.wrap, plan.sampler.wrap + 2, [](Wrap wrap) { return wrap <= Wrap::kMirror; });
  kind.is_general = plan.general_wrap || !is_usual;
  kind.in_float = kind.texels != Texels::kUnorm8 || plan.has_border || plan.compare;
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
  data.words = {};
  set_level_words(plan.levels, plan.texture.base_level, data);
  set_layout(plan.levels, plan.texture.base_level, kind);
  kind.stored_words =
      static_cast<uint8_t>(std::min<uint32_t>(plan.format->cpp / sizeof(uint32_t), data_words(plan)));
  if (kind.stored_words != 0) return kind;
  kind.texels = *texels_of(plan);
  kind.in_float = kind.texels != Texels::kUnorm8;
  set_returned(plan, kind);
  return kind;
}

}  // namespace

const float* values_of_srgb_bytes() { return transfer_table(Transfer::kSrgb, 8); }

LookupKind describe_lookup(const Plan& plan, TextureData& data) {
  using Filter = LookupKind::Filter;
  LookupKind kind;
  kind.none = why_none(plan);
  if (kind.none != nullptr) return kind;
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
  } else {
    set_layout(plan.levels, plan.texture.base_level, kind);
  }
  return kind;
}

}  // namespace v3d::tmu
