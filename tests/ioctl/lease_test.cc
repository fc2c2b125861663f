// Leases: Linux drm_lease.c.
#include "tests/ioctl/kms_fixture.h"

namespace v3d::ioctl::test {
namespace {

class LeaseTest : public KmsTest {
 protected:
  static constexpr uint32_t kCreateLease = 0xc01864c6, kListLessees = 0xc01064c7, kGetLease = 0xc01064c8,
                            kRevokeLease = 0xc00464c9, kGetResources = 0xc04064a0, kGetPlane = 0xc02064b6;

  int lend(const std::vector<uint32_t>& objects, drm::CreateLease* args, uint32_t flags = drm::kCloexec) {
    *args = {memory_.place(objects), static_cast<uint32_t>(objects.size()), flags, 0, -1};
    return ioctl(kCreateLease, *args);
  }
  int lend(const std::vector<uint32_t>& objects) {
    drm::CreateLease args;
    return lend(objects, &args);
  }
  /// The file that was lent last.
  Client lessee() {
    Client client = {host_.given.back(), {}};
    drm::SetClientCap cap = {drm::kClientCapAtomic, 1};
    EXPECT_EQ(ioctl(client, kSetClientCap, cap), 0);
    return client;
  }
  std::vector<uint32_t> list(const Client& client, uint32_t request) {
    drm::LeaseList args = {};
    EXPECT_EQ(ioctl(client, request, args), 0);
    args.ids = memory_.place(std::vector<uint32_t>(args.count));
    EXPECT_EQ(ioctl(client, request, args), 0);
    std::vector<uint32_t> ids;
    for (uint32_t i = 0; i < args.count; ++i) ids.push_back(memory_.at<uint32_t>(args.ids + 4 * i));
    return ids;
  }
  const std::vector<uint32_t> kAll = {kCrtc, kConnector, kPlane};
};

TEST_F(LeaseTest, ALesseeHasWhatItWasLentAndNothingElse) {
  drm::CreateLease lease;
  ASSERT_EQ(lend(kAll, &lease, drm::kCloexec | drm::kNonblock), 0);
  EXPECT_EQ(lease.lessee_id, 1u);
  EXPECT_TRUE(fds_.given_cloexec);
  EXPECT_EQ(fds_.given_offset, offsetof(drm::CreateLease, fd));
  EXPECT_EQ(host_.given_flags, static_cast<int>(drm::kNonblock));
  const Client other = lessee();
  EXPECT_EQ(list(client_, kListLessees), std::vector<uint32_t>{1});
  EXPECT_EQ(list(other, kGetLease), kAll);
  EXPECT_TRUE(list(other, kListLessees).empty());
  drm::CardResources resources = {};
  ASSERT_EQ(ioctl(other, kGetResources, resources), 0);
  EXPECT_EQ(resources.count_connectors, 1u);
  EXPECT_EQ(resources.count_crtcs, 1u);
  EXPECT_EQ(resources.count_encoders, 4u);
  drm::GetPlane plane = {};
  plane.plane_id = kOverlay;
  EXPECT_EQ(ioctl(other, kGetPlane, plane), ENOENT);
  plane.plane_id = kPlane;
  EXPECT_EQ(ioctl(other, kGetPlane, plane), 0);
  // It is a master of that, and its lessor stays one of all.
  drm::CreateDumb dumb = {1080, 1920, 32, 0, 0, 0, 0};
  ASSERT_EQ(ioctl(other, kCreateDumb, dumb), 0);
  drm::FbCmd2 fb = fb_request(dumb.handle, 1920, 1080);
  ASSERT_EQ(ioctl(other, kAddFb2, fb), 0);
  EXPECT_EQ(set_crtc(other, fb.fb_id), 0);
  EXPECT_EQ(set_crtc(add_fb()), 0);
  drm::Cursor cursor = {drm::kCursorMove, kCrtc, 1, 1, 0, 0, 0};
  EXPECT_EQ(ioctl(other, kCursor, cursor), EACCES);
  EXPECT_EQ(atomic(other, drm::kAtomicTestOnly, show(kOverlay, fb.fb_id, 64, 64)), ENOENT);
}

TEST_F(LeaseTest, WithoutItsCrtcNothingCanBeShown) {
  ASSERT_EQ(lend({}), 0);  // an empty one
  const Client other = lessee();
  EXPECT_EQ(set_crtc(other, add_fb()), ENOENT);
  drm::Encoder encoder = {};
  encoder.encoder_id = kms::kEncoderId;
  ASSERT_EQ(ioctl(other, kGetEncoder, encoder), 0);
  EXPECT_EQ(encoder.possible_crtcs, 0u);
  EXPECT_EQ(encoder.crtc_id, 0u);
  drm::WaitVblank wait = {};
  EXPECT_EQ(ioctl(other, kWaitVblank, wait), EINVAL);
}

TEST_F(LeaseTest, WhatIsRefused) {
  EXPECT_EQ(lend({kCrtc, kPlane}), EINVAL);      // no connector
  EXPECT_EQ(lend({kCrtc, kConnector}), EINVAL);  // no plane, of one who knows all
  EXPECT_EQ(lend({kCrtc, kConnector, 99}), ENOENT);
  EXPECT_EQ(lend({kCrtc, kConnector, kms::kEncoderId}), EINVAL);
  EXPECT_EQ(lend({kCrtc, kCrtc, kConnector, kPlane}), ENOSPC);
  drm::CreateLease args = {8, 3, 0, 0, -1};
  EXPECT_EQ(ioctl(kCreateLease, args), EFAULT);
  EXPECT_EQ(lend(kAll, &args, 1), EINVAL);
  ASSERT_EQ(lend(kAll), 0);
  EXPECT_EQ(lend(kAll), EBUSY);
  const Client other = lessee();
  args = {memory_.place(kAll), 3, 0, 0, -1};
  EXPECT_EQ(ioctl(other, kCreateLease, args), EINVAL);
  drm::LeaseList list = {0, 1, 0};
  EXPECT_EQ(ioctl(kListLessees, list), EINVAL);
  EXPECT_EQ(ioctl(kGetLease, list), EINVAL);
  drm::RevokeLease revoke = {7};
  EXPECT_EQ(ioctl(kRevokeLease, revoke), ENOENT);
  revoke = {1};
  EXPECT_EQ(ioctl(other, kRevokeLease, revoke), EACCES);
}

TEST_F(LeaseTest, OldClientsLendPlanesWithTheCrtc) {
  drm::SetClientCap cap = {drm::kClientCapAtomic, 0};
  ASSERT_EQ(ioctl(kSetClientCap, cap), 0);
  ASSERT_EQ(lend({kConnector, kCrtc}), 0);
  EXPECT_EQ(list(lessee(), kGetLease), (std::vector<uint32_t>{kCrtc, kConnector, kPlane, kCursorPlane}));
}

TEST_F(LeaseTest, LeasesEnd) {
  ASSERT_EQ(lend(kAll), 0);
  const Client other = lessee();
  drm::RevokeLease revoke = {1};
  ASSERT_EQ(ioctl(kRevokeLease, revoke), 0);
  EXPECT_TRUE(list(client_, kListLessees).empty());
  EXPECT_TRUE(list(other, kGetLease).empty());
  EXPECT_EQ(set_crtc(other, add_fb()), ENOENT);
  // With its file, of which nobody else knows.
  ASSERT_EQ(lend(kAll), 0);
  host_.given.back()->release();
  EXPECT_TRUE(list(client_, kListLessees).empty());
  // With its lessor.
  ASSERT_EQ(lend(kAll), 0);
  const Client last = lessee();
  client_.file->release();
  EXPECT_EQ(set_crtc(last, 0), EACCES);
}

TEST_F(LeaseTest, AnOwnerHasEverything) {
  const std::vector<uint32_t> all = list(client_, kGetLease);
  for (const uint32_t id : {uint32_t{kCrtc}, uint32_t{kms::kEncoderId}, uint32_t{kms::kEdid},
                            uint32_t{kms::kEdidBlobId}, uint32_t{kms::kConsoleFbId}, add_fb()})
    EXPECT_EQ(std::count(all.begin(), all.end(), id), id < kms::kFirstDynamicId) << id;
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
}

}  // namespace
}  // namespace v3d::ioctl::test
