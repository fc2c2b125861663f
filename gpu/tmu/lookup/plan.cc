#include "gpu/tmu/lookup/plan.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "gpu/base/float16.h"
#include "gpu/base/left_out.h"
#include "gpu/base/vector.h"
#include "gpu/tmu/image/texture_levels.h"
#include "gpu/tmu/lookup/atomic.h"
#include "gpu/tmu/lookup/unsupported.h"

namespace v3d::tmu {
namespace {

int8_t signed_nibble(uint32_t word, int shift) {
  return static_cast<int8_t>(static_cast<int32_t>(word << (28 - shift)) >> 28);
}

LookupOptions decode_options(uint32_t p2, const LookupProperties& chip) {
  LookupOptions options = {};
  options.op = (p2 >> kTextureOpShift) & kOpMask;
  options.lod_query = (p2 >> 24) & 1;
  options.dimension_query = chip.has_dimension_query && ((p2 >> 25) & 1);
  options.write_conversion = chip.has_write_conversion && ((p2 >> 26) & 1);
  options.gather = (p2 >> 7) & 1;
  options.gather_component = (p2 >> 5) & 3;
  options.disable_autolod = (p2 >> 1) & 1;
  options.wide_offsets = p2 & 1;
  options.offset[0] = signed_nibble(p2, 8);
  options.offset[1] = signed_nibble(p2, 12);
  options.offset[2] = signed_nibble(p2, 16);
  // Assumed of the sample number, which nobody uses: as with number 0, coordinates count the texels of the
  // image as stored, 2 x 2 for the samples of a pixel (texture.md 1.7); the number picks one of these.
  options.sample[0] = (p2 >> 2) & 1;
  options.sample[1] = (p2 >> 3) & 1;
  for (int axis = 0; axis < 2; ++axis)
    options.offset[axis] = static_cast<int8_t>(options.offset[axis] + options.sample[axis]);
  return options;
}

void report_options(uint32_t p2) {
  if (p2 & (1u << 4))
    report_unsupported(
        "coefficient mode of P2 (explicit gradients, of which no source says how they are passed)");
}

/// Of the formula in addressing.h.
struct TileShifts {
  uint32_t x, y0, y1;
};
constexpr TileShifts tile_shifts(Tiling tiling) {
  const bool uif = tiling == Tiling::kUif || tiling == Tiling::kUifXor;
  if (tiling == Tiling::kLineartile) return {7, 6, 7};
  return {8, 7, uif ? 10u : tiling == Tiling::kUblinear1 ? 8u : 9u};
}

/// Levels of the image as the tables that the address functions read.
void make_levels(Plan& plan) {
  const TextureState& texture = plan.texture;
  const Format& format = *plan.format;
  Level levels[kMaxLevels];
  const ImageShape shape = texture_levels(texture, format, plan.dims, levels);
  LevelTables& tables = plan.levels;
  for (uint32_t i = 0; i < kMaxLevels; ++i) {
    const uint32_t l = std::min(i, shape.num_levels - 1);
    const Level& level = levels[l];
    const bool lt = level.tiling == Tiling::kLineartile;
    const TileShifts shifts = tile_shifts(level.tiling);
    tables.address[i] = texture.base + static_cast<uint32_t>(level.offset);
    tables.width[i] = static_cast<int32_t>(std::max(1u, shape.width >> l));
    tables.height[i] = static_cast<int32_t>(std::max(1u, shape.height >> l));
    tables.depth[i] = static_cast<int32_t>(std::max(1u, shape.depth >> l));
    tables.slice_size[i] = level.slice_size;
    tables.x_shift[i] = shifts.x;
    tables.column_pitch[i] = lt ? 512 : 1024 * level.padded_height_ub;
    tables.y0_shift[i] = shifts.y0;
    tables.y1_shift[i] = shifts.y1;
    tables.xor_bit[i] = level.tiling == Tiling::kUifXor ? 16u << 10 : 0;
    tables.scale_x[i] = 256 * static_cast<float>(tables.width[i]);
    tables.scale_y[i] = 256 * static_cast<float>(tables.height[i]);
    tables.last_x[i] = tables.scale_x[i] - 128;
    tables.last_y[i] = tables.scale_y[i] - 128;
  }
  if (!shape.raster) return;
  // Only fetches see widths beyond 14 bits, and only they may find no texel at all.
  if (static_cast<Launcher>(plan.key.shape >> 16) == Launcher::kSF && !format.compressed())
    tables.width[0] = static_cast<int32_t>(shape.width);
  else
    tables.width = min(tables.width, splat_int(0x3fff));
}

uint32_t float_bits(float v) { return std::bit_cast<uint32_t>(v); }

/// A custom border word as the channel value it stands for on 4.2 (texture.md 3.4).
uint32_t border_value_42(uint32_t word, BorderEncoding encoding) {
  const auto s16 = static_cast<int16_t>(word);
  switch (encoding) {
    case BorderEncoding::kUnorm16:
      return float_bits(static_cast<float>(word & 0xffff) / 65535.0f);
    case BorderEncoding::kSnorm14:
      return float_bits(static_cast<float>(s16) / 0x3fff);
    case BorderEncoding::kSnorm15:
      return float_bits(static_cast<float>(s16) / 0x7fff);
    case BorderEncoding::kF16:
      return float_bits(half_to_float(static_cast<uint16_t>(word)));
    default:
      return word;
  }
}

void make_border(Plan& plan, const uint8_t* order, const LookupProperties& chip) {
  const SamplerState& sampler = plan.sampler;
  const bool integer = plan.format->kind != Kind::kFloat;
  const uint32_t one = integer ? 1 : float_bits(1.0f);
  uint32_t color[4] = {};
  if (sampler.border_mode == 7) {
    BorderEncoding encoding = BorderEncoding::kF32;
    if (chip.encoded_border && !integer) {
      const bool srgb = plan.format->decoder(plan.texture.transfer) != nullptr;
      encoding = !plan.wide_output || srgb ? BorderEncoding::kF16 : plan.format->border;
    }
    for (int c = 0; c < 4; ++c) color[c] = border_value_42(sampler.border_words[c], encoding);
  } else if (sampler.border_mode == 1) {
    color[plan.texture.reverse_standard_border ? 0 : 3] = one;
  } else if (sampler.border_mode == 2) {
    for (uint32_t& c : color) c = one;
  }
  for (int c = 0; c < 4; ++c) plan.border[order[c]] = splat(color[c]);
}

/// Return words and the channels they need.
void make_outputs(Plan& plan, const uint8_t* order) {
  for (int c = 0; c < 4; ++c) {
    const TextureState::Swizzle swizzle = plan.texture.swizzle[c];
    plan.channel[c] = swizzle == TextureState::kZero  ? kZeroSource
                      : swizzle == TextureState::kOne ? kOneSource
                                                      : order[swizzle - TextureState::kR];
  }
  plan.one = splat(plan.format->kind == Kind::kFloat ? float_bits(1.0f) : 1u);
  plan.num_words = 0;
  plan.channels_used = 0;
  const uint32_t mask = plan.key.p0 & (plan.wide_output ? 15 : 3);
  for (uint32_t word = 0; word < 4; ++word) {
    if (!((mask >> word) & 1)) continue;
    uint8_t* source = plan.word_source[plan.num_words];
    source[0] = static_cast<uint8_t>(plan.wide_output ? word : 2 * word);
    source[1] = static_cast<uint8_t>(plan.wide_output ? word : 2 * word + 1);
    for (int half = 0; half < 2; ++half) {
      const uint8_t channel = plan.channel[source[half]];
      plan.word_channel[plan.num_words][half] = channel;
      plan.channels_used |= static_cast<uint8_t>(1u << channel);
    }
    ++plan.num_words;
  }
}

/// Filters and levels after the rules for formats that cannot be filtered.
void make_filter(Plan& plan) {
  SamplerState& sampler = plan.sampler;
  plan.compare = (plan.key.shape & kDref) != 0;
  const Format& format = *plan.format;
  const bool compares_floats = plan.compare && format.kind == Kind::kFloat;
  if (format.filtering != Filtering::kLinear && !compares_floats) {
    // Boards fail piglit's "texwrap formats" at 9x9 texels for 32-bit floats of one and two channels and for
    // depth, where a centre may come out a little before 0.5, and pass it at 8x8, and for four channels at
    // both. No interface filters integers; what they give is assumed.
    plan.first_texel = format.filtering != Filtering::kNearest;
    if (!plan.first_texel) sampler.mag_nearest = sampler.min_nearest = true;
    sampler.mip_nearest = true;
    sampler.max_anisotropy = 1;
  }
  if (plan.cube) sampler.wrap[0] = sampler.wrap[1] = Wrap::kClamp;  // always seamless
  plan.flips = plan.texture.flip_x || plan.texture.flip_y;
  plan.has_border = sampler.layer_border && (plan.key.shape & kI);
  for (int axis = 0; axis < plan.dims; ++axis) plan.has_border |= sampler.wrap[axis] == Wrap::kBorder;
  const int8_t* offset = plan.options.offset;
  plan.general_wrap =
      plan.unnormalized || (plan.key.shape & kOff) || offset[0] != 0 || offset[1] != 0 || offset[2] != 0;
  plan.explicit_lod =
      static_cast<Launcher>(plan.key.shape >> 16) == Launcher::kSLod || plan.options.disable_autolod;
  if (plan.unnormalized) {
    sampler.min_lod = 0;
    sampler.max_lod = std::min(sampler.max_lod, 1);
    sampler.mip_nearest = true;
  }
  const bool one_level = plan.texture.base_level >= plan.texture.max_level || sampler.max_lod <= 0 ||
                         (sampler.mip_nearest && sampler.max_lod < 128);
  plan.needs_lod = !one_level || sampler.mag_nearest != sampler.min_nearest;
  plan.magnifies_below_one =
      !plan.explicit_lod && !(plan.key.shape & kB) && sampler.bias <= 0 && sampler.min_lod == 0;
  plan.anisotropic =
      sampler.max_anisotropy > 1 && plan.dims == 2 && !plan.cube && !plan.explicit_lod && !plan.unnormalized;
}

Run pick_store(Plan& plan) {
  if (plan.format->compressed()) {
    report_unsupported("store to a compressed image, which no interface defines");
    return run_nothing;
  }
  if (!plan.options.write_conversion) return store_function(plan);
  plan.packing = plan.format->stored_packing();
  if (plan.packing && plan.texture.transfer == Transfer::kNone) return store_function(plan);
  report_unsupported("write conversion to depth or through a transfer function");
  return run_nothing;
}

Run pick_function(Plan& plan, const TextureLookup& lookup) {
  if (plan.options.dimension_query) return run_dimension_query;
  if (lookup.launcher == Launcher::kSF) {
    if (plan.options.op == kRegular) return lookup.num_data > 0 ? pick_store(plan) : fetch_function(plan);
    if (!is_atomic(plan.options.op, lookup.num_data > 0)) return run_nothing;
    if (!plan.format->compressed()) return atomic_function(plan);
    report_unsupported("atomic on a compressed image, which no interface defines");
    return run_nothing;
  }
  return sampling_function(plan);
}

}  // namespace

uint32_t lookup_cost(const Plan& plan) {
  constexpr uint32_t kBeside = 20, kPlainTexel = 10, kCompressedTexel = 40;
  const bool filters = !plan.sampler.mag_nearest || !plan.sampler.min_nearest;
  const uint32_t texels = filters ? (plan.cube || plan.dims == 3 ? 9 : 5) : 1;
  const uint32_t levels = plan.needs_lod ? 2 : 1;
  const auto probes = static_cast<uint32_t>(plan.anisotropic ? plan.sampler.max_anisotropy : 1);
  return kBeside + probes * levels * texels * (plan.format->compressed() ? kCompressedTexel : kPlainTexel);
}

void make_plan(const Plan::Key& key, const TextureLookup& lookup, Memory memory, chip::Generation generation,
               Plan& plan) {
  plan = Plan{};
  plan.key = key;
  plan.per_pixel = (key.p1 >> 2) & 1;
  plan.unnormalized = (key.p1 >> 1) & 1;
  plan.wide_output = key.p1 & 1;
  plan.options = decode_options(key.p2, lookup_properties(generation));
  plan.texture = decode_texture_state(memory, key.p0 & ~15u, generation);
  plan.num_words = static_cast<uint8_t>(std::popcount(key.p0 & (plan.wide_output ? 15 : 3)));
  plan.run = run_nothing;
  plan.kind.none = NotGenerated::kFormat;
  report_options(key.p2);
  if (plan.texture.unsupported) report_unsupported(plan.texture.unsupported);
  plan.format = find_format(generation, plan.texture.type);
  if (!plan.format) return report_unsupported_format(generation, plan.texture.type);

  plan.cube = lookup.launcher == Launcher::kSCm;
  plan.dims = dimensions(lookup);
  plan.log2_cpp = std::countr_zero(plan.format->cpp);
  plan.log2_utile_width = std::countr_zero(utile_width(plan.format->cpp));
  plan.log2_utile_height = std::countr_zero(utile_height(plan.format->cpp));
  make_levels(plan);
  // A fetch has no sampler, and may carry a null address.
  const bool sampled = lookup.launcher != Launcher::kSF;
  plan.sampler = sampled ? decode_sampler_state(memory, key.p1 & ~7u) : default_sampler_state();
  if (plan.sampler.transfer_disable) plan.texture.transfer = Transfer::kNone;
  const Transfer transfer = plan.texture.transfer;
  const DecodeTexels after_transfer = plan.format->decoder(transfer);
  plan.decode = after_transfer ? after_transfer : plan.format->decode;
  if (plan.format->block_srgb && transfer != Transfer::kNone)
    plan.block_transfer = transfer_table(transfer, 8);

  make_filter(plan);

  // Decoded channel for each channel of the API: reversed first, then R and B exchanged.
  for (uint8_t c = 0; c < 4; ++c) plan.order[c] = c;
  if (plan.texture.reverse) std::reverse(plan.order, plan.order + 4);
  if (plan.texture.rb_swap) std::swap(plan.order[0], plan.order[2]);
  make_outputs(plan, plan.order);
  make_border(plan, plan.order, lookup_properties(generation));
  plan.cost = lookup_cost(plan);
  plan.run = pick_function(plan, lookup);
  if (plan.texture.swap_st && (lookup.written & kT)) {
    std::swap(plan.options.offset[0], plan.options.offset[1]);
    plan.run_request = plan.run;
    plan.run = run_swapped;
  }
  plan.kind = describe_lookup(plan, plan.data);
  if (is_left_out(Stage::kLookups)) {
    plan.run = run_nothing;
    plan.kind.none = NotGenerated::kLeftOut;
  }
}

namespace {

/// @param sources  what the numbers in `word` mean
/// @param integers  they are integers though the format is not
void pack_words(const Plan& plan, const uint8_t (&words)[4][2], const Lanes* const* sources, bool integers,
                LaneMask active, Lanes* out) {
  for (int i = 0; i < plan.num_words; ++i) {
    Lanes word = *sources[words[i][0]];
    if (!plan.wide_output) {
      const Lanes high = *sources[words[i][1]];
      if (!integers && plan.format->kind == Kind::kFloat)
        word = float_to_half(as_float(word)) | float_to_half(as_float(high)) << 16;
      else
        word = (word & 0xffffu) | high << 16;
    }
    out[i] = active == kAllLanes ? word : select(active, word, Lanes{});
  }
}

}  // namespace

void finish_ordered(const Plan& plan, const Lanes* values, LaneMask active, Lanes* out) {
  const Lanes* const sources[4] = {values, values + 1, values + 2, values + 3};
  pack_words(plan, plan.word_source, sources, false, active, out);
}

void finish_integers(const Plan& plan, const Lanes* values, LaneMask active, Lanes* out) {
  const Lanes* const sources[4] = {values, values + 1, values + 2, values + 3};
  pack_words(plan, plan.word_source, sources, true, active, out);
}

void finish(const Plan& plan, const Lanes* rgba, LaneMask active, Lanes* out) {
  static constexpr Lanes kZero = {};
  const Lanes* const sources[6] = {rgba, rgba + 1, rgba + 2, rgba + 3, &kZero, &plan.one};
  pack_words(plan, plan.word_channel, sources, false, active, out);
}

void run_swapped(const Plan& plan, TexelMemory& texels, const TextureLookup& lookup, LaneMask active,
                 Lanes* out) {
  TextureLookup request = lookup;
  std::swap(request.s, request.t);
  const uint32_t bits = plan.options.wide_offsets ? 8 : 4, mask = (1u << bits) - 1;
  request.off =
      (lookup.off & ~(mask | mask << bits)) | (lookup.off & mask) << bits | ((lookup.off >> bits) & mask);
  plan.run_request(plan, texels, request, active, out);
}

void run_nothing(const Plan& plan, TexelMemory&, const TextureLookup&, LaneMask, Lanes* out) {
  for (int i = 0; i < plan.num_words; ++i) out[i] = Lanes{};
}

}  // namespace v3d::tmu
