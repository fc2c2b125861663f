/// /dev/fb0 shows the console's memory as Linux' emulation of old framebuffers does (drm_fb_helper.c,
/// fbmem.c).
#pragma once

#include <linux/fb.h>

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>

#include "ioctl/base/unique_fd.h"
#include "ioctl/display/display.h"
#include "ioctl/sync/fence.h"

namespace v3d::ioctl {
class UserMemory;
}

namespace v3d::ioctl::kms {

/// Thread safe.
class Fbdev {
 public:
  explicit Fbdev(Display& display);

  /// A descriptor of its own open file: reading, writing and mapping it is the console's memory, without any
  /// further call. 0, ENODEV (there is no console) or EMFILE. @param flags  of open(2)
  int open(int flags, UniqueFd* fd);
  /// Whether this is the memory that open() gives.
  bool is_memory(const Buffer& buffer) const;

  struct Caller {
    UserMemory& user;
    const std::shared_ptr<Waiter>& waiter;
    bool has_master;  ///< somebody is master of the node, whose display it is then
  };
  /// @param request  with the argument's size and direction, which the kernel's words do not have: see
  /// kRequests
  /// @return 0 or a positive errno
  int ioctl(const Caller& caller, uint32_t request, void* arg);

  static constexpr size_t kMaxArgument = sizeof(fb_var_screeninfo);

 private:
  static constexpr uint32_t kColors = 256;
  using Colors = std::array<std::array<uint16_t, kColors>, 3>;

  int put_screen(const Caller& caller, fb_var_screeninfo& asked);
  int pan(const Caller& caller, fb_var_screeninfo& asked);
  int blank(const Caller& caller, bool on);
  int wait_for_vblank(const Caller& caller);
  int get_colors(const Caller& caller, const fb_cmap& map);
  int put_colors(const Caller& caller, const fb_cmap& map);

  Display& display_;
  const FramebufferPtr console_;  // null: there is none
  std::mutex mutex_;              // protects all below
  fb_var_screeninfo screen_ = {};
  Colors colors_ = {};
};

}  // namespace v3d::ioctl::kms
