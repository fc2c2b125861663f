/// These are the ioctls of /dev/fb0 (Linux include/uapi/linux/fb.h) with the sizes and directions of their
/// arguments, which the kernel's words do not have.
#pragma once

#include <linux/fb.h>

#include <cstdint>

#include "ioctl/abi/request.h"

namespace v3d::ioctl::fb {

static_assert(sizeof(fb_var_screeninfo) == 160);

/// fb_fix_screeninfo and fb_cmap of 64-bit programs.
struct FixedScreen {
  char id[16];
  uint64_t smem_start;
  uint32_t smem_len, type, type_aux, visual;
  uint16_t xpanstep, ypanstep, ywrapstep;
  uint32_t line_length;
  uint64_t mmio_start;
  uint32_t mmio_len, accel;
  uint16_t capabilities, reserved[2];
};
struct Colors {
  uint32_t start, len;
  uint64_t red, green, blue, transp;
};
static_assert(sizeof(FixedScreen) == 80 && sizeof(Colors) == 40);
static_assert(sizeof(long) == 4 || (sizeof(fb_fix_screeninfo) == 80 && sizeof(fb_cmap) == 40));

namespace request {
inline constexpr uint32_t kIn = drm::kDirectionIn, kOut = drm::kDirectionOut;
inline constexpr uint32_t kGetScreen = drm::make_request<fb_var_screeninfo>(kOut, 'F', 0x00);
inline constexpr uint32_t kPutScreen = drm::make_request<fb_var_screeninfo>(kIn | kOut, 'F', 0x01);
inline constexpr uint32_t kGetFixed = drm::make_request<FixedScreen>(kOut, 'F', 0x02);
inline constexpr uint32_t kGetColors = drm::make_request<Colors>(kIn, 'F', 0x04);
inline constexpr uint32_t kPutColors = drm::make_request<Colors>(kIn, 'F', 0x05);
inline constexpr uint32_t kPan = drm::make_request<fb_var_screeninfo>(kIn | kOut, 'F', 0x06);
inline constexpr uint32_t kWaitForVsync = drm::make_request<drm::None>(0, 'F', 0x20);
/// All that have an argument.
inline constexpr uint32_t kWithArgument[] = {kGetScreen, kPutScreen, kGetFixed, kGetColors, kPutColors, kPan};
}  // namespace request

/// The kernel's word of one of these: type and number alone.
constexpr uint32_t kernel_word(uint32_t request) { return request & 0xffff; }

}  // namespace v3d::ioctl::fb
