#include "gpu/tlb/tile.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "absl/strings/str_format.h"
#include "gpu/base/unorm_depth.h"

namespace v3d::tlb {
namespace {

bool valid_tile_size(uint32_t size) {
  return std::has_single_bit(size) && size >= kMinTileSize && size <= kMaxTileSize;
}

/// The first impossible field, or an empty string.
std::string find_fault(const Config& config) {
  if (config.width > kMaxFrameSize || config.height > kMaxFrameSize)
    return absl::StrFormat("frame of %u x %u pixels", config.width, config.height);
  if (!valid_tile_size(config.tile_width) || !valid_tile_size(config.tile_height))
    return absl::StrFormat("tile of %u x %u pixels", config.tile_width, config.tile_height);
  if (config.num_render_targets > kMaxRenderTargets)
    return absl::StrFormat("%d render targets", config.num_render_targets);
  if (config.depth_type > DepthType::k16)
    return absl::StrFormat("internal depth type %d", static_cast<int>(config.depth_type));
  for (int i = 0; i < config.num_render_targets; ++i) {
    const RenderTarget& target = config.targets[static_cast<size_t>(i)];
    if (!target.used) continue;
    if (target.bpp > 2) return absl::StrFormat("internal bpp %d of render target %d", target.bpp, i);
    if (target.type > ColorType::k32F || target.clamp > Clamp::kHlg)
      return absl::StrFormat("type %d, clamp %d of render target %d", static_cast<int>(target.type),
                             static_cast<int>(target.clamp), i);
  }
  return {};
}

}  // namespace

LanesF from_stored_depth(DepthType type, Lanes stored) {
  if (type == DepthType::k32F) return as_float(stored);
  return depth_from_unorm(stored, max_depth(type));
}

bool Tile::configure(const Config& new_config, std::string* error) {
  if (const std::string message = find_fault(new_config); !message.empty()) {
    if (error) *error = "TLB configuration: " + message;
    return false;
  }
  config = new_config;
  uint32_t planes = 2 * samples();
  for (uint32_t rt = 0; rt < kMaxRenderTargets; ++rt) {
    color_planes_[rt] = planes;
    if (has_target(rt)) planes += samples() * color_words(config.targets[rt]);
  }
  memory_.resize(size_t{planes} * (pixels() + kSpareWords) / 16);
  origin_x = origin_y = 0;
  live_width = std::min(config.width, config.tile_width);
  live_height = std::min(config.height, config.tile_height);
  depth_is_clear = stencil_is_clear = false;
  color_is_clear = {};
  fault.clear();
  for (uint32_t rt = 0; rt < kMaxRenderTargets; ++rt)
    if (has_target(rt)) clear_color(rt);
  clear_depth();
  clear_stencil();
  return true;
}

void Tile::begin(uint32_t column, uint32_t row) {
  const auto place = [](uint32_t index, uint32_t tile_size, uint32_t frame_size, uint32_t& origin) {
    origin = static_cast<uint32_t>(std::min<uint64_t>(uint64_t{index} * tile_size, frame_size));
    return std::min(frame_size - origin, tile_size);
  };
  live_width = place(column, config.tile_width, config.width, origin_x);
  live_height = place(row, config.tile_height, config.height, origin_y);
  if (config.auto_clear_zs) {
    clear_depth();
    clear_stencil();
  }
}

void Tile::fill(uint32_t* to, uint32_t value) { std::fill_n(to, pixels(), value); }

void Tile::clear_color(uint32_t rt) {
  if (!has_target(rt) || color_is_clear[rt]) return;
  for (uint32_t s = 0; s < samples(); ++s)
    for (uint32_t w = 0; w < color_words(config.targets[rt]); ++w)
      fill(color(rt, s, w), config.targets[rt].clear[w]);
  color_is_clear[rt] = true;
}

void Tile::clear_depth() {
  if (depth_is_clear) return;
  const uint32_t value = to_stored_depth(config.depth_type, splat(config.clear_z))[0];
  for (uint32_t s = 0; s < samples(); ++s) fill(depth(s), value);
  depth_is_clear = true;
}

void Tile::clear_stencil() {
  if (stencil_is_clear) return;
  for (uint32_t s = 0; s < samples(); ++s) fill(stencil(s), config.clear_stencil);
  stencil_is_clear = true;
}

void Tile::copy_from(const Tile& other) {
  const size_t plane_bytes = size_t{pixels()} * 4;
  assert(memory_.size() == other.memory_.size());
  const auto copy_planes = [&](uint32_t first, uint32_t count) {
    for (uint32_t i = first; i < first + count; ++i) std::memcpy(plane(i), other.plane(i), plane_bytes);
  };
  if (!depth_is_clear || !other.depth_is_clear) copy_planes(0, samples());
  if (!stencil_is_clear || !other.stencil_is_clear) copy_planes(samples(), samples());
  depth_is_clear = other.depth_is_clear;
  stencil_is_clear = other.stencil_is_clear;
  for (uint32_t rt = 0; rt < kMaxRenderTargets; ++rt) {
    if (!has_target(rt)) continue;
    if (!color_is_clear[rt] || !other.color_is_clear[rt])
      copy_planes(color_planes_[rt], samples() * color_words(config.targets[rt]));
    color_is_clear[rt] = other.color_is_clear[rt];
  }
}

}  // namespace v3d::tlb
