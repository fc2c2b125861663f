// What the vc4 node says of its display: drm-abi.md 7.6.
#include <bit>
#include <cerrno>
#include <map>
#include <numeric>
#include <set>

#include "ioctl/display/connector_files.h"
#include "ioctl/display/edid.h"
#include "ioctl/display/formats.h"
#include "tests/ioctl/fixture.h"

namespace v3d::ioctl::test {
namespace {

using kms::make_edid;

constexpr uint32_t kGetResources = 0xc04064a0, kGetConnector = 0xc05064a7, kGetProperty = 0xc04064aa,
                   kGetBlob = 0xc01064ac, kGetPlaneResources = 0xc01064b5, kGetPlane = 0xc02064b6,
                   kObjGetProperties = 0xc02064b9, kSetClientCap = 0x4010640d;

class Vc4ModeTest : public IoctlTest {
 protected:
  struct Property {
    uint32_t id, flags;
    uint64_t value;
    std::vector<uint64_t> values;
    std::map<std::string, uint64_t> enums;
  };
  using Properties = std::map<std::string, Property>;

  void set_cap(uint64_t capability, uint64_t value) {
    drm::SetClientCap args = {capability, value};
    ASSERT_EQ(ioctl(*vc4_, kSetClientCap, args), 0);
  }
  /// As libdrm does: lengths first.
  Property describe(uint32_t id, uint64_t value, std::string* name) {
    drm::GetProperty args = {};
    args.prop_id = id;
    EXPECT_EQ(ioctl(*vc4_, kGetProperty, args), 0);
    args.values = memory_.place(std::vector<uint64_t>(args.count_values));
    args.enum_blobs = memory_.place(std::vector<drm::PropertyEnum>(args.count_enum_blobs));
    EXPECT_EQ(ioctl(*vc4_, kGetProperty, args), 0);
    Property property = {id, args.flags, value, {}, {}};
    for (uint32_t i = 0; i < args.count_values; ++i)
      property.values.push_back(memory_.at<uint64_t>(args.values + i * 8));
    for (uint32_t i = 0; i < args.count_enum_blobs; ++i) {
      const auto entry = memory_.at<drm::PropertyEnum>(args.enum_blobs + i * sizeof(drm::PropertyEnum));
      property.enums[entry.name] = entry.value;
    }
    *name = args.name;
    return property;
  }
  Properties properties(uint32_t object, uint32_t type) {
    drm::ObjectProperties args = {};
    args.object_id = object;
    args.object_type = type;
    EXPECT_EQ(ioctl(*vc4_, kObjGetProperties, args), 0);
    args.properties = memory_.place(std::vector<uint32_t>(args.count));
    args.values = memory_.place(std::vector<uint64_t>(args.count));
    EXPECT_EQ(ioctl(*vc4_, kObjGetProperties, args), 0);
    Properties all;
    for (uint32_t i = 0; i < args.count; ++i) {
      std::string name;
      const Property property = describe(memory_.at<uint32_t>(args.properties + i * 4),
                                         memory_.at<uint64_t>(args.values + i * 8), &name);
      EXPECT_TRUE(all.emplace(name, property).second) << name;
    }
    return all;
  }
  std::vector<uint8_t> blob(uint64_t id) {
    drm::GetBlob args = {.blob_id = static_cast<uint32_t>(id), .length = 0, .data = 0};
    EXPECT_EQ(ioctl(*vc4_, kGetBlob, args), 0);
    args.data = memory_.place(std::vector<uint8_t>(args.length));
    EXPECT_EQ(ioctl(*vc4_, kGetBlob, args), 0);
    std::vector<uint8_t> bytes;
    for (uint32_t i = 0; i < args.length; ++i) bytes.push_back(memory_.at<uint8_t>(args.data + i));
    return bytes;
  }
  static std::set<std::string> names(const Properties& properties) {
    std::set<std::string> names;
    for (const auto& [name, property] : properties) names.insert(name);
    return names;
  }

  const std::shared_ptr<File> vc4_ = open(kMinorVc4);
  static constexpr uint32_t kCrtc = 32, kEncoder = 33, kConnector = 34, kPlane = 35;
};

TEST_F(Vc4ModeTest, ConnectorHasWhatDriversLookFor) {
  set_cap(drm::kClientCapAtomic, 1);
  const Properties all = properties(kConnector, drm::kObjectConnector);
  EXPECT_EQ(names(all),
            (std::set<std::string>{"EDID", "DPMS", "link-status", "non-desktop", "TILE", "CRTC_ID", "max bpc",
                                   "HDR_OUTPUT_METADATA", "Colorspace", "left margin", "right margin",
                                   "top margin", "bottom margin", "Broadcast RGB", "vrr_capable"}));
  const Property &dpms = all.at("DPMS"), &crtc = all.at("CRTC_ID"), &hdr = all.at("HDR_OUTPUT_METADATA"),
                 &space = all.at("Colorspace"), &vrr = all.at("vrr_capable");
  EXPECT_EQ(dpms.flags, uint32_t{drm::kPropertyEnum});
  EXPECT_EQ(dpms.enums,
            (std::map<std::string, uint64_t>{{"On", 0}, {"Standby", 1}, {"Suspend", 2}, {"Off", 3}}));
  EXPECT_EQ(crtc.flags, drm::kPropertyObject | drm::kPropertyAtomic);
  EXPECT_EQ(crtc.values, std::vector<uint64_t>{drm::kObjectCrtc});
  EXPECT_EQ(crtc.value, kCrtc);  // lit by the console
  EXPECT_EQ(hdr.flags, uint32_t{drm::kPropertyBlob});
  EXPECT_EQ(all.at("max bpc").values, (std::vector<uint64_t>{8, 12}));
  EXPECT_EQ(all.at("max bpc").value, 12u);
  EXPECT_EQ(space.enums.at("Default"), 0u);
  EXPECT_EQ(space.enums.at("BT2020_RGB"), 9u);
  EXPECT_EQ(space.values.size(), space.enums.size());
  EXPECT_EQ(vrr.flags, drm::kPropertyRange | drm::kPropertyImmutable);
  EXPECT_EQ(vrr.values, (std::vector<uint64_t>{0, 1}));
  EXPECT_EQ(vrr.value, 0u);
}

TEST_F(Vc4ModeTest, AtomicPropertiesAreForAtomicClients) {
  EXPECT_FALSE(names(properties(kConnector, drm::kObjectAny)).contains("CRTC_ID"));
  EXPECT_EQ(names(properties(kCrtc, drm::kObjectCrtc)), (std::set<std::string>{"VRR_ENABLED", "CTM"}));
  set_cap(drm::kClientCapAtomic, 1);
  EXPECT_TRUE(names(properties(kConnector, drm::kObjectAny)).contains("CRTC_ID"));
  EXPECT_EQ(names(properties(kCrtc, drm::kObjectCrtc)),
            (std::set<std::string>{"ACTIVE", "MODE_ID", "OUT_FENCE_PTR", "VRR_ENABLED", "CTM"}));
}

TEST_F(Vc4ModeTest, GetConnectorListsThemToo) {
  drm::Connector args = {};
  args.connector_id = kConnector;
  ASSERT_EQ(ioctl(*vc4_, kGetConnector, args), 0);
  EXPECT_EQ(args.count_modes, 5u);
  EXPECT_EQ(args.count_properties, 14u);  // without CRTC_ID
  args.modes = memory_.place(std::vector<drm::ModeInfo>(5));
  args.encoder_ids = memory_.place(uint32_t{0});
  args.property_ids = memory_.place(std::vector<uint32_t>(14));
  args.property_values = memory_.place(std::vector<uint64_t>(14));
  args.count_properties = 2;  // as many as asked for, and how many there are
  ASSERT_EQ(ioctl(*vc4_, kGetConnector, args), 0);
  EXPECT_EQ(args.count_properties, 14u);
  EXPECT_NE(memory_.at<uint32_t>(args.property_ids + 4), 0u);
  EXPECT_EQ(memory_.at<uint32_t>(args.property_ids + 8), 0u);
  args.property_values = 16;
  EXPECT_EQ(ioctl(*vc4_, kGetConnector, args), EFAULT);
  args.connector_id = kCrtc;
  EXPECT_EQ(ioctl(*vc4_, kGetConnector, args), ENOENT);
}

TEST_F(Vc4ModeTest, TheSecondSocketIsEmptyUntilAMonitorIsPluggedIn) {
  constexpr uint32_t kSecond = kms::kSecondConnectorId, kGetEncoder = 0xc01464a6;
  drm::CardResources resources = {};
  ASSERT_EQ(ioctl(*vc4_, kGetResources, resources), 0);
  EXPECT_EQ(resources.count_connectors, 2u);
  EXPECT_EQ(resources.count_encoders, 4u);
  const auto look = [&](uint32_t id) {
    drm::Connector args = {};
    args.connector_id = id;
    EXPECT_EQ(ioctl(*vc4_, kGetConnector, args), 0);
    return args;
  };
  const auto edid = [&](uint32_t id) { return properties(id, drm::kObjectConnector).at("EDID").value; };
  drm::Connector second = look(kSecond);
  EXPECT_EQ(second.connection, 2u);
  EXPECT_EQ(second.count_modes, 0u);
  EXPECT_EQ(second.encoder_id, 0u);
  EXPECT_EQ(second.mm_width, 0u);
  EXPECT_EQ(second.connector_type_id, 2u);
  EXPECT_EQ(edid(kSecond), 0u);
  drm::Encoder encoder = {};
  encoder.encoder_id = kms::kSecondEncoderId;
  ASSERT_EQ(ioctl(*vc4_, kGetEncoder, encoder), 0);
  EXPECT_EQ(encoder.crtc_id, 0u);
  EXPECT_EQ(encoder.possible_clones, 2u);

  kms::Display& display = kernel_.display();
  display.plug(1, true, true);
  second = look(kSecond);
  EXPECT_EQ(second.connection, 1u);
  EXPECT_EQ(second.count_modes, 5u);
  EXPECT_EQ(blob(edid(kSecond)), blob(edid(kConnector)));
  // Pulled out of the first: who is master has to see to it; without one the console goes to the other.
  display.plug(0, false, true);
  EXPECT_EQ(look(kConnector).connection, 2u);
  EXPECT_NE(look(kConnector).encoder_id, 0u);
  display.plug(1, false, false);
  EXPECT_EQ(look(kConnector).encoder_id, 0u);
  display.plug(1, true, false);
  EXPECT_EQ(look(kSecond).encoder_id, uint32_t{kms::kSecondEncoderId});
}

TEST_F(Vc4ModeTest, SysfsSaysOfConnectorsWhatIoctlsSay) {
  kms::Display& display = kernel_.display();
  const auto read = [&](const char* name) {
    std::string text;
    EXPECT_TRUE(kms::read_connector_file(display, name, &text)) << name;
    return text;
  };
  EXPECT_EQ(read("HDMI-A-1/status"), "connected\n");
  EXPECT_EQ(read("HDMI-A-1/enabled"), "enabled\n");
  EXPECT_EQ(read("HDMI-A-1/dpms"), "On\n");
  EXPECT_EQ(read("HDMI-A-1/modes"), "1920x1080\n1280x720\n1024x768\n800x600\n640x480\n");
  const std::vector<uint8_t> edid = blob(properties(kConnector, 0).at("EDID").value);
  EXPECT_EQ(read("HDMI-A-1/edid"), std::string(edid.begin(), edid.end()));
  EXPECT_EQ(read("HDMI-A-2/status"), "disconnected\n");
  EXPECT_EQ(read("Writeback-2/status"), "unknown\n");
  EXPECT_EQ(read("Writeback-2/enabled"), "disabled\n");
  EXPECT_EQ(read("Writeback-2/modes"), "");
  for (const char* empty : {"HDMI-A-2/modes", "HDMI-A-2/edid"}) EXPECT_EQ(read(empty), "") << empty;
  std::string text;
  EXPECT_TRUE(kms::plug_monitor(display, "HDMI-A-2 on", true, &text));
  EXPECT_EQ(read("HDMI-A-2/status"), "connected\n");
  EXPECT_EQ(read("HDMI-A-2/enabled"), "disabled\n");
  EXPECT_EQ(kms::list_connectors(display), "HDMI-A-1 connected enabled\nHDMI-A-2 connected disabled\n");
  for (const char* bad : {"", "HDMI-A-2", "HDMI-A-2 ", "HDMI-A-3 on", "HDMI-A-2 on ", "Writeback-1 on"})
    EXPECT_FALSE(kms::plug_monitor(display, bad, true, &text)) << bad;
  for (const char* bad : {"", "status", "HDMI-A-2/", "HDMI-A-1/ddc", "DSI-1/status"})
    EXPECT_FALSE(kms::read_connector_file(display, bad, &text)) << bad;
}

TEST_F(Vc4ModeTest, PlanesNeedTheCapability) {
  constexpr uint32_t kNumCrtcs = 4, kNumPlanes = kms::kNumOverlays + 2 * kNumCrtcs;
  drm::PlaneResources planes = {};
  ASSERT_EQ(ioctl(*vc4_, kGetPlaneResources, planes), 0);
  EXPECT_EQ(planes.count_planes, kms::kNumOverlays);
  set_cap(drm::kClientCapUniversalPlanes, 1);
  planes.plane_ids = memory_.place(std::vector<uint32_t>(kNumPlanes));
  planes.count_planes = kNumPlanes;
  ASSERT_EQ(ioctl(*vc4_, kGetPlaneResources, planes), 0);
  ASSERT_EQ(planes.count_planes, kNumPlanes);
  const auto num_formats = static_cast<uint32_t>(kms::formats().size());
  std::map<uint64_t, std::multiset<uint32_t>> crtcs;  // by type
  for (uint32_t i = 0; i < kNumPlanes; ++i) {
    drm::GetPlane plane = {};
    plane.plane_id = memory_.at<uint32_t>(planes.plane_ids + i * 4);
    ASSERT_EQ(ioctl(*vc4_, kGetPlane, plane), 0);
    ASSERT_EQ(plane.count_formats, num_formats);
    plane.formats = memory_.place(std::vector<uint32_t>(num_formats));
    ASSERT_EQ(ioctl(*vc4_, kGetPlane, plane), 0);
    EXPECT_EQ(memory_.at<uint32_t>(plane.formats), 0x34325258u);  // XR24
    crtcs[properties(plane.plane_id, drm::kObjectPlane).at("type").value].insert(plane.possible_crtcs);
  }
  EXPECT_EQ(crtcs[0].count(15), 16u);
  EXPECT_EQ(crtcs[1], (std::multiset<uint32_t>{1, 2, 4, 8}));
  EXPECT_EQ(crtcs[2], (std::multiset<uint32_t>{1, 2, 4, 8}));
}

TEST_F(Vc4ModeTest, WritebackConnectorsNeedTheCapability) {
  const auto num_connectors = [&] {
    drm::CardResources resources = {};
    EXPECT_EQ(ioctl(*vc4_, kGetResources, resources), 0);
    EXPECT_EQ(resources.count_crtcs, 4u);
    return resources.count_connectors;
  };
  EXPECT_EQ(num_connectors(), 2u);
  set_cap(drm::kClientCapAtomic, 1);
  EXPECT_EQ(num_connectors(), 2u);
  set_cap(drm::kClientCapWritebackConnectors, 1);
  EXPECT_EQ(num_connectors(), 4u);
  const uint32_t id = kms::kPipes[3].connector;
  drm::Connector connector = {};
  connector.connector_id = id;
  ASSERT_EQ(ioctl(*vc4_, kGetConnector, connector), 0);
  EXPECT_EQ(connector.connector_type, 18u);
  EXPECT_EQ(connector.connector_type_id, 2u);
  EXPECT_EQ(connector.connection, 1u);
  const Properties all = properties(id, drm::kObjectConnector);
  EXPECT_EQ(names(all),
            (std::set<std::string>{"DPMS", "link-status", "non-desktop", "TILE", "CRTC_ID", "WRITEBACK_FB_ID",
                                   "WRITEBACK_OUT_FENCE_PTR", "WRITEBACK_PIXEL_FORMATS"}));
  EXPECT_EQ(blob(all.at("WRITEBACK_PIXEL_FORMATS").value).size(), 40u);
  drm::Encoder encoder = {};
  encoder.encoder_id = kms::kPipes[3].encoder;
  ASSERT_EQ(ioctl(*vc4_, 0xc01464a6, encoder), 0);
  EXPECT_EQ(encoder.encoder_type, 5u);
  EXPECT_EQ(encoder.possible_crtcs, 8u);
  set_cap(drm::kClientCapWritebackConnectors, 0);
  EXPECT_EQ(num_connectors(), 2u);
}

TEST_F(Vc4ModeTest, PlaneProperties) {
  set_cap(drm::kClientCapAtomic, 1);  // implies universal planes
  const Properties all = properties(kPlane, drm::kObjectPlane);
  for (const char* name : {"FB_ID", "CRTC_ID", "CRTC_X", "CRTC_Y", "CRTC_W", "CRTC_H", "SRC_X", "SRC_Y",
                           "SRC_W", "SRC_H", "IN_FENCE_FD"})
    EXPECT_TRUE(all.at(name).flags & drm::kPropertyAtomic) << name;
  EXPECT_EQ(all.at("IN_FENCE_FD").value, ~uint64_t{0});
  EXPECT_EQ(all.at("CRTC_X").values, (std::vector<uint64_t>{0xffffffff80000000, 0x7fffffff}));
  EXPECT_EQ(all.at("rotation").flags, uint32_t{drm::kPropertyBitmask});
  const std::vector<uint8_t> formats = blob(all.at("IN_FORMATS").value);
  drm::FormatModifierBlob header;
  ASSERT_GE(formats.size(), sizeof header);
  std::memcpy(&header, formats.data(), sizeof header);
  EXPECT_EQ(header.version, 1u);
  EXPECT_EQ(header.count_formats, kms::formats().size());
  ASSERT_EQ(header.modifiers_offset + header.count_modifiers * sizeof(drm::FormatModifier), formats.size());
  std::map<uint64_t, int> counts;  // of formats, by modifier
  for (uint32_t i = 0; i < header.count_modifiers; ++i) {
    drm::FormatModifier modifier;
    std::memcpy(&modifier, &formats[header.modifiers_offset + i * sizeof modifier], sizeof modifier);
    counts[modifier.modifier] = std::popcount(modifier.formats);
  }
  constexpr uint64_t kBroadcom = uint64_t{7} << 56;
  EXPECT_EQ(counts,
            (std::map<uint64_t, int>{
                {0, 34}, {kBroadcom | 1, 8}, {kBroadcom | 3, 2}, {kBroadcom | 4, 3}, {kBroadcom | 5, 2}}));
}

TEST_F(Vc4ModeTest, UnknownIds) {
  drm::GetProperty property = {};
  for (const uint32_t id : {0u, kConnector, 99u, 199u, ~0u}) {
    property.prop_id = id;
    EXPECT_EQ(ioctl(*vc4_, kGetProperty, property), ENOENT) << id;
  }
  drm::GetBlob get_blob = {};
  for (const uint32_t id : {0u, kConnector, 100u}) {
    get_blob.blob_id = id;
    EXPECT_EQ(ioctl(*vc4_, kGetBlob, get_blob), ENOENT) << id;
  }
  drm::GetPlane plane = {};
  plane.plane_id = kCrtc;
  EXPECT_EQ(ioctl(*vc4_, kGetPlane, plane), ENOENT);
  const auto ask = [&](uint32_t id, uint32_t type) {
    drm::ObjectProperties args = {};
    args.object_id = id;
    args.object_type = type;
    return ioctl(*vc4_, kObjGetProperties, args);
  };
  EXPECT_EQ(ask(99, drm::kObjectAny), ENOENT);
  EXPECT_EQ(ask(kConnector, drm::kObjectCrtc), ENOENT);
  EXPECT_EQ(ask(kEncoder, drm::kObjectEncoder), EINVAL);  // cannot have any
  EXPECT_EQ(ask(100, drm::kObjectAny), EINVAL);
  EXPECT_EQ(ask(kCrtc, drm::kObjectAny), 0);
}

TEST_F(Vc4ModeTest, BadPointers) {
  set_cap(drm::kClientCapAtomic, 1);
  drm::GetProperty property = {};
  property.prop_id = properties(kConnector, 0).at("DPMS").id;
  property.count_values = 4;
  EXPECT_EQ(ioctl(*vc4_, kGetProperty, property), EFAULT);
  property.count_values = 0;
  property.count_enum_blobs = 1;
  EXPECT_EQ(ioctl(*vc4_, kGetProperty, property), EFAULT);
  drm::GetBlob get_blob = {};
  get_blob.blob_id = static_cast<uint32_t>(properties(kConnector, 0).at("EDID").value);
  get_blob.length = 128;  // not its length: nothing is copied
  get_blob.data = 16;
  EXPECT_EQ(ioctl(*vc4_, kGetBlob, get_blob), 0);
  EXPECT_EQ(get_blob.length, 256u);
  EXPECT_EQ(ioctl(*vc4_, kGetBlob, get_blob), EFAULT);
}

TEST_F(Vc4ModeTest, EdidDescribesTheMode) {
  const std::vector<uint8_t> edid = blob(properties(kConnector, 0).at("EDID").value);
  ASSERT_EQ(edid.size(), 256u);
  EXPECT_TRUE(std::equal(edid.begin(), edid.begin() + 8,
                         std::begin({0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00})));
  for (const int block : {0, 128})
    EXPECT_EQ(std::accumulate(edid.begin() + block, edid.begin() + block + 128, 0) & 0xff, 0) << block;
  EXPECT_EQ(edid[126], 1);  // one extension
  EXPECT_EQ(edid[128], 2);  // CTA
  // The detailed timing, read back.
  const uint8_t* t = &edid[54];
  drm::Connector connector = {};
  connector.connector_id = kConnector;
  connector.count_modes = 5;
  connector.modes = memory_.place(std::vector<drm::ModeInfo>(5));
  connector.encoder_ids = memory_.place(uint32_t{0});
  ASSERT_EQ(ioctl(*vc4_, kGetConnector, connector), 0);
  const auto mode = memory_.at<drm::ModeInfo>(connector.modes);
  EXPECT_EQ((t[0] | t[1] << 8) * 10u, mode.clock);
  EXPECT_EQ(t[2] | (t[4] & 0xf0) << 4, mode.hdisplay);
  EXPECT_EQ(t[3] | (t[4] & 15) << 8, mode.htotal - mode.hdisplay);
  EXPECT_EQ(t[5] | (t[7] & 0xf0) << 4, mode.vdisplay);
  EXPECT_EQ(t[6] | (t[7] & 15) << 8, mode.vtotal - mode.vdisplay);
  EXPECT_EQ(t[8] | (t[11] & 0xc0) << 2, mode.hsync_start - mode.hdisplay);
  EXPECT_EQ(t[9] | (t[11] & 0x30) << 4, mode.hsync_end - mode.hsync_start);
  EXPECT_EQ(t[10] >> 4 | (t[11] & 0xc) << 2, mode.vsync_start - mode.vdisplay);
  EXPECT_EQ((t[10] & 15) | (t[11] & 3) << 4, mode.vsync_end - mode.vsync_start);
  EXPECT_EQ(t[12] | (t[14] & 0xf0) << 4, static_cast<int>(connector.mm_width));
  EXPECT_EQ(t[13] | (t[14] & 15) << 8, static_cast<int>(connector.mm_height));
  EXPECT_EQ(std::string(&edid[77], &edid[83]), "v3demu");
}

TEST_F(Vc4ModeTest, V3dHasNone) {
  const auto primary = open(kMinorV3d);
  for (const uint32_t request :
       {kGetResources, kGetProperty, kGetBlob, kGetPlaneResources, kGetPlane, kObjGetProperties}) {
    std::vector<uint8_t> arg(drm::request_size(request));
    EXPECT_EQ(raw_ioctl(*primary, request, &arg), EOPNOTSUPP);
    EXPECT_EQ(raw_ioctl(*file_, request, &(arg = std::vector<uint8_t>(drm::request_size(request)))), EACCES);
  }
}

TEST(Edid, LettersOfTheManufacturer) {
  drm::ModeInfo mode = {};
  mode.htotal = mode.vtotal = 1;
  const auto edid = make_edid({"ABC", 0x1234, "a name that is too long", 100, 50, {1, 2, 3}, {4, 5}}, mode);
  EXPECT_EQ(edid[8] << 8 | edid[9], 1 << 10 | 2 << 5 | 3);
  EXPECT_EQ(edid[10] | edid[11] << 8, 0x1234);
  EXPECT_EQ(std::string(&edid[77], &edid[90]), "a name that i");
}

}  // namespace
}  // namespace v3d::ioctl::test
