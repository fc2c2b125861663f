/// @file Framebuffers (Linux drm_framebuffer.c, drm_gem_framebuffer_helper.c).
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ioctl/display/display.h"
#include "ioctl/display/modifiers.h"
#include "ioctl/kms/handlers.h"

namespace v3d::ioctl {
namespace {

/// What one memory plane of a request must be (framebuffer_check). 0, EINVAL or ERANGE.
int check_part(const drm::FbCmd2& args, const kms::Format& format, uint32_t part) {
  const uint64_t height = part_height(format, args.height, part);
  const uint64_t least = kms::least_pitch(format, args.width, part);
  if (!args.handles[part]) return EINVAL;
  if (least > UINT32_MAX) return ERANGE;
  if (height * args.pitches[part] + args.offsets[part] > UINT32_MAX) return ERANGE;
  if (args.pitches[part] < least) return EINVAL;
  const bool modifiers = (args.flags & drm::kFbModifiers) != 0;
  if (args.modifier[part] && !modifiers) return EINVAL;
  return modifiers && args.modifier[part] != args.modifier[0] ? EINVAL : 0;
}

bool is_unused(const drm::FbCmd2& args, uint32_t part) {
  return !args.modifier[part] && !args.handles[part] && !args.pitches[part] && !args.offsets[part];
}

int check_request(const drm::FbCmd2& args, const kms::Format* format, uint32_t most_pixels) {
  if (args.flags & ~(drm::kFbInterlaced | drm::kFbModifiers)) return EINVAL;
  if (args.width > most_pixels || args.height > most_pixels) return EINVAL;
  if (!format || !args.width || !args.height) return EINVAL;
  for (uint32_t part = 0; part < format->parts; ++part)
    if (const int error = check_part(args, *format, part)) return error;
  for (uint32_t part = format->parts; part < std::size(args.handles); ++part)
    if (!is_unused(args, part)) return EINVAL;
  const uint64_t modifier = args.flags & drm::kFbModifiers ? args.modifier[0] : kms::kLinear;
  return kms::takes_modifier(*format, modifier) ? 0 : EINVAL;
}

/// All rows lie in the buffer, as if they lay one below the other (drm_gem_fb_init_with_funcs).
bool fits(const drm::FbCmd2& args, const kms::Format& format, uint32_t part, uint64_t size) {
  const uint64_t height = part_height(format, args.height, part);
  return (height - 1) * args.pitches[part] + kms::least_pitch(format, args.width, part) +
             args.offsets[part] <=
         size;
}

void fill_parts(const kms::Framebuffer& fb, drm::FbCmd2* args) {
  for (uint32_t part = 0; part < fb.format->parts; ++part) {
    args->pitches[part] = fb.parts[part].pitch;
    args->offsets[part] = fb.parts[part].offset;
    args->modifier[part] = fb.modifier;
  }
}

/// Only who may look at everybody's screen gets at the memory.
bool may_have_handles(const File& file) { return file.privileged() || file.is_current_master_now(); }

}  // namespace

uint32_t max_pixels(const Call& call) { return call.kernel.display().unit().max_pixels; }

int make_framebuffer(Call& call, const drm::FbCmd2& args, kms::FramebufferPtr* made, bool owned) {
  const kms::Format* format = call.kernel.display().find_format(args.pixel_format);
  if (const int error = check_request(args, format, max_pixels(call))) return error;
  auto fb = std::make_shared<kms::Framebuffer>();
  fb->width = args.width;
  fb->height = args.height;
  fb->format = format;
  fb->flags = args.flags;
  if (args.flags & drm::kFbModifiers) fb->modifier = args.modifier[0];
  for (uint32_t part = 0; part < format->parts; ++part) {
    std::shared_ptr<Bo> bo = call.file.find_bo(args.handles[part]);
    if (!bo) return ENOENT;
    if (!fits(args, *format, part, bo->size())) return EINVAL;
    fb->parts[part] = {std::move(bo), args.pitches[part], args.offsets[part]};
  }
  if (owned) {
    if (const int error = call.account.charge(Resource::kFramebuffers, 1, &fb->charge)) return error;
    call.kernel.display().add_fb(call.file, fb);
  }
  *made = std::move(fb);
  return 0;
}

int add_fb2(Call& call, drm::FbCmd2& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  kms::FramebufferPtr fb;
  if (const int error = make_framebuffer(call, args, &fb, true)) return error;
  args.fb_id = fb->id;
  return 0;
}

bool full_request(const drm::FbCmd& args, drm::FbCmd2* full) {
  *full = {};
  full->width = args.width;
  full->height = args.height;
  full->pixel_format = kms::legacy_format(args.bpp, args.depth);
  full->handles[0] = args.handle;
  full->pitches[0] = args.pitch;
  return full->pixel_format != 0;
}

int add_fb(Call& call, drm::FbCmd& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  drm::FbCmd2 full;
  if (!full_request(args, &full)) return EINVAL;
  if (const int error = add_fb2(call, full)) return error;
  args.fb_id = full.fb_id;
  return 0;
}

int rm_fb(Call& call, drm::FbId& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  return call.kernel.display().remove_fb(call.file, args.fb_id, true);
}

int close_fb(Call& call, drm::CloseFb& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  if (args.pad) return EINVAL;
  return call.kernel.display().remove_fb(call.file, args.fb_id, false);
}

int get_fb(Call& call, drm::FbCmd& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  const kms::FramebufferPtr fb = call.kernel.display().find_fb(args.fb_id);
  if (!fb) return ENOENT;
  if (fb->format->parts > 1) return EINVAL;  // GETFB2 says more
  args.width = fb->width;
  args.height = fb->height;
  args.pitch = fb->parts[0].pitch;
  args.bpp = fb->format->bytes[0] * 8u;
  args.depth = fb->format->depth;
  args.handle = 0;
  return may_have_handles(call.file) ? call.file.add_handle(call.account, fb->parts[0].bo, &args.handle) : 0;
}

int get_fb2(Call& call, drm::FbCmd2& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  const kms::FramebufferPtr fb = call.kernel.display().find_fb(args.fb_id);
  if (!fb) return ENOENT;
  args = {.fb_id = fb->id,
          .width = fb->width,
          .height = fb->height,
          .pixel_format = fb->format->fourcc,
          .flags = drm::kFbModifiers,  // the driver knows them
          .handles = {},
          .pitches = {},
          .offsets = {},
          .modifier = {}};
  fill_parts(*fb, &args);
  if (!may_have_handles(call.file)) return 0;
  for (uint32_t part = 0; part < fb->format->parts; ++part) {
    // One handle for the parts that share memory.
    const auto* same = std::find_if(fb->parts.begin(), fb->parts.begin() + part,
                                    [&](const auto& other) { return other.bo == fb->parts[part].bo; });
    if (const auto first = static_cast<uint32_t>(same - fb->parts.begin()); first < part) {
      args.handles[part] = args.handles[first];
    } else if (const int error =
                   call.file.add_handle(call.account, fb->parts[part].bo, &args.handles[part])) {
      for (uint32_t given = 0; given < part; ++given)
        if (args.handles[given]) call.file.close_handle(args.handles[given]);
      return error;
    }
  }
  return 0;
}

int dirty_fb(Call& call, drm::FbDirty& args) {
  if (!call.file.device().modeset) return EOPNOTSUPP;
  if (!call.kernel.display().find_fb(args.fb_id)) return ENOENT;
  if (!args.num_clips != !args.clips) return EINVAL;
  if ((args.flags & drm::kDirtyAnnotateCopy) && args.num_clips % 2) return EINVAL;
  if (args.num_clips > drm::kDirtyMaxClips) return EINVAL;
  std::array<uint64_t, drm::kDirtyMaxClips> clips;
  if (args.num_clips && !call.user.read(args.clips, clips.data(), args.num_clips * sizeof clips[0]))
    return EFAULT;
  return ENOSYS;  // what is in memory is shown
}

}  // namespace v3d::ioctl
