#include "gpu/ptb/clipper.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace v3d::ptb {

namespace {

/// The guard box leaves so much room for rounding below ViewRules::max_coordinate.
constexpr int32_t kRounding = 64;

/// Points with W below this part of the largest W count as behind the eye: their projection means nothing.
constexpr double kMinRelativeW = 1e-12;

int plane_number(uint16_t bit) { return std::countr_zero(bit); }

}  // namespace

Clipper::Clipper(const draw::DrawState& state, const ViewRules& rules)
    : screen_(state, rules),
      half_width_(std::ldexp(state.xy_half_width, kScreenFractionBits - rules.fraction_bits)),
      half_height_(std::ldexp(state.xy_half_height, kScreenFractionBits - rules.fraction_bits)) {
  const auto guard = static_cast<float>(rules.max_coordinate - kRounding);
  const auto width = static_cast<float>(half_width_), height = static_cast<float>(half_height_);
  planes_[plane_number(kOutLeft)] = {.a = width, .d = guard};
  planes_[plane_number(kOutRight)] = {.a = -width, .d = guard};
  planes_[plane_number(kOutTop)] = {.b = height, .d = guard};
  planes_[plane_number(kOutBottom)] = {.b = -height, .d = guard};
  planes_[plane_number(kOutBehind)] = {.d = 1};
  Plane& near = planes_[plane_number(kOutNear)];
  Plane& far = planes_[plane_number(kOutFar)];
  near = far = {.d = 1};  // no depth clipping: the same as kOutBehind
  switch (state.cfg.z_clip_mode) {
    case 1:
      near = {.c = 1, .d = 1};
      far = {.c = -1, .d = 1};
      break;
    case 2:
      near = {.c = 1, .d = 0};
      far = {.c = -1, .d = 1};
      break;
    case draw::CfgBits::kZClipRange:
      near = {.c = state.z_scale, .d = state.z_offset - state.z_min_clip};
      far = {.c = -state.z_scale, .d = state.z_max_clip - state.z_offset};
      break;
    default:
      break;
  }
}

Lanes Clipper::classify(const LanesF clip[4]) const {
  constexpr float kMax = std::numeric_limits<float>::max();
  return by_parts<Lanes>(
      [this](auto x, auto y, auto z, auto w) {
        HostPart<LanesI>::type code{};
        for (int i = 0; i < kNumPlanes; ++i) {
          const Plane& p = planes_[static_cast<size_t>(i)];
          const auto d = x * p.a + y * p.b + z * p.c + w * p.d;
          code |= ~(d >= 0.0f) & (1 << i);
        }
        code |= ~(w > 0.0f) & int{kOutBehind};
        const auto finite = [](auto v) { return (v >= -kMax) & (v <= kMax); };
        code |= ~(finite(x) & finite(y) & finite(z) & finite(w)) & int{kOutInvalid};
        return code;
      },
      clip[0], clip[1], clip[2], clip[3]);
}

double Clipper::distance(const Plane& plane, const Corner& c, double min_w) {
  const double d = plane.a * c.clip[0] + plane.b * c.clip[1] + plane.c * c.clip[2] + plane.d * c.clip[3];
  const bool only_w = plane.a == 0 && plane.b == 0 && plane.c == 0;
  return only_w ? d - plane.d * min_w : d;
}

/// Always from the inside out, so that neighbours cut a shared edge at the same point.
Clipper::Corner Clipper::cross(const Corner& inside, const Corner& outside, double d_inside,
                               double d_outside) {
  const double t = d_inside / (d_inside - d_outside);
  Corner c;
  for (int i = 0; i < 4; ++i) c.clip[i] = inside.clip[i] + t * (outside.clip[i] - inside.clip[i]);
  for (int i = 0; i < 3; ++i) c.weight[i] = inside.weight[i] + t * (outside.weight[i] - inside.weight[i]);
  c.original = -1;
  return c;
}

void Clipper::cut_polygon(const Plane& plane, double min_w, Corners* corners) {
  Corners out;
  for (int i = 0; i < corners->count; ++i) {
    const Corner& a = corners->at[static_cast<size_t>(i)];
    const Corner& b = corners->at[static_cast<size_t>((i + 1) % corners->count)];
    const double da = distance(plane, a, min_w), db = distance(plane, b, min_w);
    if (da >= 0) out.at[static_cast<size_t>(out.count++)] = a;
    if ((da >= 0) == (db >= 0)) continue;
    out.at[static_cast<size_t>(out.count++)] = da >= 0 ? cross(a, b, da, db) : cross(b, a, db, da);
  }
  *corners = out;
}

void Clipper::cut_line(const Plane& plane, double min_w, Corners* corners) {
  Corner &a = corners->at[0], &b = corners->at[1];
  const double da = distance(plane, a, min_w), db = distance(plane, b, min_w);
  if (da < 0 && db < 0) {
    corners->count = 0;
  } else if (da < 0) {
    a = cross(b, a, db, da);
  } else if (db < 0) {
    b = cross(a, b, da, db);
  }
}

draw::ClippedPolygon::Corner Clipper::project(const Corner& c, const ClipVertex* vertices) const {
  draw::ClippedPolygon::Corner out;
  for (int i = 0; i < 3; ++i) out.weight[i] = static_cast<float>(c.weight[i]);
  out.z = static_cast<float>(c.clip[2]);
  out.w = static_cast<float>(c.clip[3]);
  if (c.original >= 0) {  // as the program projected it
    out.x = vertices[c.original].x;
    out.y = vertices[c.original].y;
    return out;
  }
  const auto view = [&](double coordinate, double half) {
    const double limit = screen_.max_coordinate;
    return static_cast<int32_t>(std::nearbyint(std::clamp(coordinate * half / c.clip[3], -limit, limit)));
  };
  out.x = view(c.clip[0], half_width_) + screen_.center_x;
  out.y = view(c.clip[1], half_height_) + screen_.center_y;
  return out;
}

bool Clipper::clip(const ClipVertex* vertices, int count, uint16_t codes, draw::ClippedPolygon* out) const {
  Corners corners;
  double max_w = 0;
  for (int i = 0; i < count; ++i) {
    Corner& c = corners.at[static_cast<size_t>(corners.count++)];
    std::copy_n(vertices[i].clip, 4, c.clip);
    for (int k = 0; k < 3; ++k) c.weight[k] = k == i;
    c.original = i;
    max_w = std::max(max_w, std::abs(c.clip[3]));
  }
  const double min_w = max_w * kMinRelativeW;
  // W > 0 comes first: where it fails, being left or right of something means nothing.
  constexpr Outcode kOrder[] = {kOutBehind, kOutNear, kOutFar, kOutLeft, kOutRight, kOutTop, kOutBottom};
  for (const Outcode bit : kOrder) {
    if ((codes & bit) == 0 || corners.count == 0) continue;
    const Plane& plane = planes_[static_cast<size_t>(plane_number(bit))];
    count == 2 ? cut_line(plane, min_w, &corners) : cut_polygon(plane, min_w, &corners);
  }
  if (corners.count < count) return false;
  out->num_corners = static_cast<uint32_t>(corners.count);
  for (int i = 0; i < corners.count; ++i) {
    // Rounding may leave a corner made by one plane just outside the next one; W at least must be right.
    if (!(corners.at[static_cast<size_t>(i)].clip[3] > 0)) return false;
    out->corners[i] = project(corners.at[static_cast<size_t>(i)], vertices);
  }
  return true;
}

}  // namespace v3d::ptb
