/// @file Which states of the display there are (Linux drm_atomic.c, drm_atomic_helper.c, drm_modes.c). The
/// limits of the scaler's line memory and of the display list are not modelled: what a board refuses with
/// ENOSPC for them is shown here.
#include "ioctl/display/state.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace v3d::ioctl::kms {
namespace {

/// Of mode flags: one of those that choose the polarity and the scan; no stereo, no other aspect ratios.
constexpr uint32_t kKnownFlags = 0x3fff | 0x7c000 | 0x780000;
constexpr uint32_t kAspectFlags = 0x780000, kStereoFlags = 0x7c000;

int check_plane(uint32_t id, const ObjectState& plane) {
  const bool has_crtc = plane.get(kCrtc) != 0;
  if (has_crtc != (plane.fb != nullptr)) return EINVAL;
  if (!has_crtc) return 0;
  if (!(pipes_of_plane(id) >> find_pipe(plane.get_u32(kCrtc)) & 1)) return EINVAL;
  // The framebuffer was made for planes, all of which take the same formats.
  const int64_t x = plane.get_signed(kCrtcX), y = plane.get_signed(kCrtcY);
  const int64_t w = plane.get_u32(kCrtcW), h = plane.get_u32(kCrtcH);
  if (w > INT32_MAX || x > INT32_MAX - w || h > INT32_MAX || y > INT32_MAX - h) return ERANGE;
  if (const int error = check_source(*plane.fb, {plane.get_u32(kSrcX), plane.get_u32(kSrcY),
                                                 plane.get_u32(kSrcW), plane.get_u32(kSrcH)}))
    return error;
  return 0;
}

/// The driver's own look at a plane that is on (drm_atomic_helper_check_plane_state).
int check_scaling(const ObjectState& plane) {
  const uint64_t src_w = plane.get_u32(kSrcW), src_h = plane.get_u32(kSrcH);
  const uint64_t w = plane.get_u32(kCrtcW), h = plane.get_u32(kCrtcH);
  if (!w || !h) return 0;  // nothing is seen of it
  // At least 1/65536 of a pixel for a pixel, at most 2^15.
  if (src_w < w || src_h < h || src_w / w > INT32_MAX || src_h / h > INT32_MAX) return ERANGE;
  return 0;
}

bool same_mode(const DisplayState& a, const DisplayState& b, uint32_t pipe) {
  if (a.enabled(pipe) != b.enabled(pipe)) return false;
  if (!a.enabled(pipe)) return true;
  const drm::ModeInfo x = a.mode(pipe), y = b.mode(pipe);
  // Neither names nor types matter.
  return std::memcmp(&x, &y, offsetof(drm::ModeInfo, vrefresh)) == 0 && x.flags == y.flags;
}

/// Each connector has one CRTC that its encoder can use; what of a picture is written is of an active one
/// (drm_atomic_connector_check, vc4_txp_connector_atomic_check).
int check_connector(const DisplayState& to, uint32_t pipe) {
  const ObjectState& connector = to.connector(pipe);
  if (connector.get(kCrtc) && connector.get(kCrtc) != kPipes[pipe].crtc) return EINVAL;
  if (!connector.fb) return 0;
  if (!to.is_lit(pipe) || !to.active(pipe)) return EINVAL;
  const Framebuffer& fb = *connector.fb;
  const drm::ModeInfo mode = to.mode(pipe);
  constexpr uint32_t kPitchAlignment = 16;
  const bool good = is_writeback_format(fb.format->fourcc) && fb.width == mode.hdisplay &&
                    fb.height == mode.vdisplay && fb.parts[0].pitch % kPitchAlignment == 0;
  return good ? 0 : EINVAL;
}

int check_pipe(const DisplayState& from, const DisplayState& to, uint32_t pipe, bool allow_modeset,
               bool event) {
  if (to.active(pipe) && !to.enabled(pipe)) return EINVAL;
  if (event && !from.active(pipe) && !to.active(pipe)) return EINVAL;
  if (!needs_modeset(from, to, pipe)) return 0;
  return to.enabled(pipe) == to.is_lit(pipe) && allow_modeset ? 0 : EINVAL;
}

bool names(ObjectSet changed, uint32_t id) { return id != 0 && (changed & bit_of(id)) != 0; }

}  // namespace

DisplayState::DisplayState() {
  for (const Object& object : kms::objects())
    for (const Attached& attached : object.properties)
      of(object.id).set(static_cast<PropertyId>(attached.property), attached.value);
}

drm::ModeInfo DisplayState::mode(uint32_t pipe) const {
  drm::ModeInfo mode = {};
  if (const BlobPtr& blob = crtc(pipe).blobs[0]) std::memcpy(&mode, blob->bytes.data(), sizeof mode);
  return mode;
}

void DisplayState::show(uint32_t plane, uint32_t crtc_id, FramebufferPtr fb) {
  ObjectState& state = of(plane);
  state.set(kCrtc, fb ? crtc_id : 0);
  state.set_fb(std::move(fb));
}

void DisplayState::place(uint32_t plane, const Source& src, const Destination& dst) {
  ObjectState& state = of(plane);
  state.set(kSrcX, src.x);
  state.set(kSrcY, src.y);
  state.set(kSrcW, src.w);
  state.set(kSrcH, src.h);
  state.set(kCrtcX, static_cast<uint64_t>(int64_t{dst.x}));
  state.set(kCrtcY, static_cast<uint64_t>(int64_t{dst.y}));
  state.set(kCrtcW, dst.w);
  state.set(kCrtcH, dst.h);
}

uint32_t DisplayState::forget(const Framebuffer& fb) {
  uint32_t pipes = 0;
  for (const Object& object : kms::objects()) {
    ObjectState& state = of(object.id);
    if (object.type != drm::kObjectPlane || state.fb.get() != &fb) continue;
    pipes |= 1u << find_pipe(state.get_u32(kCrtc));
    hide(object.id);
    place(object.id, {}, {});
  }
  return pipes;
}

int check_mode(const drm::ModeInfo& mode, uint32_t max_pixels) {
  if (mode.clock > INT32_MAX || mode.vrefresh > INT32_MAX) return ERANGE;
  if ((mode.flags & ~kKnownFlags) || (mode.flags & kStereoFlags)) return EINVAL;
  const bool good = mode.hdisplay && mode.hsync_start >= mode.hdisplay &&
                    mode.hsync_end >= mode.hsync_start && mode.htotal >= mode.hsync_end && mode.vdisplay &&
                    mode.vsync_start >= mode.vdisplay && mode.vsync_end >= mode.vsync_start &&
                    mode.vtotal >= mode.vsync_end && mode.clock && mode.hdisplay <= max_pixels &&
                    mode.vdisplay <= max_pixels && (mode.flags & kAspectFlags) <= 0x200000;
  return good ? 0 : EINVAL;
}

bool needs_modeset(const DisplayState& from, const DisplayState& to, uint32_t pipe) {
  return !same_mode(from, to, pipe) || from.active(pipe) != to.active(pipe) ||
         from.is_lit(pipe) != to.is_lit(pipe);
}

uint32_t pipes_of(const DisplayState& from, const DisplayState& to, ObjectSet changed) {
  uint32_t pipes = 0;
  for (const Object& object : kms::objects()) {
    if (!names(changed, object.id)) continue;
    if (object.type == drm::kObjectCrtc) pipes |= 1u << find_pipe(object.id);
    for (const DisplayState* state : {&from, &to})
      if (const uint32_t crtc = state->of(object.id).get_u32(kCrtc)) pipes |= 1u << find_pipe(crtc);
  }
  return pipes;
}

int check_source(const Framebuffer& fb, const DisplayState::Source& src) {
  const uint64_t width = uint64_t{fb.width} << 16, height = uint64_t{fb.height} << 16;
  return src.w > width || src.x > width - src.w || src.h > height || src.y > height - src.h ? ENOSPC : 0;
}

int check(const DisplayState& from, const DisplayState& to, ObjectSet changed, bool allow_modeset,
          uint32_t events) {
  for (const Object& object : kms::objects())
    if (object.type == drm::kObjectPlane && names(changed, object.id))
      if (const int error = check_plane(object.id, to.of(object.id))) return error;
  for (uint32_t pipe = 0; pipe < kNumPipes; ++pipe) {
    if (names(changed, kPipes[pipe].connector))
      if (const int error = check_connector(to, pipe)) return error;
    if (const int error = check_pipe(from, to, pipe, allow_modeset, (events >> pipe & 1) != 0)) return error;
  }
  for (const Object& object : kms::objects())
    if (object.type == drm::kObjectPlane && names(changed, object.id) && to.of(object.id).fb)
      if (const int error = check_scaling(to.of(object.id))) return error;
  return 0;
}

}  // namespace v3d::ioctl::kms
