/// @file Mode setting, flips, planes and cursors one at a time (Linux drm_crtc.c, drm_plane.c,
/// drm_color_mgmt.c, and what drm_atomic_helper.c makes of them).
#include <algorithm>
#include <cerrno>

#include "ioctl/display/display.h"
#include "ioctl/kms/handlers.h"

namespace v3d::ioctl {
namespace {

using kms::Commit;
using kms::Display;
using kms::DisplayState;
using kms::FramebufferPtr;

constexpr uint32_t kSameFb = ~0u;  ///< SETCRTC: the framebuffer that is there

DisplayState::Source whole(const kms::Framebuffer& fb) { return {0, 0, fb.width << 16, fb.height << 16}; }

/// All of a CRTC that SETCRTC may change.
kms::ObjectSet bits_of(const kms::Pipe& pipe) {
  return kms::bit_of(pipe.crtc) | kms::bit_of(pipe.primary) |
         (pipe.connector ? kms::bit_of(pipe.connector) : 0);
}

/// The connectors of SETCRTC: each CRTC has one that it can feed, or none. 0, EFAULT, EINVAL or ENOENT.
int check_connectors(Call& call, const drm::Crtc& args, const kms::Pipe& pipe) {
  const bool on = args.mode_valid != 0;
  if (args.count_connectors == 0) return on ? EINVAL : 0;
  if (!on || args.count_connectors > kms::kNumObjects) return EINVAL;
  bool good = true;
  for (uint32_t i = 0; i < args.count_connectors; ++i) {
    uint32_t id;
    if (!call.user.get(args.connector_ids, i, &id)) return EFAULT;
    if (!find_held_object(call, id, drm::kObjectConnector)) return ENOENT;
    good &= id == pipe.connector;
  }
  return good ? 0 : EINVAL;
}

/// The framebuffer and the mode of SETCRTC. 0, EINVAL, ENOENT or ENOSPC.
int find_picture(Display& display, const drm::Crtc& args, uint32_t pipe, FramebufferPtr* fb) {
  if (args.fb_id == kSameFb) {
    *fb = display.state().primary(pipe).fb;
    if (!*fb) return EINVAL;
  } else if (*fb = display.find_fb(args.fb_id); !*fb) {
    return ENOENT;
  }
  if (kms::check_mode(args.mode, display.unit().max_pixels)) return EINVAL;
  return kms::check_source(**fb, {args.x << 16, args.y << 16, uint32_t{args.mode.hdisplay} << 16,
                                  uint32_t{args.mode.vdisplay} << 16});
}

kms::BlobPtr mode_blob(Display& display, const drm::ModeInfo& mode, uint32_t pipe) {
  const DisplayState now = display.state();
  const drm::ModeInfo current = now.mode(pipe);
  const bool same = now.enabled(pipe) && std::memcmp(&current, &mode, sizeof mode) == 0;
  return same ? now.crtc(pipe).blobs[0] : display.make_mode_blob(mode);
}

void switch_off(DisplayState& state, uint32_t pipe) {
  state.crtc(pipe).set(kms::kActive, 0);
  state.crtc(pipe).set_blob(kms::kModeId, nullptr);
  if (kms::kPipes[pipe].connector) state.light(pipe, false);
  state.hide(kms::kPipes[pipe].primary);
}

}  // namespace

int set_crtc(Call& call, drm::Crtc& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  if ((args.x | args.y) & 0xffff0000) return ERANGE;
  if (!find_held_object(call, args.crtc_id, drm::kObjectCrtc)) return ENOENT;
  const uint32_t pipe = kms::find_pipe(args.crtc_id);
  const kms::Pipe& own = kms::kPipes[pipe];
  Display& display = call.kernel.display();
  FramebufferPtr fb;
  if (args.mode_valid)
    if (const int error = find_picture(display, args, pipe, &fb)) return error;
  if (args.mode_valid && !call.file.holds(own.primary)) return EACCES;
  if (const int error = check_connectors(call, args, own)) return error;
  Commit commit;
  commit.changed = bits_of(own);
  if (!args.mode_valid) {
    commit.change = [pipe](DisplayState& state) { switch_off(state, pipe); };
    return display.commit(std::move(commit), call.waiter);
  }
  commit.change = [fb, pipe, &own, blob = mode_blob(display, args.mode, pipe), x = args.x,
                   y = args.y](DisplayState& state) {
    state.crtc(pipe).set_blob(kms::kModeId, blob);
    state.crtc(pipe).set(kms::kActive, 1);
    state.light(pipe, true);
    state.show(own.primary, own.crtc, fb);
    const drm::ModeInfo mode = state.mode(pipe);
    state.place(own.primary, {x << 16, y << 16, uint32_t{mode.hdisplay} << 16, uint32_t{mode.vdisplay} << 16},
                {0, 0, mode.hdisplay, mode.vdisplay});
  };
  return display.commit(std::move(commit), call.waiter);
}

int page_flip(Call& call, drm::PageFlip& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  constexpr uint32_t kTarget = drm::kPageFlipTargetAbsolute | drm::kPageFlipTargetRelative;
  constexpr uint32_t kFlags = drm::kPageFlipEvent | drm::kPageFlipAsync | kTarget;
  const uint32_t target = args.flags & kTarget;
  if ((args.flags & ~kFlags) || (args.sequence && !target) || target == kTarget) return EINVAL;
  if (!find_held_object(call, args.crtc_id, drm::kObjectCrtc)) return ENOENT;
  const uint32_t pipe = kms::find_pipe(args.crtc_id);
  const kms::Pipe& own = kms::kPipes[pipe];
  if (!call.file.holds(own.primary)) return EACCES;
  if (target) return EINVAL;  // vc4 has no page_flip_target
  Display& display = call.kernel.display();
  const DisplayState now = display.state();
  const FramebufferPtr old = now.primary(pipe).fb;
  if (!old) return EBUSY;
  const FramebufferPtr fb = display.find_fb(args.fb_id);
  if (!fb) return ENOENT;
  const kms::ObjectState& plane = now.primary(pipe);
  if (const int error = kms::check_source(*fb, {plane.get_u32(kms::kSrcX), plane.get_u32(kms::kSrcY),
                                                plane.get_u32(kms::kSrcW), plane.get_u32(kms::kSrcH)}))
    return error;
  if (old->format != fb->format) return EINVAL;
  Commit commit;
  if (args.flags & drm::kPageFlipEvent)
    if (const int error = call.file.events()->reserve(&commit.outcomes[pipe].event)) return error;
  if (!now.active(pipe)) return EINVAL;
  commit.change = [fb, &own](DisplayState& state) { state.show(own.primary, own.crtc, fb); };
  commit.changed = kms::bit_of(own.crtc) | kms::bit_of(own.primary);
  commit.nonblock = true;
  commit.allow_modeset = false;
  commit.async = (args.flags & drm::kPageFlipAsync) != 0;
  commit.user_data = args.user_data;
  return display.commit(std::move(commit), call.waiter);
}

int set_plane(Call& call, drm::SetPlane& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  const kms::Object* object = find_held_object(call, args.plane_id, drm::kObjectPlane);
  if (!object) return ENOENT;
  const uint32_t plane = args.plane_id, pipe = kms::find_pipe(plane);
  Display& display = call.kernel.display();
  Commit commit;
  commit.changed = kms::bit_of(plane);
  commit.at_once = pipe != kms::kNumPipes && kms::kPipes[pipe].cursor == plane;
  if (!args.fb_id) {
    commit.change = [plane](DisplayState& state) { state.hide(plane); };
    return display.commit(std::move(commit), call.waiter);
  }
  const FramebufferPtr fb = display.find_fb(args.fb_id);
  if (!fb || !find_held_object(call, args.crtc_id, drm::kObjectCrtc)) return ENOENT;
  if (args.crtc_w > INT32_MAX || args.crtc_x > INT32_MAX - static_cast<int32_t>(args.crtc_w) ||
      args.crtc_h > INT32_MAX || args.crtc_y > INT32_MAX - static_cast<int32_t>(args.crtc_h))
    return ERANGE;
  commit.change = [fb, plane, args](DisplayState& state) {
    state.show(plane, args.crtc_id, fb);
    state.place(plane, {args.src_x, args.src_y, args.src_w, args.src_h},
                {args.crtc_x, args.crtc_y, args.crtc_w, args.crtc_h});
  };
  return display.commit(std::move(commit), call.waiter);
}

int cursor2(Call& call, drm::Cursor2& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  if (!args.flags || (args.flags & ~(drm::kCursorBo | drm::kCursorMove))) return EINVAL;
  if (!find_held_object(call, args.crtc_id, drm::kObjectCrtc)) return ENOENT;
  const kms::Pipe& own = kms::kPipes[kms::find_pipe(args.crtc_id)];
  if (!call.file.holds(own.cursor)) return EACCES;
  Display& display = call.kernel.display();
  const DisplayState now = display.state();
  const kms::ObjectState& before = now.of(own.cursor);
  FramebufferPtr fb = before.fb;
  if (args.flags & drm::kCursorBo) {
    fb = nullptr;
    if (args.handle) {
      drm::FbCmd2 request = {};
      request.width = args.width;
      request.height = args.height;
      request.pixel_format = kms::legacy_format(32, 32);
      request.handles[0] = args.handle;
      request.pitches[0] = args.width * 4;
      if (args.width > UINT32_MAX / 4) return EINVAL;
      if (const int error = make_framebuffer(call, request, &fb, false)) return error;
    }
  }
  // Where it is remains known while it is hidden.
  const int32_t x = args.flags & drm::kCursorMove ? args.x : before.get_signed(kms::kCrtcX);
  const int32_t y = args.flags & drm::kCursorMove ? args.y : before.get_signed(kms::kCrtcY);
  Commit commit;
  commit.changed = kms::bit_of(own.cursor);
  commit.at_once = true;
  commit.change = [fb, x, y, &own](DisplayState& state) {
    state.show(own.cursor, own.crtc, fb);
    if (fb)
      state.place(own.cursor, whole(*fb), {x, y, fb->width, fb->height});
    else
      state.place(own.cursor, {}, {x, y, 0, 0});
  };
  return display.commit(std::move(commit), call.waiter);
}

int cursor(Call& call, drm::Cursor& args) {
  drm::Cursor2 full = {args.flags, args.crtc_id, args.x, args.y, args.width, args.height, args.handle, 0, 0};
  return cursor2(call, full);
}

namespace {

int check_gamma(Call& call, const drm::CrtcLut& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  if (!find_held_object(call, args.crtc_id, drm::kObjectCrtc)) return ENOENT;
  return args.gamma_size == Display::kGammaSize ? 0 : EINVAL;
}

constexpr uint64_t kGammaBytes = Display::kGammaSize * sizeof(uint16_t);

}  // namespace

int get_gamma(Call& call, drm::CrtcLut& args) {
  if (const int error = check_gamma(call, args)) return error;
  const Display::Gamma gamma = call.kernel.display().gamma(kms::find_pipe(args.crtc_id));
  const uint64_t to[] = {args.red, args.green, args.blue};
  for (size_t i = 0; i < std::size(to); ++i)
    if (!call.user.write(to[i], &gamma[i * Display::kGammaSize], kGammaBytes)) return EFAULT;
  return 0;
}

int set_gamma(Call& call, drm::CrtcLut& args) {
  if (const int error = check_gamma(call, args)) return error;
  Display::Gamma gamma;
  const uint64_t from[] = {args.red, args.green, args.blue};
  for (size_t i = 0; i < std::size(from); ++i)
    if (!call.user.read(from[i], &gamma[i * Display::kGammaSize], kGammaBytes)) return EFAULT;
  call.kernel.display().set_gamma(kms::find_pipe(args.crtc_id), gamma);
  return 0;
}

}  // namespace v3d::ioctl
