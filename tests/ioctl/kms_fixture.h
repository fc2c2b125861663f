/// The fixture has clients of the display.
#pragma once

#include <sys/socket.h>

#include <optional>

#include "ioctl/abi/core.h"
#include "ioctl/abi/mode.h"
#include "ioctl/display/display.h"
#include "tests/ioctl/fixture.h"

namespace v3d::ioctl::test {

/// A kernel whose display has a clock that the test turns, or none.
class KmsTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kCrtc = kms::kCrtcId, kConnector = kms::kConnectorId,
                            kPlane = kms::kPrimaryPlaneId, kOverlay = kPlane + 1,
                            kCursorPlane = kms::kCursorPlaneId;
  static constexpr uint32_t kGetConnector = 0xc05064a7, kGetEncoder = 0xc01464a6, kGetCrtc = 0xc06864a1,
                            kSetCrtc = 0xc06864a2, kCursor = 0xc01c64a3, kGetGamma = 0xc02064a4,
                            kSetGamma = 0xc02064a5, kSetProperty = 0xc01064ab, kGetFb = 0xc01c64ad,
                            kAddFb = 0xc01c64ae, kRmFb = 0xc00464af, kPageFlip = 0xc01864b0,
                            kDirtyFb = 0xc01864b1, kCreateDumb = 0xc02064b2, kSetPlane = 0xc03064b7,
                            kAddFb2 = 0xc06864b8, kObjSetProperty = 0xc01864ba, kAtomic = 0xc03864bc,
                            kCreateBlob = 0xc01064bd, kDestroyBlob = 0xc00464be, kGetFb2 = 0xc06864ce,
                            kCloseFb = 0xc00864d0, kWaitVblank = 0xc018643a, kGetSequence = 0xc018643b,
                            kQueueSequence = 0xc018643c, kSetClientCap = 0x4010640d, kGemClose = 0x40086409;
  static constexpr uint32_t kXr24 = 0x34325258, kAr24 = 0x34325241, kNv12 = 0x3231564e;
  static constexpr int64_t kSecond = 1'000'000'000;

  explicit KmsTest(uint32_t hz = 0, const ResourceLimits& limits = ResourceLimits())
      : kernel_(gpu_, host_, limits, default_abi(), {hz, [this] { return now_ns_; }}) {}
  void TearDown() override {
    host_.jobs.clear();
    host_.hangups.clear();
    host_.given.clear();
  }

  struct Client {
    std::shared_ptr<File> file;
    UniqueFd events;  ///< what it reads
  };
  Client open(bool atomic = true, bool privileged = false) {
    Client client = {kernel_.open(kMinorVc4, 1000, "test", privileged), {}};
    const auto own_end = std::make_shared<UniqueFd>();
    EXPECT_TRUE(make_one_way_pair(&client.events, own_end.get()));
    client.file->events()->connect(own_end);
    drm::SetClientCap cap = {drm::kClientCapAtomic, atomic};
    EXPECT_EQ(ioctl(client, kSetClientCap, cap), 0);
    return client;
  }
  template <typename T>
  int ioctl(const Client& client, uint32_t request, T& args) {
    Call call{kernel_, *client.file, memory_, fds_, waiter_, *account_};
    std::vector<uint8_t> bytes(drm::request_size(request));
    std::memcpy(bytes.data(), &args, std::min(bytes.size(), sizeof args));
    const int error = drm_ioctl(call, request, &bytes);
    std::memcpy(static_cast<void*>(&args), bytes.data(), std::min(bytes.size(), sizeof args));
    return error;
  }
  template <typename T>
  int ioctl(uint32_t request, T& args) {
    return ioctl(client_, request, args);
  }

  uint32_t create_dumb(uint32_t width, uint32_t height, uint32_t bpp = 32) {
    drm::CreateDumb args = {height, width, bpp, 0, 0, 0, 0};
    EXPECT_EQ(ioctl(kCreateDumb, args), 0);
    return args.handle;
  }
  static drm::FbCmd2 fb_request(uint32_t handle, uint32_t width, uint32_t height, uint32_t format = kXr24) {
    drm::FbCmd2 args = {};
    args.width = width;
    args.height = height;
    args.pixel_format = format;
    args.handles[0] = handle;
    args.pitches[0] = width * 4;
    return args;
  }
  uint32_t add_fb(uint32_t width = 1920, uint32_t height = 1080, uint32_t format = kXr24) {
    drm::FbCmd2 args = fb_request(create_dumb(width, height), width, height, format);
    EXPECT_EQ(ioctl(kAddFb2, args), 0);
    return args.fb_id;
  }
  int set_crtc(const Client& client, uint32_t fb) {
    drm::Crtc args = {};
    args.crtc_id = kCrtc;
    args.fb_id = fb;
    args.connector_ids = memory_.place(kConnector);
    args.count_connectors = fb ? 1 : 0;
    args.mode_valid = fb != 0;
    args.mode = kms::modes()[0];
    return ioctl(client, kSetCrtc, args);
  }
  int set_crtc(uint32_t fb) { return set_crtc(client_, fb); }
  int flip(uint32_t fb, uint32_t flags = drm::kPageFlipEvent, uint64_t user_data = 7) {
    drm::PageFlip args = {kCrtc, fb, flags, 0, user_data};
    return ioctl(kPageFlip, args);
  }
  /// An event that is there; none when there is nothing to read.
  template <typename T = drm::VblankEvent>
  static std::optional<T> read_event(const Client& client) {
    T event = {};
    const ssize_t got = recv(client.events.get(), &event, sizeof event, MSG_DONTWAIT);
    if (got < 0) return std::nullopt;
    EXPECT_EQ(got, static_cast<ssize_t>(sizeof event));
    return event;
  }
  std::optional<drm::VblankEvent> read_event() { return read_event(client_); }

  struct Value {
    uint32_t object, property;
    uint64_t value;
  };
  /// Of consecutive values of one object one entry is made.
  int atomic(const Client& client, uint32_t flags, const std::vector<Value>& values, uint64_t user_data = 0) {
    std::vector<uint32_t> objects, counts, properties;
    std::vector<uint64_t> set;
    for (const Value& value : values) {
      if (objects.empty() || objects.back() != value.object) {
        objects.push_back(value.object);
        counts.push_back(0);
      }
      ++counts.back();
      properties.push_back(value.property);
      set.push_back(value.value);
    }
    drm::Atomic args = {flags,
                        static_cast<uint32_t>(objects.size()),
                        memory_.place(objects),
                        memory_.place(counts),
                        memory_.place(properties),
                        memory_.place(set),
                        0,
                        user_data};
    return ioctl(client, kAtomic, args);
  }
  int atomic(uint32_t flags, const std::vector<Value>& values) { return atomic(client_, flags, values); }
  uint32_t create_blob(const void* data, uint32_t length) {
    drm::CreateBlob args = {memory_.place(data, length), length, 0};
    EXPECT_EQ(ioctl(kCreateBlob, args), 0);
    return args.blob_id;
  }
  /// All that it takes to show a framebuffer of the preferred mode.
  std::vector<Value> light(uint32_t fb) {
    const drm::ModeInfo mode = kms::modes()[0];
    std::vector<Value> values = {{kConnector, kms::kCrtc, kCrtc},
                                 {kCrtc, kms::kActive, 1},
                                 {kCrtc, kms::kModeId, create_blob(&mode, sizeof mode)}};
    for (const Value& value : show(kPlane, fb, 1920, 1080)) values.push_back(value);
    return values;
  }
  static std::vector<Value> show(uint32_t plane, uint32_t fb, uint32_t width, uint32_t height, int x = 0,
                                 int y = 0) {
    return {{plane, kms::kFb, fb},
            {plane, kms::kCrtc, kCrtc},
            {plane, kms::kSrcX, 0},
            {plane, kms::kSrcY, 0},
            {plane, kms::kSrcW, uint64_t{width} << 16},
            {plane, kms::kSrcH, uint64_t{height} << 16},
            {plane, kms::kCrtcX, static_cast<uint64_t>(int64_t{x})},
            {plane, kms::kCrtcY, static_cast<uint64_t>(int64_t{y})},
            {plane, kms::kCrtcW, width},
            {plane, kms::kCrtcH, height}};
  }
  /// A sync_file of a fence that the test signals.
  UniqueFd make_fence(FencePtr* fence) {
    *fence = std::make_shared<Fence>("test", "test", new_fence_context(), 1);
    return kernel_.export_sync_file(*account_, {*fence, ""});
  }
  kms::Scanout scanout() { return kernel_.display().scanout(); }

  int64_t now_ns_ = 1000 * kSecond;
  FakeGpu gpu_;
  FakeHost host_;
  Kernel kernel_;
  FakeMemory memory_;
  FakeFds fds_;
  std::shared_ptr<Waiter> waiter_ = std::make_shared<Waiter>();
  std::shared_ptr<Account> account_ = [this] {
    Resource scarce;
    return kernel_.budget().admit({1000, 1}, "test", &scarce);
  }();
  Client client_ = open();
};

}  // namespace v3d::ioctl::test
