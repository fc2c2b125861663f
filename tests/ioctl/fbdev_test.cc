// /dev/fb0: Linux drm_fb_helper.c, fbmem.c.
#include <fcntl.h>
#include <linux/fb.h>
#include <sys/mman.h>

#include <bit>

#include "ioctl/ioctl_table.h"
#include "tests/ioctl/kms_fixture.h"

namespace v3d::ioctl::test {
namespace {

class FbdevTest : public KmsTest {
 protected:
  static constexpr uint32_t kGetScreen = 0x80a04600, kPutScreen = 0xc0a04601, kGetFixed = 0x80504602,
                            kGetColors = 0x40284604, kPutColors = 0x40284605, kPan = 0xc0a04606,
                            kBlank = wire::kFramebufferBlank, kWait = 0x4620;
  FbdevTest() {
    EXPECT_EQ(kernel_.fbdev().open(O_RDWR, &fd_), 0);
    client_ = {};  // nobody is master
  }
  template <typename T>
  int fb(uint32_t request, T* args) {
    std::vector<uint8_t> bytes(drm::request_size(request));
    if (request & drm::kDirectionIn) std::memcpy(bytes.data(), args, bytes.size());
    const int error = fd_ioctl(kernel_, *account_, waiter_, fd_.get(), memory_, fds_, request, &bytes);
    if (!error && (request & drm::kDirectionOut)) std::memcpy(args, bytes.data(), bytes.size());
    return error;
  }
  fb_var_screeninfo screen() {
    fb_var_screeninfo var = {};
    EXPECT_EQ(fb(kGetScreen, &var), 0);
    return var;
  }
  UniqueFd fd_;
};

TEST_F(FbdevTest, DescribesTheConsole) {
  fb_fix_screeninfo fix = {};
  ASSERT_EQ(fb(kGetFixed, &fix), 0);
  EXPECT_STREQ(fix.id, "vc4drmfb");
  EXPECT_EQ(fix.line_length, 3840u);
  EXPECT_EQ(fix.smem_len, 3840u * 1080);
  EXPECT_EQ(fix.visual, uint32_t{FB_VISUAL_TRUECOLOR});
  EXPECT_EQ(fix.smem_start, 0u);
  const fb_var_screeninfo var = screen();
  EXPECT_EQ(var.xres, 1920u);
  EXPECT_EQ(var.yres_virtual, 1080u);
  EXPECT_EQ(var.bits_per_pixel, 16u);
  EXPECT_EQ(var.red.offset, 11u);
  EXPECT_EQ(var.green.length, 6u);
  EXPECT_EQ(var.pixclock, 0u);
}

TEST_F(FbdevTest, WhatIsWrittenIsShown) {
  const uint16_t red = 0xf800;
  ASSERT_EQ(pwrite(fd_.get(), &red, sizeof red, 3840 + 2), ssize_t{sizeof red});
  const kms::Scanout shown = scanout();
  ASSERT_EQ(shown.planes.size(), 1u);
  uint16_t seen = 0;
  ASSERT_EQ(pread(shown.planes[0].parts[0].memory->backing().file->memfd.get(), &seen, sizeof seen, 3842), 2);
  EXPECT_EQ(seen, red);
  UniqueFd other;  // has a position of its own
  ASSERT_EQ(kernel_.fbdev().open(O_RDONLY, &other), 0);
  ASSERT_EQ(lseek(fd_.get(), 3842, SEEK_SET), 3842);
  EXPECT_EQ(lseek(other.get(), 0, SEEK_CUR), 0);
  EXPECT_EQ(write(other.get(), &red, sizeof red), -1);
}

TEST_F(FbdevTest, SizesUpToTheMemoryAndNothingElse) {
  const fb_var_screeninfo was = screen();
  const struct {
    int error;
    void (*change)(fb_var_screeninfo&);
  } kCases[] = {{0, [](auto&) {}},
                {0, [](auto& v) { v.pixclock = 5; }},
                {0, [](auto& v) { v.xres = 640, v.yres = 480; }},
                {0, [](auto& v) { v.red = v.green = v.blue = {}; }},
                {EINVAL, [](auto& v) { v.xres = 1921; }},
                {EINVAL, [](auto& v) { v.yres_virtual = 2160; }},
                {EINVAL, [](auto& v) { v.yres = 7; }},
                {EINVAL, [](auto& v) { v.bits_per_pixel = 32; }},
                {EINVAL, [](auto& v) { v.grayscale = 1; }},
                {EINVAL, [](auto& v) { v.nonstd = 1; }},
                {EINVAL, [](auto& v) { v.red.length = 6; }}};
  for (const auto& c : kCases) {
    fb_var_screeninfo var = was;
    c.change(var);
    EXPECT_EQ(fb(kPutScreen, &var), c.error) << &c - kCases;
    EXPECT_EQ(fb(kPutScreen, &(var = was)), 0);
  }
  fb_var_screeninfo var = was;
  var.yres = 480;
  var.activate = FB_ACTIVATE_TEST;
  EXPECT_EQ(fb(kPutScreen, &var), 0);
  EXPECT_EQ(screen().yres, 1080u);
}

TEST_F(FbdevTest, AMasterHasTheDisplay) {
  fb_var_screeninfo var = screen();
  uint32_t zero = 0;
  EXPECT_EQ(fb(kPan, &var), 0);
  EXPECT_EQ(fb(kWait, &zero), 0);
  EXPECT_EQ(fb(0x4618u, &zero), ENOTTY);
  Client master = open();
  EXPECT_EQ(fb(kPan, &var), EBUSY);
  EXPECT_EQ(fb(kWait, &zero), EBUSY);
  EXPECT_EQ(fb(0x4618u, &zero), EBUSY);
  var.yoffset = 1;  // there is no more memory than is shown
  EXPECT_EQ(fb(kPan, &var), EINVAL);
  // And nothing is seen of what is written under it.
  client_ = std::move(master);
  ASSERT_EQ(set_crtc(add_fb()), 0);
  EXPECT_NE(scanout().planes[0].fourcc, 0x36314752u);
  EXPECT_EQ(fb(kGetScreen, &var), 0);
}

TEST_F(FbdevTest, Blanks) {
  uint32_t none = 0;
  EXPECT_EQ(fb(kBlank + FB_BLANK_POWERDOWN, &none), 0);
  EXPECT_FALSE(scanout().active);
  EXPECT_EQ(fb(kBlank + FB_BLANK_UNBLANK, &none), 0);
  EXPECT_TRUE(scanout().active);
  const Client master = open();
  EXPECT_EQ(fb(kBlank + FB_BLANK_NORMAL, &none), 0);  // and does nothing
  EXPECT_TRUE(scanout().active);
}

TEST_F(FbdevTest, Colours) {
  const auto place = [&](uint16_t value) { return memory_.place(std::vector<uint16_t>(256, value)); };
  const uint64_t red = place(7), green = place(8), blue = place(9);
  const auto pointer = [](uint64_t address) { return std::bit_cast<uint16_t*>(address); };
  fb_cmap map = {0, 16, pointer(red), pointer(green), pointer(blue), nullptr};
  ASSERT_EQ(fb(kGetColors, &map), 0);
  EXPECT_EQ(memory_.at<uint16_t>(red + 2 * 4), 0xaaaau);
  EXPECT_EQ(memory_.at<uint16_t>(green + 2 * 6), 0x5555u);
  EXPECT_EQ(memory_.at<uint16_t>(blue + 2 * 15), 0xffffu);
  EXPECT_EQ(memory_.at<uint16_t>(blue + 2 * 16), 9u);
  map.start = 1;
  EXPECT_EQ(fb(kPutColors, &map), EINVAL);
  map.len = 15;
  EXPECT_EQ(fb(kPutColors, &map), 0);
  map.red = pointer(8);
  EXPECT_EQ(fb(kPutColors, &map), EFAULT);
  map.start = 256;
  EXPECT_EQ(fb(kGetColors, &map), EINVAL);
}

TEST_F(FbdevTest, OtherMemoryIsNone) {
  const auto buffer = [&] {
    BufferCharges charges;
    return kernel_.buffers().create(4096, &charges);
  }();
  fd_.reset(dup(buffer->backing().file->memfd.get()));
  fb_var_screeninfo var = {};
  EXPECT_EQ(fb(kGetScreen, &var), ENOTTY);
}

}  // namespace
}  // namespace v3d::ioctl::test
