#include "gpu/tmu/lookup/lookup_steps.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "gpu/tmu/lookup/atomic.h"
#include "gpu/tmu/lookup/plan.h"

namespace v3d::tmu {
namespace {

using Channels = LookupSteps::Channels;
using Order = LookupSteps::Order;

struct Layout {
  Channels channels;
  int log2_count;
};

std::optional<Channels> channels_of(Number number, int bits) {
  using enum LookupSteps::Channels;
  static constexpr struct {
    Number number;
    int bits;
    Channels channels;
  } kRows[] = {
      {Number::kHalf, 16, kHalf},   {Number::kDepth, 16, kDepth16}, {Number::kDepth, 24, kDepth24},
      {Number::kFloat, 32, kFloat}, {Number::kInt, 8, kSint8},      {Number::kUint, 8, kUint8},
      {Number::kInt, 16, kSint16},  {Number::kUint, 16, kUint16},   {Number::kInt, 32, kWord},
      {Number::kUint, 32, kWord},
  };
  for (const auto& row : kRows)
    if (row.number == number && row.bits == bits) return row.channels;
  return {};
}

/// The channels if they are alike and fill the texel: then from bit 0 on, or as depth the upper bits of a
/// word.
std::optional<Layout> equal_channels(const Format& format) {
  const Packing& packing = format.packing;
  const int bits = packing.channels[0].bits;
  int count = 0;
  for (int end = 8 * format.cpp; count < 4 && packing.channels[count].bits > 0; ++count) {
    if (packing.channels[count].bits != bits) return {};
    if (packing.number != Number::kDepth && packing.channels[count].first != count * bits) return {};
    if (packing.number == Number::kDepth && packing.channels[count].first + bits != end) return {};
  }
  const std::optional<Channels> channels = channels_of(packing.number, bits);
  if (!channels || !std::has_single_bit(static_cast<uint32_t>(count))) return {};
  return Layout{*channels, std::countr_zero(static_cast<uint32_t>(count))};
}

std::optional<Layout> layout_of(const Plan& plan) {
  using enum LookupSteps::Channels;
  const Format& format = *plan.format;
  if (format.compressed()) return {};
  const Transfer transfer = plan.texture.transfer;
  const bool transfers = format.transfers && transfer != Transfer::kNone;
  if (format.unorm_bytes == 4 && transfers && transfer == Transfer::kSrgb) return Layout{kSrgb8, 2};
  if (format.unorm_bytes > 0 && !transfers)
    return Layout{kUnorm8, std::countr_zero(static_cast<uint32_t>(format.unorm_bytes))};
  if (has_fields(format)) return Layout{kField, plan.log2_cpp};
  return equal_channels(format);
}

/// Fields, each of which takes longer than the words, have no code for a certain order.
Order order_of(const Plan& plan, Channels channels) {
  if (channels == Channels::kField) return Order::kAny;
  static constexpr struct {
    Order order;
    uint8_t channel[4];
  } kKnown[] = {{Order::kRgba, {0, 1, 2, 3}}, {Order::kBgra, {2, 1, 0, 3}}};
  for (const auto& known : kKnown) {
    bool same = true;
    for (int word = 0; word < plan.num_words; ++word)
      for (int half = 0; half < (plan.wide_output ? 1 : 2); ++half)
        same &= plan.word_channel[word][half] == known.channel[plan.wide_output ? word : 2 * word + half];
    if (same) return known.order;
  }
  return Order::kAny;
}

bool is_fetch(const Plan& plan) { return static_cast<Launcher>(plan.key.shape >> 16) == Launcher::kSF; }
uint32_t num_data(const Plan& plan) { return (plan.key.shape >> 8) & 0xff; }

bool always_nearest(const Plan& plan) {
  return plan.sampler.mag_nearest && (plan.sampler.min_nearest || !plan.needs_lod);
}

bool has_blend(Channels channels) {
  return channels == Channels::kUnorm8 || LookupSteps::are_fields(channels);
}

/// The first thing.
NotGenerated find_not_generated(const Plan& plan, const std::optional<Layout>& layout) {
  using enum NotGenerated;
  const bool stores = num_data(plan) > 0, samples = !is_fetch(plan);
  const auto has_no_code = [&](int axis) {
    return static_cast<int>(plan.sampler.wrap[axis]) >= LookupSteps::kWraps;
  };
  const struct {
    bool is_so;
    NotGenerated what;
  } rows[] = {
      {plan.format->compressed(), kCompressed},
      {plan.flips || plan.run == run_swapped, kFlip},
      {plan.general_wrap, kOffsets},
      {plan.options.dimension_query || (samples && plan.options.lod_query), kQuery},
      {!samples && plan.options.op != kRegular, kAtomic},
      {stores && (samples || plan.packing || plan.options.write_conversion || plan.format->cpp < 4 ||
                  plan.num_words != 0),
       kStore},
      {!stores && !layout, kFormat},
      {!stores && plan.texture.transfer != Transfer::kNone && layout &&
           !LookupSteps::are_fields(layout->channels),
       kTransfer},
      {samples && plan.options.gather, kGather},
      {samples && plan.cube, kCube},
      {samples && plan.dims != 2, kDimensions},
      {samples && plan.anisotropic && layout && !has_blend(layout->channels), kAnisotropic},
      {samples && plan.compare, kCompare},
      {samples && (plan.has_border || has_no_code(0) || has_no_code(1)), kBorder},
      {samples && !always_nearest(plan) && layout && !has_blend(layout->channels), kFilter},
  };
  const auto* const found =
      std::find_if(std::begin(rows), std::end(rows), [](const auto& row) { return row.is_so; });
  return found == std::end(rows) ? kNothing : found->what;
}

/// Levels that stay in the host's caches beside all else are faster without, and so are those that are looked
/// up densely.
bool is_worth_fetching_ahead(const Plan& plan) {
  constexpr uint64_t kLargeBytes = 256 << 10;
  const uint32_t level = plan.texture.base_level;
  const auto width = static_cast<uint64_t>(plan.levels.width[level]),
             height = static_cast<uint64_t>(plan.levels.height[level]);
  return plan.dims == 2 && plan.needs_lod != always_nearest(plan) && num_data(plan) == 0 &&
         (width * height) << plan.log2_cpp >= kLargeBytes;
}

LookupSteps::Halves halves_of(const uint8_t* channels) {
  constexpr uint32_t kOneHalf = 0x3c00;
  LookupSteps::Halves halves;
  for (int half = 0; half < 2; ++half) {
    const uint8_t channel = channels[half];
    const int shift = 16 * half;
    if (channel < kZeroSource) {
      halves.channels |= channel * 0x101u << shift;
      halves.mask |= 0xffffu << shift;
    } else if (channel == kOneSource) {
      halves.ones |= kOneHalf << shift;
    }
  }
  return halves;
}

/// The steps of lookups with a sampler.
void choose_filters(const Plan& plan, const Layout& layout, bool layers, LookupSteps& steps) {
  const SamplerState& sampler = plan.sampler;
  const int s = static_cast<int>(sampler.wrap[0]), t = static_cast<int>(sampler.wrap[1]);
  const uint8_t nearest = LookupSteps::nearest(s, t, layers),
                linear = layout.channels == Channels::kUnorm8 ? LookupSteps::linear(s, t, layers)
                                                              : LookupSteps::linear_in_float(s, t, layers);
  steps.blend_step = LookupSteps::blend(layout.channels, layout.log2_count, plan.wide_output,
                                        order_of(plan, layout.channels));
  steps.decode_step = LookupSteps::decode(layout.channels, layout.log2_count, false);
  steps.decode_blend_step = LookupSteps::decode(layout.channels, layout.log2_count, true);
  steps.nearest_filter = LookupSteps::filter(nearest);
  steps.linear_filter = LookupSteps::filter(linear);
  steps.magnified_filter = sampler.mag_nearest ? steps.nearest_filter : steps.linear_filter;
  steps.minified_filter = sampler.min_nearest ? steps.nearest_filter : steps.linear_filter;
  steps.last_level = std::max(plan.texture.base_level, plan.texture.max_level);
  steps.magnified_nearest = sampler.mag_nearest ? kAllLanes : 0;
  steps.minified_nearest = sampler.min_nearest ? kAllLanes : 0;
  steps.bias = static_cast<float>(sampler.bias) * (1.0f / 256);
  steps.coordinates_step = plan.anisotropic      ? LookupSteps::kAnisotropicLevels
                           : plan.needs_lod      ? LookupSteps::kLevels
                           : sampler.mag_nearest ? nearest
                                                 : linear;
}

}  // namespace

const char* name(NotGenerated not_generated) {
  static constexpr const char* kNames[kNumNotGenerated] = {"nothing",
                                                           "compressed texture",
                                                           "flipped axis",
                                                           "offset or unnormalized coordinates",
                                                           "query",
                                                           "atomic",
                                                           "store",
                                                           "format",
                                                           "transfer function",
                                                           "gather",
                                                           "cube",
                                                           "1D or 3D texture",
                                                           "anisotropy",
                                                           "comparison",
                                                           "border or mirror once",
                                                           "linear filter of the format"};
  return kNames[static_cast<int>(not_generated)];
}

LookupSteps make_lookup_steps(const Plan& plan) {
  LookupSteps steps;
  const std::optional<Layout> layout = layout_of(plan);
  steps.not_generated = find_not_generated(plan, layout);
  if (steps.not_generated != NotGenerated::kNothing) return steps;

  steps.address_step = LookupSteps::address(plan.log2_cpp, plan.dims == 1);
  if (num_data(plan) > 0) {
    steps.texels_step = LookupSteps::kStore;
    steps.stored_words = static_cast<uint8_t>(std::min(plan.format->cpp / 4u, num_data(plan)));
  } else {
    steps.texels_step = LookupSteps::load(layout->channels, layout->log2_count, plan.wide_output,
                                          order_of(plan, layout->channels));
    steps.integers = plan.format->kind != Kind::kFloat;
    for (int word = 0; word < std::min<int>(plan.num_words, 2); ++word)
      steps.halves[word] = halves_of(plan.word_channel[word]);
    if (LookupSteps::are_fields(layout->channels)) steps.fields = field_tables(*plan.format, plan.decode);
  }

  const TextureState& texture = plan.texture;
  const uint32_t written = plan.key.shape & 0xff;
  const bool layers = written & kI;
  steps.base_level = texture.base_level;
  steps.num_levels =
      texture.max_level >= texture.base_level ? texture.max_level - texture.base_level + 1u : 0u;
  steps.fetches_ahead = is_worth_fetching_ahead(plan);
  steps.last_layer = static_cast<float>(texture.depth > 0 ? texture.depth - 1 : 0);
  if (is_fetch(plan))
    steps.coordinates_step = LookupSteps::fetch(plan.dims, layers, written & kB);
  else
    choose_filters(plan, *layout, layers, steps);
  return steps;
}

}  // namespace v3d::tmu
