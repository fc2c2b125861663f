#include "gpu/tmu/lookup/direct.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "gpu/tmu/lookup/atomic.h"
#include "gpu/tmu/lookup/plan.h"

namespace v3d::tmu {
namespace {

using Channels = Direct::Channels;
using Order = Direct::Order;

struct Layout {
  Channels channels;
  int log2_count;
};

std::optional<Layout> layout_of(uint8_t type) {
  using enum Direct::Channels;
  static constexpr struct {
    uint8_t type;
    Layout layout;
  } kLayouts[] = {
      {0, {kUnorm8, 0}},   {2, {kUnorm8, 1}},   {4, {kUnorm8, 2}},    // R8, RG8, RGBA8
      {16, {kHalf, 0}},    {17, {kHalf, 1}},    {18, {kHalf, 2}},     // 16F
      {23, {kFloat, 0}},                                              // DEPTH_COMP32F
      {29, {kFloat, 0}},   {30, {kFloat, 1}},   {31, {kFloat, 2}},    // 32F
      {96, {kSint8, 0}},   {98, {kSint8, 1}},   {100, {kSint8, 2}},   // 8I
      {97, {kUint8, 0}},   {99, {kUint8, 1}},   {101, {kUint8, 2}},   // 8UI
      {102, {kSint16, 0}}, {104, {kSint16, 1}}, {106, {kSint16, 2}},  // 16I
      {103, {kUint16, 0}}, {105, {kUint16, 1}}, {107, {kUint16, 2}},  // 16UI
      {108, {kWord, 0}},   {110, {kWord, 1}},   {112, {kWord, 2}},    // 32I
      {109, {kWord, 0}},   {111, {kWord, 1}},   {113, {kWord, 2}},    // 32UI
  };
  const auto* const found = std::find_if(std::begin(kLayouts), std::end(kLayouts),
                                         [=](const auto& row) { return row.type == type; });
  if (found == std::end(kLayouts)) return {};
  return found->layout;
}

Order order_of(const Plan& plan) {
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

bool is_plain_filter(const Plan& plan) {
  return plan.dims == 2 && !plan.cube && !plan.anisotropic && !plan.has_border && !plan.compare &&
         !plan.options.gather && !plan.options.lod_query &&
         static_cast<int>(plan.sampler.wrap[0]) < Direct::kWraps &&
         static_cast<int>(plan.sampler.wrap[1]) < Direct::kWraps;
}

/// Sets the steps of lookups with a sampler, if they all are there.
void choose_filters(const Plan& plan, const Layout& layout, bool layers, Direct& direct) {
  const SamplerState& sampler = plan.sampler;
  const int s = static_cast<int>(sampler.wrap[0]), t = static_cast<int>(sampler.wrap[1]);
  const bool always_nearest = sampler.mag_nearest && (sampler.min_nearest || !plan.needs_lod);
  if (!is_plain_filter(plan) || (!always_nearest && layout.channels != Channels::kUnorm8)) return;
  const uint8_t nearest = Direct::nearest(s, t, layers), linear = Direct::linear(s, t, layers);
  direct.blend_step = Direct::blend(layout.channels, layout.log2_count, plan.wide_output, order_of(plan));
  direct.decode_step = Direct::decode(layout.channels, layout.log2_count, false);
  direct.decode_blend_step = Direct::decode(layout.channels, layout.log2_count, true);
  direct.nearest_filter = Direct::filter(nearest);
  direct.linear_filter = Direct::filter(linear);
  direct.magnified_filter = sampler.mag_nearest ? direct.nearest_filter : direct.linear_filter;
  direct.minified_filter = sampler.min_nearest ? direct.nearest_filter : direct.linear_filter;
  direct.last_level = std::max(plan.texture.base_level, plan.texture.max_level);
  direct.magnified_nearest = sampler.mag_nearest ? kAllLanes : 0;
  direct.minified_nearest = sampler.min_nearest ? kAllLanes : 0;
  direct.bias = static_cast<float>(sampler.bias) * (1.0f / 256);
  direct.coordinates_step = plan.needs_lod ? Direct::kLevels : sampler.mag_nearest ? nearest : linear;
}

}  // namespace

Direct make_direct(const Plan& plan) {
  Direct direct;
  const uint32_t written = plan.key.shape & 0xff, num_data = (plan.key.shape >> 8) & 0xff;
  const bool is_fetch = static_cast<Launcher>(plan.key.shape >> 16) == Launcher::kSF;
  if (plan.format->compressed() || plan.flips || plan.general_wrap || plan.options.dimension_query ||
      plan.run == run_swapped)
    return direct;

  direct.address_step = Direct::address(plan.log2_cpp, plan.dims == 1);
  const std::optional<Layout> layout = layout_of(plan.texture.type);
  if (num_data > 0) {
    if (!is_fetch || plan.options.op != kRegular || plan.packing || plan.options.write_conversion ||
        plan.format->cpp < 4 || plan.num_words != 0)
      return direct;
    direct.texels_step = Direct::kStore;
    direct.stored_words = static_cast<uint8_t>(std::min(plan.format->cpp / 4u, num_data));
  } else {
    if (!layout || plan.texture.transfer != Transfer::kNone || (is_fetch && plan.options.op != kRegular))
      return direct;
    direct.texels_step = Direct::load(layout->channels, layout->log2_count, plan.wide_output, order_of(plan));
    direct.integers = plan.format->kind != Kind::kFloat;
  }

  const TextureState& texture = plan.texture;
  const bool layers = written & kI;
  direct.base_level = texture.base_level;
  direct.num_levels =
      texture.max_level >= texture.base_level ? texture.max_level - texture.base_level + 1u : 0u;
  direct.last_layer = static_cast<float>(texture.depth > 0 ? texture.depth - 1 : 0);
  if (is_fetch)
    direct.coordinates_step = Direct::fetch(plan.dims, layers, written & kB);
  else
    choose_filters(plan, *layout, layers, direct);
  return direct;
}

}  // namespace v3d::tmu
