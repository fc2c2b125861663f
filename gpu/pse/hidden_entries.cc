#include "gpu/pse/hidden_entries.h"

#include <algorithm>
#include <array>

#include "gpu/pse/geometry.h"

namespace v3d::pse {
namespace {

/// Triangles of a list that are looked at: what covers a tile comes with few others.
constexpr int kMostLooks = 64;
constexpr size_t kMostPrograms = 64;
/// In the units of a WorkMeter.
constexpr uint32_t kDrawCost = 2, kEntryCost = 1, kLookCost = 10;

/// Whether draws colour one buffer, number 0, of one sample.
bool has_one_color(const tlb::Config& config) {
  if (config.multisample || config.num_render_targets == 0 || !config.targets[0].used) return false;
  for (uint32_t rt = 1; rt < std::min<uint32_t>(config.num_render_targets, tlb::kMaxRenderTargets); ++rt)
    if (config.targets[rt].used) return false;
  return true;
}

/// The state replaces what is below: nothing is tested or blended, and no channel is kept.
bool state_covers(const PreparedDraw& draw) {
  const draw::DrawState& s = draw.state();
  return draw.draw->vertices_per_primitive == 3 && !draw.record().fs_writes_z && (s.sample_mask & 1) != 0 &&
         !s.cfg.stencil && !s.cfg.depth_bounds && s.cfg.depth_func == Compare::kAlways && !s.cfg.blend &&
         (s.color_masks[0] & 0xf) == 0;
}

/// What is not implemented of blending ends the job when it is drawn.
bool can_blend(const draw::DrawState& s) {
  if (!s.cfg.blend) return true;
  const draw::BlendConfig& b = s.blend[0];
  return draw::exists(b.color_mode) && draw::exists(b.alpha_mode) && draw::exists(b.color_src) &&
         draw::exists(b.color_dst) && draw::exists(b.alpha_src) && draw::exists(b.alpha_dst);
}

/// The state leaves colours and depths, and nothing else.
bool state_hides(const PreparedDraw& draw) {
  const draw::DrawState& s = draw.state();
  return !s.cfg.stencil && s.occlusion_counter == 0 && can_blend(s);
}

Corner corner_of(const uint32_t* vertex) {
  return {static_cast<int32_t>(vertex[0]), static_cast<int32_t>(vertex[1]), 0, 0};
}

/// @param pixels  absolute
bool has_centers_inside(const Edge& e, const Rect& pixels) {
  const auto center = [](int pixel) { return int64_t{pixel} * kSubpixels + kSubpixels / 2; };
  const int x = e.a >= 0 ? pixels.left : pixels.right - 1, y = e.b >= 0 ? pixels.top : pixels.bottom - 1;
  return e.a * center(x) + e.b * center(y) + e.c >= 0;
}

/// What one has outside the other one has inside, to the pixel: edges of fill rules do not overlap.
bool are_two_sides(const Edge& a, const Edge& b) { return a.a == -b.a && a.b == -b.b && a.c + b.c == -1; }

}  // namespace

std::unique_ptr<const HiddenEntries> HiddenEntries::create(const JobContext& job, const tlb::Config& config,
                                                           const std::vector<PreparedDraw>& draws) {
  if (job.is_seen() || !has_one_color(config)) return nullptr;
  auto roles = std::make_unique<Role[]>(draws.size());
  bool hides = false, covers = false;
  WorkMeter meter(&job);
  for (size_t i = 0; i < draws.size(); ++i) {
    if (!meter.charge(kDrawCost)) return nullptr;
    if (draws[i].draw == nullptr) continue;
    roles[i].covers = state_covers(draws[i]);
    roles[i].hides = state_hides(draws[i]);
    roles[i].writes_depth = draws[i].state().cfg.z_write;
    hides = hides || roles[i].hides;
    covers = covers || (hides && roles[i].covers);
  }
  if (!covers) return nullptr;
  return std::unique_ptr<const HiddenEntries>(new HiddenEntries(job, config, draws, std::move(roles)));
}

HiddenEntries::HiddenEntries(const JobContext& job, const tlb::Config& config,
                             const std::vector<PreparedDraw>& draws, std::unique_ptr<Role[]> roles)
    : job_(job), config_(config), draws_(draws), roles_(std::move(roles)) {}

/// Of the first programs of a job; of others nothing is known. What is found out takes a while: it is charged
/// without the lock, which others of the job may want.
ProgramEffects HiddenEntries::effects_of(const PreparedDraw& draw, WorkMeter& meter) const {
  if (draw.program == nullptr) return {};  // of VideoCore IV
  const std::pair key(draw.program.get(), draw.record().fs.final_section);
  ProgramEffects effects;
  {
    const std::lock_guard lock(mutex_);
    const auto known = effects_.find(key);
    if (known != effects_.end()) return known->second;
    if (effects_.size() == kMostPrograms) return {};
    effects = effects_.try_emplace(key, job_.memory, *key.first, key.second).first->second;
  }
  meter.charge(effects.cost());
  return effects;
}

/// Several threads may find out the same.
const HiddenEntries::Role& HiddenEntries::with_program(uint32_t draw, WorkMeter& meter) const {
  Role& role = roles_[draw];
  if (role.knows_program.load(std::memory_order_acquire)) return role;
  if (role.covers || role.hides) {
    const ProgramEffects effects = effects_of(draws_[draw], meter);
    const bool harmless = effects.is_harmless(job_.memory, draws_[draw].record().fs.uniforms);
    if (!harmless || !effects.replaces()) role.covers = false;
    if (!harmless) role.hides = false;
  }
  role.knows_program.store(true, std::memory_order_release);
  return role;
}

/// Which of its edges leave pixels of the tile outside. What covers nothing counts as cut by all of them.
HiddenEntries::Cuts HiddenEntries::cuts_of(const draw::ListEntry& entry, const Rect& pixels) const {
  Cuts cuts{3, {}};
  const PreparedDraw& draw = draws_[entry.draw];
  const draw::DrawState& s = draw.state();
  if (s.clip_left > pixels.left || s.clip_bottom > pixels.top || s.clip_left + s.clip_width < pixels.right ||
      s.clip_bottom + s.clip_height < pixels.bottom)
    return cuts;
  const draw::Primitive& p = draw.draw->primitives[entry.primitive];
  if (p.clipped >= 0 || !draw.has_vertices(p, 3)) return cuts;
  std::array<Corner, 3> corners;
  for (size_t k = 0; k < 3; ++k) corners[k] = corner_of(draw.vertex(p.vertex[k]));
  Geometry geometry;
  if (!triangle_geometry(corners, 0, 0, geometry)) return cuts;
  cuts.count = 0;
  for (size_t k = 0; k < 3; ++k) {
    if (has_centers_inside(geometry.edges[k], pixels)) continue;
    ++cuts.count;
    cuts.edge = geometry.edges[k];
  }
  return cuts;
}

/// How many entries, of which this one is the last, cover the tile together: 1, 2, or 0 for none. Of two
/// triangles that a line divides each pixel lies in one.
size_t HiddenEntries::covering(std::span<const draw::ListEntry> list, size_t last, const Rect& pixels) const {
  const Cuts cuts = cuts_of(list[last], pixels);
  if (cuts.count == 0) return 1;
  if (cuts.count != 1 || last == 0 || list[last - 1].draw != list[last].draw) return 0;
  const Cuts other = cuts_of(list[last - 1], pixels);
  return other.count == 1 && are_two_sides(cuts.edge, other.edge) ? 2 : 0;
}

HiddenEntries::Range HiddenEntries::find(std::span<const draw::ListEntry> list, int tile_x,
                                         int tile_y) const {
  const Rect pixels = intersect({tile_x, tile_y, tile_x + static_cast<int>(config_.tile_width),
                                 tile_y + static_cast<int>(config_.tile_height)},
                                {0, 0, static_cast<int>(config_.width), static_cast<int>(config_.height)});
  int looks = kMostLooks;
  WorkMeter meter(&job_);
  for (size_t last = list.size(); last-- > 1 && meter.charge(kEntryCost);) {
    const uint32_t draw = list[last].draw;
    if (!roles_[draw].covers.load(std::memory_order_relaxed)) continue;
    if (looks-- == 0) break;
    meter.charge(kLookCost);
    const size_t count = covering(list, last, pixels);
    if (count == 0 || !with_program(draw, meter).covers) continue;
    const bool also_depth = roles_[draw].writes_depth;
    const auto hidden = [&](uint32_t d) {
      return (also_depth || !roles_[d].writes_depth) && with_program(d, meter).hides;
    };
    const size_t end = last + 1 - count;
    size_t first = end;
    while (first > 0 && meter.charge(kEntryCost) && hidden(list[first - 1].draw)) --first;
    if (first < end) return {first, end};
  }
  return {};
}

}  // namespace v3d::pse
