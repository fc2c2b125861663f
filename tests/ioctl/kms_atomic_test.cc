// Atomic commits, and flips and events on a clock.
#include "tests/ioctl/kms_fixture.h"

namespace v3d::ioctl::test {
namespace {

using kms::PropertyId;
constexpr uint32_t kModeset = drm::kAtomicAllowModeset, kTest = drm::kAtomicTestOnly,
                   kNonblock = drm::kAtomicNonblock, kEvent = drm::kPageFlipEvent;

class AtomicTest : public KmsTest {};

TEST_F(AtomicTest, TestOnlyChangesNothing) {
  ASSERT_EQ(set_crtc(0), 0);
  const auto values = light(add_fb());
  EXPECT_EQ(atomic(kTest | kModeset, values), 0);
  EXPECT_FALSE(scanout().active);
  EXPECT_FALSE(kernel_.display().state().enabled(0));
  EXPECT_EQ(atomic(kTest, values), EINVAL);  // it is a mode setting
  EXPECT_EQ(atomic(kModeset, values), 0);
  EXPECT_TRUE(scanout().active);
  EXPECT_EQ(atomic(kTest, light(add_fb())), 0);  // another blob, but the same mode
}

TEST_F(AtomicTest, FlagsThatDoNotGoTogether) {
  const auto values = light(add_fb());
  EXPECT_EQ(atomic(kTest | kEvent | kModeset, values), EINVAL);
  EXPECT_EQ(atomic(0x800, values), EINVAL);
  const Client old = open(false);
  EXPECT_EQ(atomic(old, kModeset, values), EACCES);  // not even master
  drm::SetClientCap cap = {drm::kClientCapAtomic, 0};
  ASSERT_EQ(ioctl(kSetClientCap, cap), 0);
  EXPECT_EQ(atomic(kModeset, values), EINVAL);
}

TEST_F(AtomicTest, ValuesThatPropertiesDoNotTake) {
  ASSERT_EQ(atomic(kModeset, light(add_fb())), 0);
  const uint32_t small = create_blob("abc", 3);
  const uint32_t fb = add_fb(320, 200);
  const struct {
    int error;
    Value value;
  } kCases[] = {
      {ENOENT, {99, kms::kFb, 0}},
      {ENOENT, {kms::kEncoderId, kms::kFb, 0}},  // has none
      {ENOENT, {kPlane, kms::kActive, 1}},
      {ENOENT, {kPlane, 9999, 1}},
      {EINVAL, {kPlane, kms::kType, 1}},  // immutable
      {EINVAL, {kPlane, kms::kFb, 9999}},
      {EINVAL, {kPlane, kms::kCrtc, kConnector}},
      {EINVAL, {kPlane, kms::kInFence, 12345}},
      {0, {kPlane, kms::kInFence, ~uint64_t{0}}},
      {EINVAL, {kPlane, kms::kAlpha, 0x10000}},
      {0, {kPlane, kms::kAlpha, 0x8000}},
      {EINVAL, {kPlane, kms::kBlend, 3}},
      {EINVAL, {kPlane, kms::kRotation, 2}},  // not offered
      {EINVAL, {kPlane, kms::kRotation, 1 | 4}},
      {0, {kPlane, kms::kRotation, 4 | 16}},
      {EINVAL, {kOverlay, kms::kMovableZpos, 0}},
      {0, {kOverlay, kms::kMovableZpos, 17}},
      {EINVAL, {kCrtc, kms::kActive, 2}},
      {EINVAL, {kCrtc, kms::kModeId, small}},
      {EINVAL, {kCrtc, kms::kModeId, 0}},  // active without a mode
      {EINVAL, {kCrtc, kms::kCtm, small}},
      {EFAULT, {kCrtc, kms::kOutFence, 8}},
      {EINVAL, {kConnector, kms::kDpms, 3}},
      {EINVAL, {kConnector, kms::kCrtc, 0}},  // an enabled CRTC without a connector
      {EINVAL, {kPlane, kms::kFb, 0}},        // with a CRTC
      {ENOSPC, {kPlane, kms::kFb, fb}},       // the source is larger
      {ERANGE, {kPlane, kms::kCrtcX, 0x7fffffff}},
      {EINVAL, {kPlane, kms::kCrtcX, 0x80000000}},
  };
  for (const auto& c : kCases) EXPECT_EQ(atomic(kTest | kModeset, {c.value}), c.error) << &c - kCases;
}

TEST_F(AtomicTest, BadPointers) {
  const uint64_t object = memory_.place(kOverlay), one = memory_.place(uint32_t{1}),
                 fb = memory_.place(uint32_t{kms::kFb}), value = memory_.place(uint64_t{0});
  drm::Atomic good = {kTest, 1, object, one, fb, value, 0, 0};
  EXPECT_EQ(ioctl(kAtomic, good), 0);
  for (uint64_t drm::Atomic::*field : {&drm::Atomic::objects, &drm::Atomic::count_properties,
                                       &drm::Atomic::properties, &drm::Atomic::values}) {
    drm::Atomic args = good;
    args.*field = 8;
    EXPECT_EQ(ioctl(kAtomic, args), EFAULT);
  }
  good.reserved = 1;
  EXPECT_EQ(ioctl(kAtomic, good), EINVAL);
}

TEST_F(AtomicTest, EventsNeedACrtc) {
  ASSERT_EQ(set_crtc(0), 0);
  EXPECT_EQ(atomic(kEvent, {}), EINVAL);
  EXPECT_EQ(atomic(kEvent, {{kOverlay, kms::kAlpha, 1}}), EINVAL);
  EXPECT_EQ(atomic(kEvent, {{kCrtc, kms::kVrrEnabled, 0}}), EINVAL);  // that is off
  ASSERT_EQ(atomic(client_, kEvent | kModeset, light(add_fb()), 9), 0);
  const auto event = read_event();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->user_data, 9u);
}

TEST_F(AtomicTest, PlanesFromBottomToTop) {
  ASSERT_EQ(atomic(kModeset, light(add_fb())), 0);
  const uint32_t fb = add_fb(64, 64);
  auto values = show(kOverlay + 1, fb, 64, 64, 5, 6);
  for (const Value& value : show(kOverlay, fb, 64, 64)) values.push_back(value);
  values.push_back({kOverlay, kms::kMovableZpos, 9});
  values.push_back({kOverlay, kms::kAlpha, 0x1234});
  values.push_back({kOverlay, kms::kBlend, 1});
  ASSERT_EQ(atomic(0, values), 0);
  const kms::Scanout shown = scanout();
  ASSERT_EQ(shown.planes.size(), 3u);
  EXPECT_EQ(shown.planes[1].plane_id, kOverlay + 1);
  EXPECT_EQ(shown.planes[1].x, 5);
  EXPECT_EQ(shown.planes[2].plane_id, kOverlay);
  EXPECT_EQ(shown.planes[2].alpha, 0x1234);
  EXPECT_EQ(shown.planes[2].blend, kms::Blend::kCoverage);
}

TEST_F(AtomicTest, OutFencesSignalWhenItIsShown) {
  ASSERT_EQ(atomic(kModeset, light(add_fb())), 0);
  FencePtr in;
  const UniqueFd in_fd = make_fence(&in);
  const uint64_t out = memory_.place(int32_t{5});
  auto values = show(kPlane, add_fb(), 1920, 1080);
  values.push_back({kPlane, kms::kInFence, static_cast<uint64_t>(in_fd.get())});
  values.push_back({kCrtc, kms::kOutFence, out});
  EXPECT_EQ(atomic(kTest, values), 0);
  EXPECT_EQ(memory_.at<int32_t>(out), -1);
  EXPECT_FALSE(fds_.given);
  ASSERT_EQ(atomic(kNonblock, values), 0);
  EXPECT_EQ(fds_.given_address, out);
  const auto file = kernel_.find_sync_file(fds_.given.get());
  ASSERT_TRUE(file);
  EXPECT_FALSE(file->fence->is_signalled());
  EXPECT_EQ(atomic(kNonblock, values), EBUSY);
  in->signal();
  kernel_.display().tick();
  EXPECT_TRUE(file->fence->is_signalled());
  EXPECT_STREQ(file->fence->driver_name(), "vc4");
}

TEST_F(AtomicTest, ThereIsOneInFence) {
  FencePtr in;
  const auto fd = make_fence(&in);
  const Value value = {kPlane, kms::kInFence, static_cast<uint64_t>(fd.get())};
  EXPECT_EQ(atomic(kTest, {value, value}), EINVAL);
}

TEST_F(AtomicTest, AnInFenceIsOfOneCommitAlone) {
  ASSERT_EQ(atomic(kModeset, light(add_fb())), 0);
  FencePtr in;
  const auto fd = make_fence(&in);
  // A plane that is off needs not wait, neither now nor when it is on.
  ASSERT_EQ(atomic(0, {{kOverlay, kms::kInFence, static_cast<uint64_t>(fd.get())}}), 0);
  ASSERT_EQ(atomic(kNonblock, show(kOverlay, add_fb(64, 64), 64, 64)), 0);
  EXPECT_EQ(scanout().planes.size(), 2u);
  EXPECT_FALSE(in->is_signalled());
}

TEST_F(AtomicTest, AsyncFlipsShowAnotherFramebufferOnly) {
  ASSERT_EQ(atomic(kModeset, light(add_fb())), 0);
  EXPECT_EQ(atomic(drm::kPageFlipAsync | kNonblock, {{kPlane, kms::kFb, add_fb()}}), 0);
  EXPECT_EQ(atomic(drm::kPageFlipAsync, {{kPlane, kms::kAlpha, 1}}), EINVAL);
  EXPECT_EQ(atomic(drm::kPageFlipAsync, {{kPlane, kms::kAlpha, 0xffff}}), 0);  // as it is
  EXPECT_EQ(atomic(drm::kPageFlipAsync, {{kOverlay, kms::kFb, add_fb()}}), EINVAL);
}

TEST_F(AtomicTest, PropertiesOneAtATime) {
  ASSERT_EQ(atomic(kModeset, light(add_fb())), 0);
  drm::SetConnectorProperty dpms = {3, kms::kDpms, kConnector};
  ASSERT_EQ(ioctl(kSetProperty, dpms), 0);
  EXPECT_FALSE(scanout().active);
  EXPECT_TRUE(kernel_.display().state().enabled(0));
  dpms.value = 0;
  ASSERT_EQ(ioctl(kSetProperty, dpms), 0);
  EXPECT_TRUE(scanout().active);
  dpms.value = 4;
  EXPECT_EQ(ioctl(kSetProperty, dpms), EINVAL);
  dpms.connector_id = kPlane;
  EXPECT_EQ(ioctl(kSetProperty, dpms), ENOENT);
  drm::SetObjectProperty args = {0x100, kms::kAlpha, kPlane, drm::kObjectPlane, 0};
  ASSERT_EQ(ioctl(kObjSetProperty, args), 0);
  EXPECT_EQ(scanout().planes[0].alpha, 0x100);
  args.prop_id = kms::kActive;
  EXPECT_EQ(ioctl(kObjSetProperty, args), EINVAL);
  args = {0, kms::kDpms, kms::kEncoderId, drm::kObjectAny, 0};
  EXPECT_EQ(ioctl(kObjSetProperty, args), EINVAL);
}

class ClockTest : public KmsTest {
 protected:
  ClockTest() : KmsTest(60) { EXPECT_EQ(set_crtc(0), 0); }
  /// Blocking calls have somebody who turns the clock: the mode is set while nothing is shown, at once.
  void light_up() { ASSERT_EQ(set_crtc(add_fb()), 0); }
};

TEST_F(ClockTest, FlipsCompleteAtTheNextTick) {
  light_up();
  const uint32_t fb = add_fb();
  now_ns_ = 1001 * kSecond + 1;
  ASSERT_EQ(flip(fb), 0);
  EXPECT_FALSE(read_event());
  EXPECT_EQ(flip(fb), EBUSY);
  const int64_t due = kernel_.display().tick();
  EXPECT_EQ(due, 1001 * kSecond + 16'666'667);
  now_ns_ = due - 1;
  kernel_.display().tick();
  EXPECT_FALSE(read_event());
  now_ns_ = due + 1'000'000;  // late
  EXPECT_EQ(kernel_.display().tick(), INT64_MAX);
  const auto event = read_event();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->tv_usec, 16'666u);  // but it says when it was
  EXPECT_EQ(event->sequence, 61u);
  EXPECT_EQ(flip(fb), 0);
}

TEST_F(ClockTest, FlipsThatAreHeldUpTakeTheNextTick) {
  light_up();
  now_ns_ = 1001 * kSecond + 1;
  {
    const kms::Display::Look look(kernel_.display());
    ASSERT_EQ(flip(add_fb()), 0);
    now_ns_ = kernel_.display().tick();
    EXPECT_EQ(kernel_.display().tick(), 1001 * kSecond + 33'333'334);
    EXPECT_FALSE(read_event());
  }
  kernel_.display().tick();
  EXPECT_FALSE(read_event());
  now_ns_ = 1001 * kSecond + 33'333'334;
  kernel_.display().tick();
  const auto event = read_event();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->sequence, 62u);
}

TEST_F(ClockTest, AsyncFlipsDoNotWait) {
  light_up();
  ASSERT_EQ(flip(add_fb(), kEvent | drm::kPageFlipAsync), 0);
  EXPECT_TRUE(read_event());
}

TEST_F(ClockTest, FencesFirst) {
  light_up();
  const uint32_t fb = add_fb();
  const auto fence = std::make_shared<Fence>("test", "test", new_fence_context(), 1);
  kernel_.display().find_fb(fb)->parts[0].bo->reservation().add(fence, true);
  ASSERT_EQ(flip(fb), 0);
  EXPECT_EQ(kernel_.display().tick(), INT64_MAX);
  now_ns_ += kSecond + 1;
  fence->signal();
  EXPECT_EQ(kernel_.display().tick(), 1001 * kSecond + 16'666'667);
  EXPECT_FALSE(read_event());
}

TEST_F(ClockTest, WaitingForTheVerticalBlanking) {
  drm::WaitVblank args = {};
  args.type = drm::kVblankRelative;
  EXPECT_EQ(ioctl(kWaitVblank, args), EINVAL);  // the CRTC is off
  light_up();
  now_ns_ += kSecond;
  ASSERT_EQ(ioctl(kWaitVblank, args), 0);
  EXPECT_EQ(args.sequence, 60u);
  EXPECT_EQ(args.tval_sec, 1001);
  for (const uint32_t type : {0x40000000u, 2u, 0x40u, 0x20000000u, 0x80000000u}) {
    args = {};
    args.type = type;
    EXPECT_EQ(ioctl(kWaitVblank, args), EINVAL) << type;
  }
  args = {};
  args.type = drm::kVblankRelative | drm::kVblankEvent;
  args.sequence = 2;
  args.signal = 77;
  ASSERT_EQ(ioctl(kWaitVblank, args), 0);
  EXPECT_EQ(args.sequence, 62u);
  EXPECT_FALSE(read_event());
  now_ns_ = kernel_.display().tick();
  kernel_.display().tick();
  const auto event = read_event();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->base.type, drm::kEventVblank);
  EXPECT_EQ(event->sequence, 62u);
  EXPECT_EQ(event->user_data, 77u);
  // What has passed comes at once; with the flag it is the next one.
  args = {};
  args.type = drm::kVblankEvent;
  args.sequence = 5;
  ASSERT_EQ(ioctl(kWaitVblank, args), 0);
  EXPECT_TRUE(read_event());
  args.type |= drm::kVblankNextOnMiss;
  ASSERT_EQ(ioctl(kWaitVblank, args), 0);
  EXPECT_EQ(args.sequence, 63u);
  EXPECT_FALSE(read_event());
  // Nobody waits for a CRTC that is off.
  ASSERT_EQ(set_crtc(0), 0);
  EXPECT_TRUE(read_event());
}

TEST_F(ClockTest, Sequences) {
  drm::CrtcGetSequence get = {kCrtc, 0, 0, 0};
  drm::CrtcQueueSequence queue = {kCrtc, drm::kSequenceRelative, 1, 8};
  EXPECT_EQ(ioctl(kGetSequence, get), EINVAL);
  EXPECT_EQ(ioctl(kQueueSequence, queue), EINVAL);
  light_up();
  now_ns_ += kSecond;
  ASSERT_EQ(ioctl(kGetSequence, get), 0);
  EXPECT_EQ(get.sequence, 60u);
  EXPECT_EQ(get.active, 1u);
  EXPECT_EQ(get.sequence_ns, 1001 * kSecond);
  ASSERT_EQ(ioctl(kQueueSequence, queue), 0);
  EXPECT_EQ(queue.sequence, 61u);
  now_ns_ = kernel_.display().tick();
  kernel_.display().tick();
  const auto event = read_event<drm::SequenceEvent>(client_);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->base.type, drm::kEventCrtcSequence);
  EXPECT_EQ(event->sequence, 61u);
  EXPECT_EQ(event->user_data, 8u);
  queue.flags = 4;
  EXPECT_EQ(ioctl(kQueueSequence, queue), EINVAL);
  queue.crtc_id = get.crtc_id = kPlane;
  EXPECT_EQ(ioctl(kQueueSequence, queue), ENOENT);
  EXPECT_EQ(ioctl(kGetSequence, get), ENOENT);
}

TEST_F(ClockTest, AClosedFileGetsNoEvents) {
  light_up();
  ASSERT_EQ(flip(add_fb()), 0);
  const Client other = open();
  client_.file->release();
  now_ns_ += kSecond;
  kernel_.display().tick();
  char byte;
  EXPECT_EQ(recv(client_.events.get(), &byte, 1, MSG_DONTWAIT), 0);  // the end
}

TEST_F(ClockTest, AClosedFileWaitsForNothing) {
  light_up();
  Client other = open();
  drm::WaitVblank far = {};
  far.type = drm::kVblankRelative | drm::kVblankEvent;
  far.sequence = 1 << 30;
  drm::CrtcQueueSequence later = {kCrtc, 0, uint64_t{1} << 40, 8};
  ASSERT_EQ(ioctl(other, kWaitVblank, far), 0);
  ASSERT_EQ(ioctl(other, kQueueSequence, later), 0);
  const std::weak_ptr<kms::EventQueue> queue = other.file->events();
  other.file->release();
  other.file.reset();
  EXPECT_TRUE(queue.expired());
  EXPECT_EQ(kernel_.display().tick(), INT64_MAX);
}

TEST_F(ClockTest, ViewersSeeEveryFrame) {
  class Counter : public Watcher {
   public:
    void notify() override { ++count; }
    int count = 0;
  };
  const auto counter = std::make_shared<Counter>();
  kernel_.display().watch_frames(counter);
  light_up();
  const uint64_t seen = scanout().frame;
  EXPECT_EQ(kernel_.display().wait_for_frame(seen, waiter_, 0), ETIME);
  EXPECT_EQ(kernel_.display().wait_for_frame(seen - 1, waiter_, 0), 0);
  ASSERT_EQ(flip(add_fb()), 0);
  const int before = counter->count;
  now_ns_ += kSecond;
  kernel_.display().tick();
  EXPECT_EQ(counter->count, before + 1);
  EXPECT_EQ(scanout().frame, seen + 1);
  EXPECT_EQ(scanout().time_ns, 1000 * kSecond + 16'666'667);
  kernel_.display().unwatch_frames(counter.get());
}

}  // namespace
}  // namespace v3d::ioctl::test
