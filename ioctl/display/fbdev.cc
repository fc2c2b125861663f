#include "ioctl/display/fbdev.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "ioctl/abi/framebuffer.h"
#include "ioctl/base/user_memory.h"
#include "ioctl/display/console.h"

namespace v3d::ioctl::kms {
namespace {

constexpr uint32_t kLeast = 8;        // fb_set_var: of a screen's sides, pixels
constexpr uint32_t kTrueColors = 16;  // setcmap_pseudo_palette
constexpr uint16_t kHalf = 0xaaaa, kLow = 0x5555;

bool same(const fb_bitfield& a, const fb_bitfield& b) {
  return a.offset == b.offset && a.length == b.length && a.msb_right == b.msb_right;
}

/// drm_fb_pixel_format_equal.
bool same_pixels(const fb_var_screeninfo& a, const fb_var_screeninfo& b) {
  return a.bits_per_pixel == b.bits_per_pixel && a.grayscale == b.grayscale && same(a.red, b.red) &&
         same(a.green, b.green) && same(a.blue, b.blue) && same(a.transp, b.transp);
}

/// What of it is the emulation's alone (__fill_var).
void fill(const fb_var_screeninfo& now, fb_var_screeninfo* var) {
  var->xres_virtual = now.xres_virtual;
  var->yres_virtual = now.yres_virtual;
  var->accel_flags = 0;
  var->height = now.height;
  var->width = now.width;
  var->left_margin = var->right_margin = var->upper_margin = var->lower_margin = 0;
  var->hsync_len = var->vsync_len = 0;
  var->sync = var->vmode = 0;
  var->rotate = var->colorspace = 0;
  std::fill(std::begin(var->reserved), std::end(var->reserved), 0);
}

fb_fix_screeninfo describe(const Framebuffer& console) {
  fb_fix_screeninfo fix = {};
  std::strcpy(fix.id, "vc4drmfb");
  fix.smem_len = console.parts[0].pitch * console.height;
  fix.type = FB_TYPE_PACKED_PIXELS;
  fix.visual = FB_VISUAL_TRUECOLOR;
  fix.xpanstep = fix.ypanstep = 1;
  fix.line_length = console.parts[0].pitch;
  fix.accel = FB_ACCEL_NONE;
  return fix;
}

}  // namespace

Fbdev::Fbdev(Display& display) : display_(display), console_(display.console()) {
  if (!console_) return;
  screen_.xres = screen_.xres_virtual = console_->width;
  screen_.yres = screen_.yres_virtual = console_->height;
  screen_.bits_per_pixel = kConsoleBits;
  screen_.red = {11, 5, 0};
  screen_.green = {5, 6, 0};
  screen_.blue = {0, 5, 0};
  screen_.activate = FB_ACTIVATE_NOW;
  screen_.width = kMmWidth;
  screen_.height = kMmHeight;
  // The 16 colours of consoles (fbcmap.c): bits of red, green, blue and of light.
  for (uint32_t i = 0; i < kTrueColors; ++i) {
    const uint16_t light = i & 8 ? kLow : 0;
    for (uint32_t channel = 0; channel < 3; ++channel)
      colors_[channel][i] = static_cast<uint16_t>((i >> (2 - channel) & 1 ? kHalf : 0) + light);
  }
  colors_[1][6] = kLow;  // brown, not dark yellow
}

bool Fbdev::is_memory(const Buffer& buffer) const {
  return console_ && console_->parts[0].bo->buffer().get() == &buffer;
}

int Fbdev::open(int flags, UniqueFd* fd) {
  if (!console_) return ENODEV;
  const Buffer::Backing backing = console_->parts[0].bo->buffer()->backing();
  const std::string path = "/proc/self/fd/" + std::to_string(backing.file->memfd.get());
  fd->reset(::open(path.c_str(), (flags & O_ACCMODE) | O_CLOEXEC));
  if (!*fd) return EMFILE;
  if ((flags & O_ACCMODE) != O_RDONLY) display_.use_console();
  return 0;
}

int Fbdev::ioctl(const Caller& caller, uint32_t request, void* arg) {
  switch (request) {
    case fb::request::kGetScreen: {
      const std::lock_guard lock(mutex_);
      *static_cast<fb_var_screeninfo*>(arg) = screen_;
      return 0;
    }
    case fb::request::kPutScreen:
      return put_screen(caller, *static_cast<fb_var_screeninfo*>(arg));
    case fb::request::kGetFixed:
      *static_cast<fb_fix_screeninfo*>(arg) = describe(*console_);
      return 0;
    case fb::request::kGetColors:
      return get_colors(caller, *static_cast<fb_cmap*>(arg));
    case fb::request::kPutColors:
      return put_colors(caller, *static_cast<fb_cmap*>(arg));
    case fb::request::kPan:
      return pan(caller, *static_cast<fb_var_screeninfo*>(arg));
    case fb::request::kWaitForVsync:
      return wait_for_vblank(caller);
  }
  if (request - wire::kFramebufferBlank < wire::kBlankLevels)
    return blank(caller, request - wire::kFramebufferBlank == FB_BLANK_UNBLANK);
  return caller.has_master ? EBUSY : ENOTTY;  // drm_fb_helper_ioctl, in this order
}

/// The size may be less than the memory's; all else is as it is.
int Fbdev::put_screen(const Caller&, fb_var_screeninfo& asked) {
  const std::lock_guard lock(mutex_);
  asked.pixclock = 0;
  if (asked.bits_per_pixel > screen_.bits_per_pixel || asked.xres > console_->width ||
      asked.yres > console_->height || asked.xres_virtual > console_->width ||
      asked.yres_virtual > console_->height || asked.xres < kLeast || asked.yres < kLeast)
    return EINVAL;
  fill(screen_, &asked);
  // SDL 1.2 asks for no channels, and means those that are there.
  if (!asked.red.length && !asked.green.length && !asked.blue.length && !asked.transp.length) {
    asked.red = screen_.red;
    asked.green = screen_.green;
    asked.blue = screen_.blue;
    asked.transp = screen_.transp;
  }
  asked.bits_per_pixel = screen_.bits_per_pixel;
  if (asked.nonstd || !same_pixels(asked, screen_)) return EINVAL;
  if ((asked.activate & FB_ACTIVATE_MASK) == FB_ACTIVATE_NOW) screen_ = asked;
  return 0;
}

int Fbdev::pan(const Caller& caller, fb_var_screeninfo& asked) {
  const std::lock_guard lock(mutex_);
  // ywrapstep is 0.
  if (asked.yoffset > 0 && (asked.vmode & FB_VMODE_YWRAP)) return EINVAL;
  if (asked.xoffset > screen_.xres_virtual - screen_.xres ||
      asked.yoffset > screen_.yres_virtual - screen_.yres)
    return EINVAL;
  if (caller.has_master) return EBUSY;
  screen_.xoffset = asked.xoffset;
  screen_.yoffset = asked.yoffset;
  return 0;
}

int Fbdev::blank(const Caller& caller, bool on) {
  if (caller.has_master) return 0;  // and nothing happens
  Commit commit;
  for (uint32_t i = 0; i < kNumMonitors; ++i) commit.changed |= bit_of(kPipes[i].crtc);
  commit.change = [on](DisplayState& state) {
    for (uint32_t i = 0; i < kNumMonitors; ++i)
      if (state.enabled(i)) state.crtc(i).set(kActive, on);
  };
  return display_.commit(std::move(commit), caller.waiter);
}

int Fbdev::wait_for_vblank(const Caller& caller) {
  if (caller.has_master) return EBUSY;
  constexpr uint32_t kFirst = 0;  // drm_fb_helper_ioctl takes no other CRTC
  Display::Vblank now;
  if (!display_.vblank(kFirst, &now)) return 0;
  const int error = display_.wait_for_vblank(kFirst, now.sequence + 1, caller.waiter);
  return error == EINTR ? EINTR : 0;
}

int Fbdev::get_colors(const Caller& caller, const fb_cmap& map) {
  const std::lock_guard lock(mutex_);
  if (map.start >= kColors) return EINVAL;
  const uint64_t bytes = uint64_t{std::min(map.len, kColors - map.start)} * sizeof(uint16_t);
  const uint16_t* to[] = {map.red, map.green, map.blue};
  for (size_t i = 0; i < colors_.size(); ++i)
    if (!caller.user.write(reinterpret_cast<uint64_t>(to[i]), &colors_[i][map.start], bytes)) return EFAULT;
  return 0;
}

/// Of true colour: the console's 16 are kept, and change no picture.
int Fbdev::put_colors(const Caller& caller, const fb_cmap& map) {
  if (map.len > kTrueColors || map.start > kTrueColors - map.len) return EINVAL;
  Colors colors = {};
  const uint16_t* from[] = {map.red, map.green, map.blue};
  for (size_t i = 0; i < colors.size(); ++i)
    if (!caller.user.read(reinterpret_cast<uint64_t>(from[i]), &colors[i][map.start],
                          map.len * sizeof(uint16_t)))
      return EFAULT;
  if (caller.has_master) return EBUSY;
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < colors.size(); ++i)
    std::copy_n(&colors[i][map.start], map.len, &colors_[i][map.start]);
  return 0;
}

}  // namespace v3d::ioctl::kms
