// Framebuffers, mode setting, flips and what is shown, without a clock: flips complete as soon as they can.
#include <memory>

#include "tests/ioctl/kms_fixture.h"

namespace v3d::ioctl::test {
namespace {

class DisplayTest : public KmsTest {};

TEST_F(DisplayTest, TheConsoleLightsTheConnector) {
  drm::Connector connector = {};
  connector.connector_id = kConnector;
  ASSERT_EQ(ioctl(kGetConnector, connector), 0);
  EXPECT_EQ(connector.encoder_id, uint32_t{kms::kEncoderId});
  drm::Encoder encoder = {};
  encoder.encoder_id = connector.encoder_id;
  ASSERT_EQ(ioctl(kGetEncoder, encoder), 0);
  EXPECT_EQ(encoder.crtc_id, kCrtc);
  drm::Crtc crtc = {};
  crtc.crtc_id = kCrtc;
  ASSERT_EQ(ioctl(kGetCrtc, crtc), 0);
  EXPECT_EQ(crtc.mode_valid, 1u);
  EXPECT_EQ(std::memcmp(&crtc.mode, &kms::modes()[0], sizeof crtc.mode), 0);
  drm::FbCmd fb = {};
  fb.fb_id = crtc.fb_id;
  ASSERT_EQ(ioctl(kGetFb, fb), 0);
  EXPECT_EQ(fb.width, 1920u);
  EXPECT_EQ(fb.bpp, 16u);
  EXPECT_EQ(fb.pitch, 3840u);
  EXPECT_NE(fb.handle, 0u);
  drm::FbId id = {crtc.fb_id};
  EXPECT_EQ(ioctl(kRmFb, id), ENOENT);  // it is the kernel's
  // What a player does when it ends: it sets what it found.
  ASSERT_EQ(set_crtc(add_fb()), 0);
  EXPECT_EQ(set_crtc(crtc.fb_id), 0);
}

TEST_F(DisplayTest, TheConsoleComesBackWhenTheLastFileIsClosed) {
  ASSERT_EQ(set_crtc(add_fb()), 0);
  ASSERT_EQ(set_crtc(0), 0);
  EXPECT_FALSE(kernel_.display().state().is_lit(0));
  client_ = {};
  EXPECT_TRUE(kernel_.display().state().is_lit(0));
  EXPECT_EQ(kernel_.display().state().primary(0).fb, kernel_.display().console());
}

TEST_F(DisplayTest, ViewersSeeTheConsoleOnceItIsUsed) {
  kernel_.display().add_viewer();
  EXPECT_TRUE(scanout().active);
  EXPECT_TRUE(scanout().planes.empty());
  EXPECT_FALSE(kernel_.display().refresh_console());
  kernel_.display().use_console();
  ASSERT_EQ(scanout().planes.size(), 1u);
  EXPECT_EQ(scanout().planes[0].fourcc, 0x36314752u);  // RG16
  EXPECT_EQ(kernel_.display().last_picture().planes.size(), 1u);
  const uint64_t frame = scanout().frame;
  EXPECT_TRUE(kernel_.display().refresh_console());
  EXPECT_EQ(scanout().frame, frame + 1);
  ASSERT_EQ(set_crtc(add_fb()), 0);
  EXPECT_FALSE(kernel_.display().refresh_console());
  kernel_.display().remove_viewer();
}

TEST_F(DisplayTest, FramebuffersThatTheKernelRefuses) {
  const uint32_t handle = create_dumb(64, 64);
  const struct {
    int error;
    void (*change)(drm::FbCmd2&);
  } kCases[] = {
      {0, [](auto&) {}},
      {0, [](auto& a) { a.flags = drm::kFbModifiers; }},
      {EINVAL, [](auto& a) { a.flags = 4; }},
      {EINVAL, [](auto& a) { a.width = 0; }},
      {EINVAL, [](auto& a) { a.width = 8193; }},
      {EINVAL, [](auto& a) { a.height = 0; }},
      {EINVAL, [](auto& a) { a.height = 65; }},  // beyond the buffer
      {EINVAL, [](auto& a) { a.pixel_format = 0; }},
      {EINVAL, [](auto& a) { a.handles[0] = 0; }},
      {ENOENT, [](auto& a) { a.handles[0] = 99; }},
      {EINVAL, [](auto& a) { a.pitches[0] = 255; }},
      {EINVAL, [](auto& a) { a.offsets[0] = 1; }},
      {ERANGE, [](auto& a) { a.pitches[0] = 1u << 31; }},
      {EINVAL, [](auto& a) { a.handles[1] = a.handles[0]; }},  // the format has one part
      {EINVAL, [](auto& a) { a.modifier[0] = 1; }},            // without the flag
      {EINVAL,
       [](auto& a) {
         a.flags = drm::kFbModifiers;
         a.modifier[0] = 1;  // known to nobody
       }},
  };
  for (size_t i = 0; i < std::size(kCases); ++i) {
    drm::FbCmd2 args = fb_request(handle, 64, 64);
    kCases[i].change(args);
    EXPECT_EQ(ioctl(kAddFb2, args), kCases[i].error) << i;
  }
}

TEST_F(DisplayTest, FramebuffersOfTwoParts) {
  drm::FbCmd2 args = fb_request(create_dumb(64, 96, 8), 64, 64, kNv12);
  args.pitches[0] = args.pitches[1] = 64;
  args.handles[1] = args.handles[0];
  args.offsets[1] = 64 * 64;
  EXPECT_EQ(ioctl(kAddFb2, args), 0);
  drm::FbCmd old = {};
  old.fb_id = args.fb_id;
  EXPECT_EQ(ioctl(kGetFb, old), EINVAL);
  drm::FbCmd2 got = {};
  got.fb_id = args.fb_id;
  ASSERT_EQ(ioctl(kGetFb2, got), 0);
  EXPECT_EQ(got.pixel_format, kNv12);
  EXPECT_EQ(got.offsets[1], 64u * 64);
  EXPECT_NE(got.handles[0], 0u);
  EXPECT_EQ(got.handles[0], got.handles[1]);
  args.handles[1] = 0;
  EXPECT_EQ(ioctl(kAddFb2, args), EINVAL);
}

/// vc4_format_mod_supported, and what a Pi 5 lists and does not show.
TEST_F(DisplayTest, FramebuffersOfTilesAndColumns) {
  constexpr uint64_t kBroadcom = uint64_t{7} << 56, kT = kBroadcom | 1, kSand64 = kBroadcom | 3,
                     kSand128 = kBroadcom | 4, kUif = kBroadcom | 6;
  constexpr uint32_t kP030 = 0x30333050, kRg24 = 0x34324752;
  const uint32_t handle = create_dumb(128, 128);
  const auto add = [&](uint32_t format, uint64_t modifier, uint32_t parts, uint32_t* id = nullptr) {
    drm::FbCmd2 args = fb_request(handle, 64, 64, format);
    args.flags = drm::kFbModifiers;
    for (uint32_t i = 0; i < parts; ++i) {
      args.handles[i] = handle;
      args.pitches[i] = 256;
      args.modifier[i] = modifier;
    }
    const int error = ioctl(kAddFb2, args);
    if (id) *id = args.fb_id;
    return error;
  };
  EXPECT_EQ(add(kRg24, kT, 1), EINVAL);
  EXPECT_EQ(add(kXr24, kSand128, 1), EINVAL);
  EXPECT_EQ(add(kXr24, kUif, 1), EINVAL);
  EXPECT_EQ(add(kNv12, kT, 2), EINVAL);
  EXPECT_EQ(add(kP030, 0, 2), EINVAL);
  EXPECT_EQ(add(kP030, kSand64, 2), EINVAL);
  uint32_t tiled, columns, narrow, high, ten;
  ASSERT_EQ(add(kXr24, kT, 1, &tiled), 0);
  ASSERT_EQ(add(kNv12, kSand128 | 96 << 8, 2, &columns), 0);
  ASSERT_EQ(add(kNv12, kSand64 | 96 << 8, 2, &narrow), 0);
  ASSERT_EQ(add(kNv12, kSand128 | uint64_t{1} << 24, 2, &high), 0);
  ASSERT_EQ(add(kP030, kSand128 | 96 << 8, 2, &ten), 0);
  drm::FbCmd2 got = {};
  got.fb_id = columns;
  ASSERT_EQ(ioctl(kGetFb2, got), 0);
  EXPECT_EQ(got.modifier[1], kSand128 | 96 << 8);
  const struct {
    uint32_t fb;
    int error;
  } kShown[] = {{tiled, EINVAL}, {narrow, EINVAL}, {high, EINVAL}, {columns, 0}, {ten, 0}};
  for (const auto& c : kShown) EXPECT_EQ(atomic(0, show(kOverlay, c.fb, 64, 64)), c.error) << &c - kShown;
  EXPECT_EQ(scanout().planes.back().modifier, kSand128 | 96 << 8);
}

TEST_F(DisplayTest, LegacyFramebuffers) {
  drm::FbCmd args = {0, 64, 64, 256, 32, 24, create_dumb(64, 64)};
  EXPECT_EQ(ioctl(kAddFb, args), 0);
  drm::FbCmd got = {};
  got.fb_id = args.fb_id;
  ASSERT_EQ(ioctl(kGetFb, got), 0);
  EXPECT_EQ(got.bpp, 32u);
  EXPECT_EQ(got.depth, 24u);
  EXPECT_EQ(got.pitch, 256u);
  EXPECT_NE(got.handle, 0u);
  args.depth = 23;
  EXPECT_EQ(ioctl(kAddFb, args), EINVAL);
}

TEST_F(DisplayTest, HandlesOfFramebuffersAreForTheMaster) {
  const uint32_t fb = add_fb();
  const Client other = open(), root = open(true, true);
  drm::FbCmd2 got = {};
  got.fb_id = fb;
  ASSERT_EQ(ioctl(other, kGetFb2, got), 0);
  EXPECT_EQ(got.handles[0], 0u);
  ASSERT_EQ(ioctl(root, kGetFb2, got), 0);
  EXPECT_NE(got.handles[0], 0u);
}

TEST_F(DisplayTest, FramebuffersBelongToTheirFile) {
  const Client other = open();
  uint32_t fb = add_fb();
  drm::FbId id = {fb};
  EXPECT_EQ(ioctl(other, kRmFb, id), ENOENT);
  drm::CloseFb close = {fb, 1};
  EXPECT_EQ(ioctl(kCloseFb, close), EINVAL);
  close.pad = 0;
  EXPECT_EQ(ioctl(other, kCloseFb, close), ENOENT);
  EXPECT_EQ(ioctl(kCloseFb, close), 0);
  EXPECT_EQ(ioctl(kRmFb, id), ENOENT);
  EXPECT_EQ(set_crtc(fb), ENOENT);
}

TEST_F(DisplayTest, SetCrtcShowsAFramebuffer) {
  EXPECT_TRUE(scanout().planes.empty());
  const uint32_t fb = add_fb();
  ASSERT_EQ(set_crtc(fb), 0);
  const kms::Scanout shown = scanout();
  EXPECT_TRUE(shown.active);
  EXPECT_EQ(shown.width, 1920u);
  EXPECT_EQ(shown.frame, 1u);
  ASSERT_EQ(shown.planes.size(), 1u);
  EXPECT_EQ(shown.planes[0].fourcc, kXr24);
  EXPECT_EQ(shown.planes[0].src_w, 1920u << 16);
  EXPECT_EQ(shown.planes[0].h, 1080u);
  EXPECT_EQ(shown.planes[0].parts[0].pitch, 7680u);
  drm::Crtc crtc = {};
  crtc.crtc_id = kCrtc;
  ASSERT_EQ(ioctl(kGetCrtc, crtc), 0);
  EXPECT_EQ(crtc.fb_id, fb);
  EXPECT_EQ(crtc.mode_valid, 1u);
  EXPECT_EQ(crtc.mode.hdisplay, 1920);
  EXPECT_EQ(set_crtc(0), 0);
  EXPECT_FALSE(scanout().active);
}

TEST_F(DisplayTest, WhatSetCrtcRefuses) {
  const uint32_t fb = add_fb(), small = add_fb(640, 480);
  const Client other = open();
  EXPECT_EQ(set_crtc(other, fb), EACCES);
  EXPECT_EQ(set_crtc(small), ENOSPC);
  EXPECT_EQ(set_crtc(99), ENOENT);
  ASSERT_EQ(set_crtc(0), 0);
  const uint64_t connectors = memory_.place(std::vector<uint32_t>{kConnector, kms::kSecondConnectorId}),
                 crtcs = memory_.place(kCrtc);
  const struct {
    int error;
    uint32_t crtc, fb, x, count, valid;
    uint64_t connectors;
  } kCases[] = {{ENOENT, kConnector, fb, 0, 1, 1, connectors},
                {ERANGE, kCrtc, fb, 1 << 16, 1, 1, connectors},
                {ENOSPC, kCrtc, fb, 1, 1, 1, connectors},
                {EINVAL, kCrtc, fb, 0, 0, 1, connectors},
                {EINVAL, kCrtc, fb, 0, 2, 1, connectors},
                {EINVAL, kCrtc, fb, 0, 1, 0, connectors},
                {EFAULT, kCrtc, fb, 0, 1, 1, 8},
                {ENOENT, kCrtc, fb, 0, 1, 1, crtcs},
                {EINVAL, kCrtc, ~0u, 0, 1, 1, connectors}};
  for (const auto& c : kCases) {
    drm::Crtc args = {c.connectors, c.count, c.crtc, c.fb, c.x, 0, 0, c.valid, kms::modes()[0]};
    EXPECT_EQ(ioctl(kSetCrtc, args), c.error) << &c - kCases;
  }
  drm::Crtc args = {connectors, 1, kCrtc, fb, 0, 0, 0, 1, kms::modes()[0]};
  args.mode.htotal = 100;
  EXPECT_EQ(ioctl(kSetCrtc, args), EINVAL);
}

TEST_F(DisplayTest, EachSocketHasACrtcOfItsOwn) {
  kernel_.display().plug(1, true, true);
  drm::Crtc args = {};
  args.crtc_id = kms::kSecondCrtcId;
  args.fb_id = add_fb();
  args.connector_ids = memory_.place(kConnector);
  args.count_connectors = 1;
  args.mode_valid = 1;
  args.mode = kms::modes()[1];
  EXPECT_EQ(ioctl(kSetCrtc, args), EINVAL);  // the other one's
  args.connector_ids = memory_.place(uint32_t{kms::kSecondConnectorId});
  ASSERT_EQ(ioctl(kSetCrtc, args), 0);
  ASSERT_EQ(set_crtc(add_fb()), 0);
  const kms::DisplayState state = kernel_.display().state();
  EXPECT_TRUE(state.is_lit(0));
  EXPECT_TRUE(state.is_lit(1));
  EXPECT_EQ(scanout().width, 1920u);  // of the first
  // A flip and its event are of that CRTC alone.
  drm::PageFlip flip_second = {kms::kSecondCrtcId, add_fb(), drm::kPageFlipEvent, 0, 9};
  ASSERT_EQ(ioctl(kPageFlip, flip_second), 0);
  EXPECT_EQ(read_event()->crtc_id, uint32_t{kms::kSecondCrtcId});
  ASSERT_EQ(set_crtc(0), 0);
  EXPECT_EQ(kernel_.display().state().connector(0).get(kms::kDpms), 3u);
  EXPECT_EQ(kernel_.display().state().connector(1).get(kms::kDpms), 0u);
  EXPECT_EQ(scanout().width, 1280u);
  // A plane of one CRTC is none of the other; overlays are everybody's.
  const uint32_t fb = add_fb(64, 64);
  drm::SetPlane plane = {kPlane, kms::kSecondCrtcId, fb, 0, 0, 0, 64, 64, 0, 0, 64 << 16, 64 << 16};
  EXPECT_EQ(ioctl(kSetPlane, plane), EINVAL);
  plane.plane_id = kOverlay;
  ASSERT_EQ(ioctl(kSetPlane, plane), 0);
  EXPECT_EQ(scanout().planes.size(), 2u);
}

TEST_F(DisplayTest, FlipsSendEvents) {
  const uint32_t first = add_fb(), second = add_fb();
  EXPECT_EQ(flip(second), EINVAL);  // not as the console's, of 16 bits
  ASSERT_EQ(set_crtc(0), 0);
  EXPECT_EQ(flip(second), EBUSY);  // nothing is shown
  ASSERT_EQ(set_crtc(first), 0);
  ASSERT_EQ(flip(second, drm::kPageFlipEvent, 42), 0);
  const auto event = read_event();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->base.type, drm::kEventFlipComplete);
  EXPECT_EQ(event->base.length, 32u);
  EXPECT_EQ(event->user_data, 42u);
  EXPECT_EQ(event->crtc_id, kCrtc);
  EXPECT_EQ(event->tv_sec, 1000u);
  EXPECT_FALSE(read_event());
  EXPECT_EQ(flip(first, 0), 0);
  EXPECT_FALSE(read_event());
  EXPECT_EQ(scanout().frame, 4u);
}

TEST_F(DisplayTest, WhatFlipsRefuse) {
  const uint32_t fb = add_fb();
  ASSERT_EQ(set_crtc(fb), 0);
  EXPECT_EQ(flip(99), ENOENT);
  EXPECT_EQ(flip(fb, 16), EINVAL);
  EXPECT_EQ(flip(fb, drm::kPageFlipTargetRelative), EINVAL);
  EXPECT_EQ(flip(add_fb(640, 480)), ENOSPC);
  EXPECT_EQ(flip(add_fb(1920, 1080, kAr24)), EINVAL);  // another format
  drm::PageFlip args = {kPlane, fb, 0, 0, 0};
  EXPECT_EQ(ioctl(kPageFlip, args), ENOENT);
  args = {kCrtc, fb, 0, 1, 0};
  EXPECT_EQ(ioctl(kPageFlip, args), EINVAL);  // a sequence without target
  EXPECT_FALSE(read_event());
}

TEST_F(DisplayTest, ThereIsRoomForSoManyEvents) {
  const uint32_t fb = add_fb();
  ASSERT_EQ(set_crtc(fb), 0);
  for (unsigned i = 0; i < kms::EventQueue::kMost; ++i) ASSERT_EQ(flip(fb), 0) << i;
  EXPECT_EQ(flip(fb), ENOMEM);
  ASSERT_TRUE(read_event());
  EXPECT_EQ(flip(fb), 0);
  EXPECT_EQ(flip(fb), ENOMEM);
  EXPECT_EQ(flip(fb, 0), 0);
}

TEST_F(DisplayTest, FlipsWaitForTheJobsThatDraw) {
  const uint32_t first = add_fb(), second = add_fb();
  ASSERT_EQ(set_crtc(first), 0);
  const auto fence = std::make_shared<Fence>("test", "test", new_fence_context(), 1);
  kernel_.display().find_fb(second)->parts[0].bo->reservation().add(fence, true);
  ASSERT_EQ(flip(second), 0);
  EXPECT_FALSE(read_event());
  EXPECT_EQ(flip(first), EBUSY);
  const int wakes = host_.display_wakes;
  fence->signal();
  EXPECT_GT(host_.display_wakes, wakes);  // the clock looks again
  EXPECT_EQ(kernel_.display().tick(), INT64_MAX);
  EXPECT_TRUE(read_event());
  EXPECT_EQ(flip(first), 0);
}

// What is on the screen is drawn on once it is off.
TEST_F(DisplayTest, FlipsWaitForThoseWhoLook) {
  const uint32_t first = add_fb(), second = add_fb();
  ASSERT_EQ(set_crtc(first), 0);
  int wakes;
  {
    const kms::Display::Look look(kernel_.display());
    ASSERT_EQ(flip(second), 0);
    EXPECT_FALSE(read_event());
    EXPECT_EQ(kernel_.display().tick(), now_ns_ + kms::Display::kLongestLook);
    EXPECT_EQ(flip(first), EBUSY);
    wakes = host_.display_wakes;
  }
  EXPECT_GT(host_.display_wakes, wakes);
  EXPECT_EQ(kernel_.display().tick(), INT64_MAX);
  EXPECT_TRUE(read_event());
}

TEST_F(DisplayTest, FlipsWaitForNobodyWhoBeginsToLookLater) {
  const uint32_t first = add_fb(), second = add_fb();
  ASSERT_EQ(set_crtc(first), 0);
  auto look = std::make_unique<kms::Display::Look>(kernel_.display());
  ASSERT_EQ(flip(second), 0);
  const kms::Display::Look later(kernel_.display());
  kernel_.display().tick();
  EXPECT_FALSE(read_event());
  look.reset();
  kernel_.display().tick();
  EXPECT_TRUE(read_event());
}

TEST_F(DisplayTest, FlipsWaitForNobodyWhoLooksForEver) {
  const uint32_t first = add_fb(), second = add_fb();
  ASSERT_EQ(set_crtc(first), 0);
  const kms::Display::Look look(kernel_.display());
  ASSERT_EQ(flip(second), 0);
  now_ns_ += kms::Display::kLongestLook - 1;
  kernel_.display().tick();
  EXPECT_FALSE(read_event());
  now_ns_ += 1;
  kernel_.display().tick();
  EXPECT_TRUE(read_event());
}

TEST_F(DisplayTest, RemovedFramebuffersAreNotShown) {
  const uint32_t fb = add_fb();
  ASSERT_EQ(set_crtc(fb), 0);
  drm::FbId id = {fb};
  ASSERT_EQ(ioctl(kRmFb, id), 0);
  EXPECT_TRUE(scanout().active);  // and black
  EXPECT_TRUE(scanout().planes.empty());
  // CLOSEFB leaves it there.
  const uint32_t other = add_fb();
  ASSERT_EQ(set_crtc(other), 0);
  drm::CloseFb close = {other, 0};
  ASSERT_EQ(ioctl(kCloseFb, close), 0);
  EXPECT_EQ(scanout().planes.size(), 1u);
  EXPECT_EQ(account_->used(Resource::kFramebuffers), 0u);
}

TEST_F(DisplayTest, MemoryStaysWhileItIsShown) {
  const uint32_t handle = create_dumb(1920, 1080);
  drm::FbCmd2 args = fb_request(handle, 1920, 1080);
  ASSERT_EQ(ioctl(kAddFb2, args), 0);
  ASSERT_EQ(set_crtc(args.fb_id), 0);
  drm::GemClose close = {handle, 0};
  ASSERT_EQ(ioctl(kGemClose, close), 0);
  ASSERT_EQ(scanout().planes.size(), 1u);
  EXPECT_GT(scanout().planes[0].parts[0].memory->backing().file->memfd.get(), 0);
  EXPECT_GT(account_->used(Resource::kBoBytes), 0u);
}

TEST_F(DisplayTest, NothingIsLeftOfAFileThatIsClosed) {
  {
    const Client viewer = open(true, true);
    ASSERT_EQ(set_crtc(add_fb()), 0);
    ASSERT_EQ(atomic(drm::kAtomicAllowModeset, light(add_fb())), 0);
    client_.file->release();
    client_ = {};
    EXPECT_TRUE(scanout().planes.empty());
    EXPECT_TRUE(scanout().active);  // somebody else has the node open
    for (const Resource r : {Resource::kFramebuffers, Resource::kBlobs, Resource::kBlobBytes, Resource::kBos,
                             Resource::kBoBytes})
      EXPECT_EQ(account_->used(r), 0u) << resource_row(r).name;
  }
  EXPECT_EQ(kernel_.display().state().primary(0).fb, kernel_.display().console());
  const Client next = open();
  EXPECT_TRUE(next.file->is_master);
}

TEST_F(DisplayTest, CursorsMoveAtOnce) {
  ASSERT_EQ(set_crtc(add_fb()), 0);
  const uint64_t before = scanout().frame;
  drm::Cursor args = {drm::kCursorBo | drm::kCursorMove, kCrtc, -3, 20, 64, 64, create_dumb(64, 64)};
  ASSERT_EQ(ioctl(kCursor, args), 0);
  kms::Scanout shown = scanout();
  ASSERT_EQ(shown.planes.size(), 2u);
  EXPECT_EQ(shown.planes[1].plane_id, kCursorPlane);
  EXPECT_EQ(shown.planes[1].fourcc, kAr24);
  EXPECT_EQ(shown.planes[1].x, -3);
  EXPECT_EQ(shown.frame, before + 1);
  args = {drm::kCursorMove, kCrtc, 5, 6, 0, 0, 0};
  ASSERT_EQ(ioctl(kCursor, args), 0);
  EXPECT_EQ(scanout().planes[1].x, 5);
  args = {drm::kCursorBo, kCrtc, 0, 0, 0, 0, 0};
  ASSERT_EQ(ioctl(kCursor, args), 0);
  EXPECT_EQ(scanout().planes.size(), 1u);
  const struct {
    int error;
    drm::Cursor args;
  } kCases[] = {{EINVAL, {0, kCrtc, 0, 0, 0, 0, 0}},
                {EINVAL, {4, kCrtc, 0, 0, 0, 0, 0}},
                {ENOENT, {drm::kCursorMove, kPlane, 0, 0, 0, 0, 0}},
                {ENOENT, {drm::kCursorBo, kCrtc, 0, 0, 64, 64, 99}},
                {EINVAL, {drm::kCursorBo, kCrtc, 0, 0, 1 << 30, 1, 1}}};
  for (const auto& c : kCases) {
    args = c.args;
    EXPECT_EQ(ioctl(kCursor, args), c.error) << &c - kCases;
  }
}

TEST_F(DisplayTest, SetPlane) {
  ASSERT_EQ(set_crtc(add_fb()), 0);
  const uint32_t fb = add_fb(320, 200);
  drm::SetPlane args = {kOverlay, kCrtc, fb, 0, 10, 20, 640, 400, 0, 0, 200 << 16, 320 << 16};
  const drm::SetPlane good = args;
  ASSERT_EQ(ioctl(kSetPlane, args), 0);
  const kms::Scanout shown = scanout();
  ASSERT_EQ(shown.planes.size(), 2u);
  EXPECT_EQ(shown.planes[1].plane_id, kOverlay);
  EXPECT_EQ(shown.planes[1].w, 640u);
  EXPECT_EQ(shown.planes[1].src_w, 320u << 16);
  const struct {
    int error;
    void (*change)(drm::SetPlane&);
  } kCases[] = {{ENOENT, [](auto& a) { a.plane_id = kCrtc; }},
                {ENOENT, [](auto& a) { a.fb_id = 99; }},
                {ENOENT, [](auto& a) { a.crtc_id = 99; }},
                {ERANGE, [](auto& a) { a.crtc_x = INT32_MAX; }},
                {ERANGE, [](auto& a) { a.crtc_w = 1u << 31; }},
                {ENOSPC, [](auto& a) { a.src_x = 1; }},
                {0, [](auto& a) { a.fb_id = 0; }}};
  for (const auto& c : kCases) {
    args = good;
    c.change(args);
    EXPECT_EQ(ioctl(kSetPlane, args), c.error) << &c - kCases;
  }
  EXPECT_EQ(scanout().planes.size(), 1u);
}

TEST_F(DisplayTest, GammaIsKept) {
  std::vector<uint16_t> ramp(256, 5);
  drm::CrtcLut args = {kCrtc, 256, memory_.place(ramp), memory_.place(ramp), memory_.place(ramp)};
  EXPECT_EQ(ioctl(kSetGamma, args), 0);
  const uint64_t blue = memory_.place(std::vector<uint16_t>(256));
  args.blue = blue;
  EXPECT_EQ(ioctl(kGetGamma, args), 0);
  EXPECT_EQ(memory_.at<uint16_t>(blue + 510), 5);
  args.gamma_size = 255;
  EXPECT_EQ(ioctl(kSetGamma, args), EINVAL);
  args = {kPlane, 256, 0, 0, 0};
  EXPECT_EQ(ioctl(kSetGamma, args), ENOENT);
  args.crtc_id = kCrtc;
  EXPECT_EQ(ioctl(kSetGamma, args), EFAULT);
}

TEST_F(DisplayTest, DirtyFramebuffers) {
  const uint32_t fb = add_fb();
  drm::FbDirty args = {99, 0, 0, 0, 0};
  EXPECT_EQ(ioctl(kDirtyFb, args), ENOENT);
  args = {fb, 0, 0, 1, 0};
  EXPECT_EQ(ioctl(kDirtyFb, args), EINVAL);
  args = {fb, 0, 0, 257, 8};
  EXPECT_EQ(ioctl(kDirtyFb, args), EINVAL);
  args = {fb, 0, 0, 1, 8};
  EXPECT_EQ(ioctl(kDirtyFb, args), EFAULT);
  args = {fb, 0, 0, 0, 0};
  EXPECT_EQ(ioctl(kDirtyFb, args), ENOSYS);  // as vc4, which needs none
}

TEST_F(DisplayTest, Blobs) {
  const Client other = open();
  const uint32_t blob = create_blob("abc", 3);
  drm::DestroyBlob destroy = {blob};
  EXPECT_EQ(ioctl(other, kDestroyBlob, destroy), EPERM);
  EXPECT_EQ(ioctl(kDestroyBlob, destroy), 0);
  EXPECT_EQ(ioctl(kDestroyBlob, destroy), ENOENT);
  destroy.blob_id = kms::kEdidBlobId;
  EXPECT_EQ(ioctl(kDestroyBlob, destroy), EPERM);
  drm::CreateBlob create = {8, 0, 0};
  EXPECT_EQ(ioctl(kCreateBlob, create), EINVAL);
  create.length = 1;
  EXPECT_EQ(ioctl(kCreateBlob, create), EFAULT);
  create.length = 1u << 31;
  EXPECT_EQ(ioctl(kCreateBlob, create), EINVAL);
  create.length = 1u << 30;
  EXPECT_EQ(ioctl(kCreateBlob, create), ENOMEM);
  EXPECT_EQ(account_->used(Resource::kBlobs), 0u);
}

class DisplayLimitsTest : public KmsTest {
 protected:
  DisplayLimitsTest() : KmsTest(0, limits()) {}
  static ResourceLimits limits() {
    ResourceLimits limits;
    limits[Resource::kFramebuffers].per_client = limits[Resource::kBlobs].per_client = 3;
    limits[Resource::kBlobBytes].per_client = 100;
    return limits;
  }
};

TEST_F(DisplayLimitsTest, WhoHasManyGetsNoMore) {
  const uint32_t handle = create_dumb(64, 64);
  drm::FbCmd2 fb = fb_request(handle, 64, 64);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(ioctl(kAddFb2, fb), 0);
  EXPECT_EQ(ioctl(kAddFb2, fb), ENOMEM);
  drm::FbId id = {fb.fb_id};
  ASSERT_EQ(ioctl(kRmFb, id), 0);
  EXPECT_EQ(ioctl(kAddFb2, fb), 0);

  drm::CreateBlob blob = {memory_.place(std::vector<uint8_t>(200)), 101, 0};
  EXPECT_EQ(ioctl(kCreateBlob, blob), ENOMEM);
  blob.length = 1;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(ioctl(kCreateBlob, blob), 0);
  EXPECT_EQ(ioctl(kCreateBlob, blob), ENOMEM);
}

}  // namespace
}  // namespace v3d::ioctl::test
