// What of the display a board with the driver vc4 has, and its Linux: board-environment.md 4.2 and 4.3,
// vc4-abi.md 7.3.
#include "ioctl/display/display.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "ioctl/display/connector_files.h"
#include "ioctl/display/formats.h"
#include "ioctl/display/objects.h"
#include "tests/ioctl/vc4/vc4_fixture.h"

namespace v3d::ioctl::vc4::test {
namespace {

constexpr uint32_t kGetResources = 0xc04064a0, kGetPlane = 0xc02064b6, kGetPlaneResources = 0xc01064b5,
                   kObjGetProperties = 0xc02064b9, kSetClientCap = 0x4010640d, kGetConnector = 0xc05064a7,
                   kGetBlob = 0xc01064ac, kCreateBlob = 0xc01064bd, kAtomic = 0xc03864bc,
                   kGetProperty = 0xc04064aa, kCloseFb = 0xc00864d0, kSyncobjEventfd = 0xc01864cf;

class Vc4DisplayTest : public Vc4Test {
 protected:
  explicit Vc4DisplayTest(const char* kernel = "7.3") : Vc4Test(*find_abi(kernel)) {
    for (const uint64_t capability : {drm::kClientCapAtomic, drm::kClientCapWritebackConnectors}) {
      drm::SetClientCap cap = {capability, 1};
      EXPECT_EQ(ioctl(*card_, kSetClientCap, cap), 0);
    }
  }

  std::set<uint32_t> plane_formats() {
    drm::GetPlane plane = {};
    plane.plane_id = kms::kPrimaryPlaneId;
    EXPECT_EQ(ioctl(*card_, kGetPlane, plane), 0);
    plane.formats = memory_.place(std::vector<uint32_t>(plane.count_formats));
    EXPECT_EQ(ioctl(*card_, kGetPlane, plane), 0);
    std::set<uint32_t> formats;
    for (uint32_t i = 0; i < plane.count_formats; ++i)
      formats.insert(memory_.at<uint32_t>(plane.formats + i * sizeof(uint32_t)));
    return formats;
  }
  /// Of IN_FORMATS.
  uint32_t num_listed_formats() {
    drm::GetBlob args = {.blob_id = kms::kFormatsBlobId, .length = 0, .data = 0};
    EXPECT_EQ(ioctl(*card_, kGetBlob, args), 0);
    args.data = memory_.place(std::vector<uint8_t>(args.length));
    EXPECT_EQ(ioctl(*card_, kGetBlob, args), 0);
    return memory_.at<drm::FormatModifierBlob>(args.data).count_formats;
  }
  std::set<uint32_t> properties(uint32_t object) {
    drm::ObjectProperties args = {};
    args.object_id = object;
    EXPECT_EQ(ioctl(*card_, kObjGetProperties, args), 0);
    args.properties = memory_.place(std::vector<uint32_t>(args.count));
    args.values = memory_.place(std::vector<uint64_t>(args.count));
    EXPECT_EQ(ioctl(*card_, kObjGetProperties, args), 0);
    std::set<uint32_t> ids;
    for (uint32_t i = 0; i < args.count; ++i)
      ids.insert(memory_.at<uint32_t>(args.properties + i * sizeof(uint32_t)));
    return ids;
  }
  /// What an atomic test says of a mode like that of the console, at another clock.
  int test_clock(uint32_t khz) {
    drm::ModeInfo mode = kms::modes()[0];
    mode.clock = khz;
    drm::CreateBlob blob = {.data = memory_.place(mode), .length = sizeof mode, .blob_id = 0};
    EXPECT_EQ(ioctl(*card_, kCreateBlob, blob), 0);
    drm::Atomic args = {};
    args.flags = drm::kAtomicTestOnly | drm::kAtomicAllowModeset;
    args.count_objects = 1;
    args.objects = memory_.place(uint32_t{kms::kCrtcId});
    args.count_properties = memory_.place(uint32_t{1});
    args.properties = memory_.place(uint32_t{kms::kModeId});
    args.values = memory_.place(uint64_t{blob.blob_id});
    return ioctl(*card_, kAtomic, args);
  }

  const std::shared_ptr<File> card_ = open(kMinorVc4);
};

class Vc4DisplayOfLinux612 : public Vc4DisplayTest {
 protected:
  Vc4DisplayOfLinux612() : Vc4DisplayTest("6.12") {}
};
class Vc4DisplayOfLinux61 : public Vc4DisplayTest {
 protected:
  Vc4DisplayOfLinux61() : Vc4DisplayTest("6.1") {}
};

TEST_F(Vc4DisplayTest, OneSocketOneTransposerTwoIdleValves) {
  drm::CardResources all = {};
  ASSERT_EQ(ioctl(*card_, kGetResources, all), 0);
  EXPECT_EQ(all.count_connectors, 2u);
  EXPECT_EQ(all.count_encoders, 2u);
  EXPECT_EQ(all.count_crtcs, 4u);
  EXPECT_EQ(all.max_width, 2048u);
  EXPECT_EQ(all.max_height, 2048u);
  drm::PlaneResources planes = {};
  ASSERT_EQ(ioctl(*card_, kGetPlaneResources, planes), 0);
  EXPECT_EQ(planes.count_planes, kms::kNumOverlays + 2 * 4);
  drm::Connector second = {};
  second.connector_id = kms::kSecondConnectorId;
  EXPECT_EQ(ioctl(*card_, kGetConnector, second), ENOENT);
}

TEST_F(Vc4DisplayTest, NobodyPlugsInWhereNoSocketIs) {
  kms::Display& display = kernel_.display();
  std::string text;
  EXPECT_FALSE(kms::plug_monitor(display, "HDMI-A-2 on", true, &text));
  EXPECT_THAT(text, testing::HasSubstr("no connector HDMI-A-2; there are:\nHDMI-A-1"));
  EXPECT_EQ(kms::list_connectors(display), "HDMI-A-1 connected enabled\n");
  for (const char* file : {"HDMI-A-2/status", "Writeback-2/status"})
    EXPECT_FALSE(kms::read_connector_file(display, file, &text)) << file;
  EXPECT_TRUE(kms::read_connector_file(display, "Writeback-1/status", &text));
}

TEST_F(Vc4DisplayTest, PlanesTakeNoTenBits) {
  const std::set<uint32_t> formats = plane_formats();
  EXPECT_EQ(formats.size(), 30u);
  EXPECT_EQ(num_listed_formats(), 30u);
  for (const char* name : {"XR30", "AR30", "AB30", "XB30", "P030"}) {
    char text[5];
    std::strcpy(text, name);
    EXPECT_FALSE(formats.contains(kms::fourcc(text))) << name;
    EXPECT_EQ(kernel_.display().find_format(kms::fourcc(text)), nullptr) << name;
  }
}

TEST_F(Vc4DisplayTest, NoHdr) {
  EXPECT_FALSE(properties(kms::kConnectorId).contains(kms::kHdrMetadata));
  EXPECT_TRUE(properties(kms::kConnectorId).contains(kms::kColorspace));
}

// vc4_hdmi.c: max_bpc follows supports_hdr since the driver has left the property to
// drmm_connector_hdmi_init() (Linux 6.11); before that it was 8 to 12 of any socket.
TEST_F(Vc4DisplayTest, SocketsHave8Bits) {
  const std::set<uint32_t> all = properties(kms::kConnectorId);
  EXPECT_FALSE(all.contains(kms::kMaxBpc));
  ASSERT_TRUE(all.contains(kms::kMaxBpcOf8Bits));
  drm::GetProperty args = {};
  args.prop_id = kms::kMaxBpcOf8Bits;
  args.count_values = 2;
  args.values = memory_.place(std::vector<uint64_t>(2));
  ASSERT_EQ(ioctl(*card_, kGetProperty, args), 0);
  EXPECT_STREQ(args.name, "max bpc");
  EXPECT_EQ(memory_.at<uint64_t>(args.values), 8u);
  EXPECT_EQ(memory_.at<uint64_t>(args.values + sizeof(uint64_t)), 8u);
  EXPECT_EQ(kernel_.display().state().of(kms::kConnectorId).get(kms::kMaxBpcOf8Bits), 8u);
}

// vc4_hdmi.c: max_pixel_clock of bcm2835_variant.
TEST_F(Vc4DisplayTest, ClocksEndAt162MHz) {
  EXPECT_EQ(test_clock(162'000), 0);
  EXPECT_EQ(test_clock(162'001), EINVAL);
}

TEST_F(Vc4DisplayOfLinux61, AnySocketHas12Bits) {
  EXPECT_TRUE(properties(kms::kConnectorId).contains(kms::kMaxBpc));
  EXPECT_FALSE(properties(kms::kConnectorId).contains(kms::kMaxBpcOf8Bits));
}

TEST_F(Vc4DisplayOfLinux612, HasNoYuv444) {
  const std::set<uint32_t> formats = plane_formats();
  EXPECT_EQ(formats.size(), 28u);
  EXPECT_FALSE(formats.contains(kms::fourcc("YU24")));
  EXPECT_TRUE(formats.contains(kms::fourcc("RGB8")));
  EXPECT_TRUE(properties(kms::kPrimaryPlaneId).contains(kms::kZpos));
}

TEST_F(Vc4DisplayOfLinux61, HasFewFormatsAndNoZpos) {
  EXPECT_EQ(plane_formats().size(), 18u);
  EXPECT_EQ(num_listed_formats(), 18u);
  EXPECT_FALSE(properties(kms::kPrimaryPlaneId).contains(kms::kZpos));
  EXPECT_FALSE(properties(kms::kCursorPlaneId).contains(kms::kMovableZpos));
}

TEST_F(Vc4DisplayOfLinux61, KnowsNothingOfLaterYears) {
  std::vector<uint8_t> close_fb(8), eventfd(24);
  EXPECT_EQ(raw_ioctl(*card_, kCloseFb, &close_fb), EINVAL);
  EXPECT_EQ(raw_ioctl(*card_, kSyncobjEventfd, &eventfd), EINVAL);
  drm::GetCap cap = {.capability = drm::kCapAtomicAsyncPageFlip, .value = 0};
  EXPECT_EQ(ioctl(*card_, kGetCap, cap), EINVAL);
  drm::SetClientCap hotspot = {drm::kClientCapCursorPlaneHotspot, 1};
  EXPECT_EQ(ioctl(*card_, kSetClientCap, hotspot), EINVAL);
}

}  // namespace
}  // namespace v3d::ioctl::vc4::test
