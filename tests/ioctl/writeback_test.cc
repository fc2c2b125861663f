// Writeback connectors: Linux drm_writeback.c, vc4_txp.c.
#include <sys/mman.h>

#include "tests/ioctl/kms_fixture.h"

namespace v3d::ioctl::test {
namespace {

/// At a clock that stands still, so that nothing here waits for the vertical blanking.
class WritebackTest : public KmsTest {
 protected:
  static constexpr kms::Pipe kPipe = kms::kPipes[2];
  static constexpr uint32_t kWidth = 64, kHeight = 80, kBg24 = 0x34324742;

  WritebackTest() : KmsTest(60) {
    drm::SetClientCap cap = {drm::kClientCapWritebackConnectors, 1};
    EXPECT_EQ(ioctl(kSetClientCap, cap), 0);
  }

  struct Picture {
    uint32_t fb;
    uint8_t* pixels;
  };
  /// A framebuffer and its memory.
  Picture make(uint32_t width, uint32_t height, uint32_t format = kXr24, uint32_t bytes = 4) {
    const uint32_t handle = create_dumb(width, height, bytes * 8);
    drm::FbCmd2 args = fb_request(handle, width, height, format);
    args.pitches[0] = width * bytes;
    EXPECT_EQ(ioctl(kAddFb2, args), 0);
    const Buffer& buffer = *client_.file->find_bo(handle)->buffer();
    void* memory = mmap(nullptr, buffer.size(), PROT_READ | PROT_WRITE, MAP_SHARED,
                        buffer.backing().file->memfd.get(), 0);
    EXPECT_NE(memory, MAP_FAILED);
    mapped_.emplace_back(memory, buffer.size());
    return {args.fb_id, static_cast<uint8_t*>(memory)};
  }
  void TearDown() override {
    for (const auto& [memory, size] : mapped_) munmap(memory, size);
    KmsTest::TearDown();
  }
  static uint32_t word(const Picture& picture, uint32_t i) {
    uint32_t value;
    std::memcpy(&value, picture.pixels + size_t{i} * 4, 4);
    return value;
  }
  static void fill(const Picture& picture, uint32_t value, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) std::memcpy(picture.pixels + size_t{i} * 4, &value, 4);
  }
  std::vector<Value> lit(uint32_t shown) {
    drm::ModeInfo mode = kms::modes()[4];
    mode.hdisplay = kWidth;
    mode.vdisplay = kHeight;
    std::vector<Value> values = {{kPipe.connector, kms::kCrtc, kPipe.crtc},
                                 {kPipe.crtc, kms::kActive, 1},
                                 {kPipe.crtc, kms::kModeId, create_blob(&mode, sizeof mode)}};
    for (Value value : show(kPipe.primary, shown, kWidth, kHeight)) {
      if (value.property == kms::kCrtc) value.value = kPipe.crtc;
      values.push_back(value);
    }
    return values;
  }
  Value to(uint32_t fb) { return {kPipe.connector, kms::kWritebackFb, fb}; }

  std::vector<std::pair<void*, size_t>> mapped_;
};

TEST_F(WritebackTest, WritesWhatItsPlanesShow) {
  const Picture shown = make(kWidth, kHeight), small = make(8, 8), first = make(kWidth, kHeight),
                second = make(kWidth, kHeight, kBg24, 3);
  fill(shown, 0x102030, kWidth * kHeight);
  fill(small, 0xa0b0c0, 64);
  std::vector<Value> values = lit(shown.fb);
  for (Value value : show(kOverlay, small.fb, 8, 8, 4, 60)) {
    if (value.property == kms::kCrtc) value.value = kPipe.crtc;
    values.push_back(value);
  }
  const uint64_t frame = scanout().frame;
  values.push_back(to(first.fb));
  ASSERT_EQ(atomic(drm::kAtomicAllowModeset, values), 0);
  EXPECT_EQ(word(first, 0), 0xff102030u);
  for (const uint32_t y : {60u, 63u, 64u, 67u}) EXPECT_EQ(word(first, y * kWidth + 11), 0xffa0b0c0u) << y;
  EXPECT_EQ(word(first, 68 * kWidth + 11), 0xff102030u);
  EXPECT_EQ(word(first, kWidth * kHeight - 1), 0xff102030u);
  EXPECT_EQ(scanout().frame, frame);  // it is no screen's
  // It is of one commit alone, and reads as 0.
  EXPECT_EQ(kernel_.display().state().connector(2).get(kms::kWritebackFb), 0u);
  fill(first, 0, kWidth * kHeight);
  ASSERT_EQ(atomic(0, {{kPipe.primary, kms::kFb, shown.fb}}), 0);
  EXPECT_EQ(word(first, 0), 0u);
  // Another order of bytes.
  ASSERT_EQ(atomic(0, {to(second.fb)}), 0);
  EXPECT_EQ(second.pixels[0], 0x10);
  EXPECT_EQ(second.pixels[2], 0x30);
}

TEST_F(WritebackTest, FenceAndEventComeWhenItIsWritten) {
  const Picture shown = make(kWidth, kHeight), written = make(kWidth, kHeight);
  fill(shown, 0x445566, kWidth * kHeight);
  ASSERT_EQ(atomic(drm::kAtomicAllowModeset, lit(shown.fb)), 0);
  FencePtr drawn;
  const UniqueFd in_fence = make_fence(&drawn);
  const uint64_t address = memory_.place(int32_t{0});
  const std::vector<Value> values = {{kPipe.primary, kms::kFb, shown.fb},
                                     {kPipe.primary, kms::kInFence, static_cast<uint64_t>(in_fence.get())},
                                     {kPipe.connector, kms::kWritebackFence, address},
                                     to(written.fb)};
  ASSERT_EQ(atomic(client_, uint32_t{drm::kAtomicNonblock} | drm::kPageFlipEvent, values, 77), 0);
  EXPECT_EQ(atomic(drm::kAtomicNonblock, {to(written.fb)}), EBUSY);
  EXPECT_EQ(fds_.given_address, address);
  const auto out = kernel_.find_sync_file(fds_.given.get());
  ASSERT_TRUE(out);
  EXPECT_FALSE(out->fence->is_signalled());
  EXPECT_STREQ(out->fence->timeline_name(), "CONNECTOR:62-Writeback-1");
  // A screen does not wait for it.
  EXPECT_EQ(atomic(drm::kAtomicNonblock, {{kPlane, kms::kAlpha, 0xffff}}), 0);
  EXPECT_FALSE(read_event());
  drawn->signal();
  kernel_.display().tick();
  ASSERT_EQ(wait_for_all({out->fence}, waiter_, monotonic_ns() + 10 * kSecond), 0);
  EXPECT_EQ(word(written, 5), 0xff445566u);
  const auto event = read_event();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->user_data, 77u);
  EXPECT_EQ(event->crtc_id, kPipe.crtc);
}

TEST_F(WritebackTest, WhatItRefuses) {
  const Picture good = make(kWidth, kHeight), small = make(kWidth, kHeight - 1);
  const uint64_t address = memory_.place(int32_t{0});
  constexpr uint32_t kSet = drm::kAtomicAllowModeset;
  EXPECT_EQ(atomic(kSet, {to(good.fb)}), EINVAL);                           // without a CRTC
  EXPECT_EQ(atomic(kSet, {{kPipe.connector, kms::kCrtc, kCrtc}}), EINVAL);  // which its encoder cannot use
  EXPECT_EQ(atomic(kSet, {{kConnector, kms::kCrtc, kPipe.crtc}}), EINVAL);
  ASSERT_EQ(atomic(kSet, lit(good.fb)), 0);
  const struct {
    int error;
    std::vector<Value> values;
  } kCases[] = {
      {EINVAL, {to(small.fb)}},
      {EINVAL, {to(add_fb(kWidth, kHeight, 0x36314752))}},  // RG16
      {EINVAL, {to(99)}},
      {EINVAL, {{kPipe.connector, kms::kWritebackFormats, 0}}},
      {EFAULT, {{kPipe.connector, kms::kWritebackFence, 8}}},
      {EINVAL, {to(0), {kPipe.connector, kms::kWritebackFence, address}}},
      {0, {to(0)}},
      {0, {{kPipe.connector, kms::kWritebackFence, address}}},  // of nothing: none is made
      {EINVAL, {{kPipe.crtc, kms::kActive, 0}, to(good.fb)}},
      {ENOENT, {{kConnector, kms::kWritebackFb, good.fb}}},
      {ENOENT, {{kms::kPipes[4].crtc, kms::kActive, 0}}},  // which a Pi 5 does not have
  };
  for (const auto& c : kCases) EXPECT_EQ(atomic(kSet, c.values), c.error) << &c - kCases;
  EXPECT_EQ(memory_.at<int32_t>(address), -1);
}

TEST_F(WritebackTest, WhatIsWrittenIsDroppedWithItsFile) {
  const Picture shown = make(kWidth, kHeight), written = make(kWidth, kHeight);
  ASSERT_EQ(atomic(drm::kAtomicAllowModeset, lit(shown.fb)), 0);
  FencePtr never;
  const UniqueFd in_fence = make_fence(&never);
  const uint64_t address = memory_.place(int32_t{0});
  ASSERT_EQ(
      atomic(drm::kAtomicNonblock, {{kPipe.primary, kms::kFb, shown.fb},
                                    {kPipe.primary, kms::kInFence, static_cast<uint64_t>(in_fence.get())},
                                    {kPipe.connector, kms::kWritebackFence, address},
                                    to(written.fb)}),
      0);
  const auto out = kernel_.find_sync_file(fds_.given.get());
  ASSERT_TRUE(out);
  client_ = {};
  EXPECT_TRUE(out->fence->is_signalled());
  EXPECT_FALSE(kernel_.display().state().active(2));
}

}  // namespace
}  // namespace v3d::ioctl::test
