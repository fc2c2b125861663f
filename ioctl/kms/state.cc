/// @file Which states of the display there are (Linux drm_atomic.c, drm_atomic_helper.c, drm_modes.c). The
/// limits of the scaler's line memory and of the display list are not modelled: what a board refuses with
/// ENOSPC for them is shown here.
#include "ioctl/kms/state.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace v3d::ioctl::kms {
namespace {

constexpr uint32_t kMaxClock = 600'000;  // kHz, of HDMI 2.0 (vc4_hdmi.c)
constexpr uint32_t kMaxSize = 7680;
/// Of mode flags: one of those that choose the polarity and the scan; no stereo, no other aspect ratios.
constexpr uint32_t kKnownFlags = 0x3fff | 0x7c000 | 0x780000;
constexpr uint32_t kAspectFlags = 0x780000, kStereoFlags = 0x7c000;

int check_plane(const ObjectState& plane) {
  const bool has_crtc = plane.get(kCrtc) != 0;
  if (has_crtc != (plane.fb != nullptr)) return EINVAL;
  if (!has_crtc) return 0;
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

bool same_mode(const DisplayState& a, const DisplayState& b) {
  if (a.enabled() != b.enabled()) return false;
  if (!a.enabled()) return true;
  const drm::ModeInfo x = a.mode(), y = b.mode();
  // Neither names nor types matter.
  return std::memcmp(&x, &y, offsetof(drm::ModeInfo, vrefresh)) == 0 && x.flags == y.flags;
}

}  // namespace

DisplayState::DisplayState() {
  for (const Object& object : kms::objects())
    for (const Attached& attached : object.properties)
      of(object).set(static_cast<PropertyId>(attached.property), attached.value);
}

drm::ModeInfo DisplayState::mode() const {
  drm::ModeInfo mode = {};
  if (const BlobPtr& blob = crtc().blobs[0]) std::memcpy(&mode, blob->bytes.data(), sizeof mode);
  return mode;
}

void DisplayState::show(uint32_t plane, FramebufferPtr fb) {
  ObjectState& state = objects[kFirstPlane + plane];
  state.set(kCrtc, fb ? uint64_t{kCrtcId} : 0);
  state.set_fb(std::move(fb));
}

void DisplayState::place(uint32_t plane, const Source& src, const Destination& dst) {
  ObjectState& state = objects[kFirstPlane + plane];
  state.set(kSrcX, src.x);
  state.set(kSrcY, src.y);
  state.set(kSrcW, src.w);
  state.set(kSrcH, src.h);
  state.set(kCrtcX, static_cast<uint64_t>(int64_t{dst.x}));
  state.set(kCrtcY, static_cast<uint64_t>(int64_t{dst.y}));
  state.set(kCrtcW, dst.w);
  state.set(kCrtcH, dst.h);
}

bool DisplayState::forget(const Framebuffer& fb) {
  bool found = false;
  for (uint32_t i = 0; i < kNumPlanes; ++i) {
    if (plane(i).fb.get() != &fb) continue;
    hide(i);
    place(i, {}, {});
    found = true;
  }
  return found;
}

int check_mode(const drm::ModeInfo& mode) {
  if (mode.clock > INT32_MAX || mode.vrefresh > INT32_MAX) return ERANGE;
  if ((mode.flags & ~kKnownFlags) || (mode.flags & kStereoFlags)) return EINVAL;
  const bool good = mode.hdisplay && mode.hsync_start >= mode.hdisplay &&
                    mode.hsync_end >= mode.hsync_start && mode.htotal >= mode.hsync_end && mode.vdisplay &&
                    mode.vsync_start >= mode.vdisplay && mode.vsync_end >= mode.vsync_start &&
                    mode.vtotal >= mode.vsync_end && mode.clock && mode.clock <= kMaxClock &&
                    mode.hdisplay <= kMaxSize && mode.vdisplay <= kMaxSize &&
                    (mode.flags & kAspectFlags) <= 0x200000;
  return good ? 0 : EINVAL;
}

bool needs_modeset(const DisplayState& from, const DisplayState& to) {
  if (!same_mode(from, to) || from.active() != to.active()) return true;
  for (uint32_t i = 0; i < kNumConnectors; ++i)
    if (from.is_lit(i) != to.is_lit(i)) return true;
  return false;
}

int check_source(const Framebuffer& fb, const DisplayState::Source& src) {
  const uint64_t width = uint64_t{fb.width} << 16, height = uint64_t{fb.height} << 16;
  return src.w > width || src.x > width - src.w || src.h > height || src.y > height - src.h ? ENOSPC : 0;
}

int check(const DisplayState& from, const DisplayState& to, uint32_t changed, bool allow_modeset,
          bool event) {
  for (uint32_t i = 0; i < kNumPlanes; ++i)
    if (changed >> (kFirstPlane + i) & 1)
      if (const int error = check_plane(to.plane(i))) return error;
  if (to.active() && !to.enabled()) return EINVAL;
  if (event && !from.active() && !to.active()) return EINVAL;
  if (needs_modeset(from, to) && to.enabled() != to.is_lit()) return EINVAL;
  if (to.is_lit(0) && to.is_lit(1)) return EINVAL;  // encoders that are no clones of each other
  for (uint32_t i = 0; i < kNumPlanes; ++i)
    if ((changed >> (kFirstPlane + i) & 1) && to.plane(i).fb)
      if (const int error = check_scaling(to.plane(i))) return error;
  return needs_modeset(from, to) && !allow_modeset ? EINVAL : 0;
}

}  // namespace v3d::ioctl::kms
