#include "gpu/tmu/lookup/lookup_kind.h"

#include <algorithm>
#include <bit>

#include "gpu/tmu/lookup/plan.h"

namespace v3d::tmu {
namespace {

/// Null: there is code.
const char* why_none(const Plan& plan) {
  const LookupSteps& steps = plan.steps;
  if (steps.not_generated != NotGenerated::kNothing) return name(steps.not_generated);
  if (steps.coordinates_step == 0) return "lookup that is left out";
  if (plan.key.shape != kT) return "lookup with other parameters than S and T, or a fetch";
  if (plan.needs_lod && plan.explicit_lod) return "level of detail that the program tells";
  const Transfer transfer = plan.texture.transfer;
  if (plan.format->unorm_bytes == 0 || (plan.format->transfers && transfer != Transfer::kNone))
    return "format of texels";
  return nullptr;
}

constexpr uint32_t kHalfTheSpace = 0x80000000, kPitchUnit = 512;

void set_levels(const LevelTables& tables, TextureData& data) {
  const auto of = [&](LevelWord word) -> Lanes& { return data.levels[static_cast<size_t>(word)]; };
  of(LevelWord::kAddress) = tables.address + kHalfTheSpace;
  of(LevelWord::kSizes) = as_uint(tables.width) | as_uint(tables.height) << 16;
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
}

void set_detail_words(const Plan& plan, TextureData& data) {
  const auto set = [&](TextureWord word, uint32_t value) { data.words[static_cast<size_t>(word)] = value; };
  const auto bits = [](float v) { return std::bit_cast<uint32_t>(v); };
  const uint32_t level = plan.texture.base_level;
  set(TextureWord::kBaseWidth, bits(static_cast<float>(plan.levels.width[level])));
  set(TextureWord::kBaseHeight, bits(static_cast<float>(plan.levels.height[level])));
  set(TextureWord::kBias, bits(plan.steps.bias));
  set(TextureWord::kLeastDetail, static_cast<uint32_t>(plan.sampler.min_lod));
  set(TextureWord::kMostDetail, static_cast<uint32_t>(plan.sampler.max_lod));
  set(TextureWord::kBaseLevel, level);
  set(TextureWord::kLastLevel, plan.steps.last_level);
}

void set_layout(const LevelTables& tables, uint32_t level, LookupKind& kind) {
  kind.x_shift = static_cast<uint8_t>(tables.x_shift[level]);
  kind.y0_shift = static_cast<uint8_t>(tables.y0_shift[level]);
  kind.y1_shift = static_cast<uint8_t>(tables.y1_shift[level]);
  kind.is_xor = tables.xor_bit[level] != 0;
}

}  // namespace

LookupKind describe_lookup(const Plan& plan, TextureData& data) {
  using Filter = LookupKind::Filter;
  LookupKind kind;
  kind.none = why_none(plan);
  if (kind.none != nullptr) return kind;
  const SamplerState& sampler = plan.sampler;
  kind.filter = sampler.mag_nearest ? Filter::kNearest : Filter::kLinear;
  kind.minifying = !plan.needs_lod ? kind.filter : sampler.min_nearest ? Filter::kNearest : Filter::kLinear;
  std::copy_n(sampler.wrap, 2, kind.wrap);
  kind.log2_bytes = static_cast<uint8_t>(plan.log2_cpp);
  kind.per_pixel = plan.per_pixel;
  kind.wide = plan.wide_output;
  kind.num_words = plan.num_words;
  for (int word = 0; word < plan.num_words; ++word)
    std::copy_n(plan.word_channel[word], 2, kind.channel[word]);
  data.words = {};
  set_level_words(plan.levels, plan.texture.base_level, data);
  if (plan.needs_lod) {
    kind.levels = sampler.mip_nearest ? LookupKind::Levels::kNearest : LookupKind::Levels::kLinear;
    set_detail_words(plan, data);
    set_levels(plan.levels, data);
  } else {
    set_layout(plan.levels, plan.texture.base_level, kind);
  }
  return kind;
}

}  // namespace v3d::tmu
