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

void store_bits_again(uint32_t* plane, const QuadOffsets& quads, const Lanes& bits, const Lanes& v) {
  for (int i = 0; i < 4; ++i) {
    uint32_t* const quad = plane + quads.at[i];
    for (int n = 0; n < 4; ++n) {
      const uint32_t written = bits[4 * i + n];
      quad[n] = (v[4 * i + n] & written) | (quad[n] & ~written);
    }
  }
}

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
    color_words_[rt] = has_target(rt) ? color_words(config.targets[rt]) : 0;
    planes += samples() * color_words_[rt];
  }
  plane_words_ = pixels() + kSpareWords;
  num_planes_ = planes;
  column = row = origin_x = origin_y = 0;
  live_width = std::min(config.width, config.tile_width);
  live_height = std::min(config.height, config.tile_height);
  fault.clear();
  clear_ = 0;
  for (uint32_t buffer = 0; buffer < kBuffers; ++buffer) clear(buffer);
  return true;
}

void Tile::begin(uint32_t new_column, uint32_t new_row) {
  column = new_column;
  row = new_row;
  const auto place = [](uint32_t index, uint32_t tile_size, uint32_t frame_size, uint32_t& origin) {
    origin = static_cast<uint32_t>(std::min<uint64_t>(uint64_t{index} * tile_size, frame_size));
    return std::min(frame_size - origin, tile_size);
  };
  live_width = place(column, config.tile_width, config.width, origin_x);
  live_height = place(row, config.tile_height, config.height, origin_y);
  if (config.auto_clear_zs) {
    clear(kDepth);
    clear(kStencil);
  }
}

uint32_t Tile::clear_value(uint32_t buffer, uint32_t word) const {
  switch (buffer) {
    case kDepth:
      return to_stored_depth(config.depth_type, splat(config.clear_z))[0];
    case kStencil:
      return config.clear_stencil;
    default:
      return config.targets[buffer - kColors].clear[word];
  }
}

void Tile::allocate() {
  const size_t lines = size_t{num_planes_} * plane_words_ / 16;
  if (memory_.size() < lines) memory_.resize(lines);
}

void Tile::fill_planes(uint32_t buffer, uint32_t num_pixels) {
  allocate();
  const uint32_t first = first_plane(buffer), words = words_of(buffer);
  for (uint32_t i = 0; i < samples() * words; ++i)
    std::fill_n(plane(first + i), num_pixels, clear_value(buffer, i % words));
}

void Tile::fill_all(uint32_t buffer) {
  fill_planes(buffer, pixels());
  unfilled_ &= ~(1u << buffer);
}

void Tile::fill_strip(uint32_t buffer) {
  if ((unfilled_ >> buffer) & 1) fill_planes(buffer, 2 * config.tile_width);
}

void Tile::fill_outside(uint32_t buffer) {
  if (live_width != config.tile_width || live_height != config.tile_height) return fill(buffer);
  allocate();
  unfilled_ &= ~(1u << buffer);
}

void Tile::copy_from(const Tile& other) {
  const size_t plane_bytes = size_t{pixels()} * 4;
  assert(num_planes_ == other.num_planes_);
  for (uint32_t buffer = 0; buffer < kBuffers; ++buffer) {
    if (!has(buffer)) continue;
    if (other.is_clear(buffer)) {
      clear(buffer);
      continue;
    }
    allocate();
    const uint32_t first = first_plane(buffer), end = first + samples() * words_of(buffer);
    for (uint32_t i = first; i < end; ++i) std::memcpy(plane(i), other.plane(i), plane_bytes);
    dirty(buffer);
    unfilled_ &= ~(1u << buffer);
  }
}

}  // namespace v3d::tlb
