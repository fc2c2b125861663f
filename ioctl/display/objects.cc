#include "ioctl/display/objects.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ioctl/display/edid.h"
#include "ioctl/display/formats.h"
#include "ioctl/display/modifiers.h"

namespace v3d::ioctl::kms {

namespace {

constexpr uint32_t kPositive = 5, kNegative = 10;  // PHSYNC | PVSYNC, NHSYNC | NVSYNC
constexpr uint32_t kDriver = 0x40, kPreferred = 8;

/// CEA-861 formats 16, 4 and 1, and VESA DMT 16 (1024x768) and 9 (800x600), all of 60 Hz.
constexpr drm::ModeInfo kModes[] = {
    {148500, 1920, 2008, 2052, 2200, 0, 1080, 1084, 1089, 1125, 0, 60, kPositive, kDriver | kPreferred,
     "1920x1080"},
    {74250, 1280, 1390, 1430, 1650, 0, 720, 725, 730, 750, 0, 60, kPositive, kDriver, "1280x720"},
    {65000, 1024, 1048, 1184, 1344, 0, 768, 771, 777, 806, 0, 60, kNegative, kDriver, "1024x768"},
    {40000, 800, 840, 968, 1056, 0, 600, 601, 605, 628, 0, 60, kPositive, kDriver, "800x600"},
    {25175, 640, 656, 752, 800, 0, 480, 490, 492, 525, 0, 60, kNegative, kDriver, "640x480"},
};

/// The formats of CEA-861 among the modes, the native one first; those of DMT are established timings I and
/// II of E-EDID 1.4, 3.8: 640x480 and 800x600, 1024x768.
constexpr Monitor kMonitor = {"VDE", 0x3d71, "v3demu", kMmWidth, kMmHeight, {16, 4, 1}, {0x21, 0x08}};

constexpr EnumValue kDpmsModes[] = {{0, "On"}, {1, "Standby"}, {2, "Suspend"}, {3, "Off"}};
constexpr EnumValue kLinkStates[] = {{0, "Good"}, {1, "Bad"}};
constexpr EnumValue kColorspaces[] = {{0, "Default"},
                                      {1, "SMPTE_170M_YCC"},
                                      {2, "BT709_YCC"},
                                      {3, "XVYCC_601"},
                                      {4, "XVYCC_709"},
                                      {5, "SYCC_601"},
                                      {6, "opYCC_601"},
                                      {7, "opRGB"},
                                      {8, "BT2020_CYCC"},
                                      {9, "BT2020_RGB"},
                                      {10, "BT2020_YCC"},
                                      {11, "DCI-P3_RGB_D65"},
                                      {12, "DCI-P3_RGB_Theater"}};
constexpr EnumValue kRgbRanges[] = {{0, "Automatic"}, {1, "Full"}, {2, "Limited 16:235"}};
constexpr EnumValue kPlaneType[] = {{0, "Overlay"}, {1, "Primary"}, {2, "Cursor"}};
constexpr EnumValue kBlendMode[] = {{2, "None"}, {0, "Pre-multiplied"}, {1, "Coverage"}};
constexpr EnumValue kRotations[] = {{0, "rotate-0"}, {2, "rotate-180"}, {4, "reflect-x"}, {5, "reflect-y"}};
constexpr EnumValue kColorEncodings[] = {
    {0, "ITU-R BT.601 YCbCr"}, {1, "ITU-R BT.709 YCbCr"}, {2, "ITU-R BT.2020 YCbCr"}};
constexpr EnumValue kColorRanges[] = {{0, "YCbCr limited range"}, {1, "YCbCr full range"}};

/// vc4_txp.c, drm_fmts. No plane takes the last four, so that the kernel makes no framebuffers of them.
constexpr uint32_t kWritebackFourccs[] = {fourcc("RG24"), fourcc("BG24"), fourcc("XR24"), fourcc("XB24"),
                                          fourcc("AR24"), fourcc("AB24"), fourcc("RX24"), fourcc("BX24"),
                                          fourcc("RA24"), fourcc("BA24")};

constexpr uint64_t kInt32Max = INT32_MAX, kUint32Max = UINT32_MAX, kUint64Max = UINT64_MAX;
constexpr auto kInt32Min = static_cast<uint64_t>(int64_t{INT32_MIN});
constexpr auto kMinus1 = static_cast<uint64_t>(int64_t{-1});

constexpr uint32_t kRange = drm::kPropertyRange, kImmutable = drm::kPropertyImmutable,
                   kEnum = drm::kPropertyEnum, kBlob = drm::kPropertyBlob, kBitmask = drm::kPropertyBitmask,
                   kObject = drm::kPropertyObject, kSignedRange = drm::kPropertySignedRange,
                   kAtomic = drm::kPropertyAtomic;

/// In the order of their ids.
constexpr Property kProperties[] = {
    {"EDID", kBlob | kImmutable, {}},
    {"DPMS", kEnum, kDpmsModes},
    {"link-status", kEnum, kLinkStates},
    {"non-desktop", kRange | kImmutable, {}, 0, 1},
    {"TILE", kBlob | kImmutable, {}},
    {"CRTC_ID", kObject | kAtomic, {}, drm::kObjectCrtc},
    {"max bpc", kRange, {}, 8, 12},
    {"max bpc", kRange, {}, 8, 8},
    {"HDR_OUTPUT_METADATA", kBlob, {}},
    {"Colorspace", kEnum, kColorspaces},
    {"left margin", kRange, {}, 0, 100},
    {"right margin", kRange, {}, 0, 100},
    {"top margin", kRange, {}, 0, 100},
    {"bottom margin", kRange, {}, 0, 100},
    {"Broadcast RGB", kEnum, kRgbRanges},
    {"vrr_capable", kRange | kImmutable, {}, 0, 1},
    {"type", kEnum | kImmutable, kPlaneType},
    {"FB_ID", kObject | kAtomic, {}, drm::kObjectFb},
    {"IN_FENCE_FD", kSignedRange | kAtomic, {}, kMinus1, kInt32Max},
    {"CRTC_X", kSignedRange | kAtomic, {}, kInt32Min, kInt32Max},
    {"CRTC_Y", kSignedRange | kAtomic, {}, kInt32Min, kInt32Max},
    {"CRTC_W", kRange | kAtomic, {}, 0, kInt32Max},
    {"CRTC_H", kRange | kAtomic, {}, 0, kInt32Max},
    {"SRC_X", kRange | kAtomic, {}, 0, kUint32Max},
    {"SRC_Y", kRange | kAtomic, {}, 0, kUint32Max},
    {"SRC_W", kRange | kAtomic, {}, 0, kUint32Max},
    {"SRC_H", kRange | kAtomic, {}, 0, kUint32Max},
    {"IN_FORMATS", kBlob | kImmutable, {}},
    {"alpha", kRange, {}, 0, 0xffff},
    {"pixel blend mode", kEnum, kBlendMode},
    {"rotation", kBitmask, kRotations},
    {"COLOR_ENCODING", kEnum, kColorEncodings},
    {"COLOR_RANGE", kEnum, kColorRanges},
    {"zpos", kRange | kImmutable, {}, 0, 0},
    {"zpos", kRange, {}, 1, kNumOverlays + 1},
    {"ACTIVE", kRange | kAtomic, {}, 0, 1},
    {"MODE_ID", kBlob | kAtomic, {}},
    {"OUT_FENCE_PTR", kRange | kAtomic, {}, 0, kUint64Max},
    {"VRR_ENABLED", kRange, {}, 0, 1},
    {"CTM", kBlob, {}},
    {"WRITEBACK_OUT_FENCE_PTR", kRange | kAtomic, {}, 0, kUint64Max},
    {"WRITEBACK_FB_ID", kObject | kAtomic, {}, drm::kObjectFb},
    {"WRITEBACK_PIXEL_FORMATS", kBlob | kAtomic | kImmutable, {}},
};
static_assert(std::size(kProperties) == kNumProperties);

// In the order in which the kernel attaches them. Values are those of a node that nobody uses: DPMS is "On"
// from the start, and nothing is scanned out.
constexpr Attached kConnectorProperties[] = {
    {kEdid, 0},
    {kDpms, 0},
    {kLinkStatus, 0},
    {kNonDesktop, 0},
    {kTile, 0},
    {kCrtc, 0},
    {kMaxBpc, 12},
    {kMaxBpcOf8Bits, 8},
    {kHdrMetadata, 0},
    {kColorspace, 0},
    {kLeftMargin, 0},
    {kRightMargin, 0},
    {kTopMargin, 0},
    {kBottomMargin, 0},
    {kBroadcastRgb, 0},
    // Deviation: vc4 has none, which says the same.
    {kVrrCapable, 0},
};

constexpr Attached kWritebackProperties[] = {
    {kDpms, 0}, {kLinkStatus, 0},     {kNonDesktop, 0},  {kTile, 0},
    {kCrtc, 0}, {kWritebackFence, 0}, {kWritebackFb, 0}, {kWritebackFormats, kWritebackFormatsBlobId},
};

using PlaneProperties = std::array<Attached, 19>;
constexpr PlaneProperties plane_properties(PlaneType type, uint64_t zpos) {
  return {{
      {kType, type},
      {kFb, 0},
      {kInFence, kMinus1},
      {kCrtc, 0},
      {kCrtcX, 0},
      {kCrtcY, 0},
      {kCrtcW, 0},
      {kCrtcH, 0},
      {kSrcX, 0},
      {kSrcY, 0},
      {kSrcW, 0},
      {kSrcH, 0},
      {kInFormats, kFormatsBlobId},
      {kAlpha, 0xffff},
      {kBlend, 0},
      {kRotation, 1},
      {kColorEncoding, 1},
      {kColorRange, 0},
      {type == kPrimary ? kZpos : kMovableZpos, zpos},
  }};
}
constexpr PlaneProperties kPrimaryProperties = plane_properties(kPrimary, 0),
                          kCursorProperties = plane_properties(kCursor, kNumOverlays + 1);
constexpr auto kOverlayProperties = [] {
  std::array<PlaneProperties, kNumOverlays> overlays{};
  for (uint64_t i = 0; i < kNumOverlays; ++i) overlays[i] = plane_properties(kOverlay, i + 1);
  return overlays;
}();

constexpr Attached kCrtcProperties[] = {
    {kActive, 0}, {kModeId, 0}, {kOutFence, 0}, {kVrrEnabled, 0}, {kCtm, 0}};

/// In the order of their ids.
constexpr auto kObjects = [] {
  std::array<Object, kNumObjects> objects{};
  const auto add = [&](uint32_t id, uint32_t type, std::span<const Attached> properties) {
    if (id) objects[index_of(id)] = {id, type, properties};
  };
  for (const Pipe& pipe : kPipes) {
    add(pipe.crtc, drm::kObjectCrtc, kCrtcProperties);
    add(pipe.primary, drm::kObjectPlane, kPrimaryProperties);
    add(pipe.cursor, drm::kObjectPlane, kCursorProperties);
    add(pipe.encoder, drm::kObjectEncoder, {});
    add(pipe.connector, drm::kObjectConnector,
        pipe.output == Output::kMemory ? std::span<const Attached>(kWritebackProperties)
                                       : kConnectorProperties);
  }
  for (uint32_t i = 0; i < kNumOverlays; ++i)
    add(kFirstOverlayId + i, drm::kObjectPlane, kOverlayProperties[i]);
  return objects;
}();
static_assert(std::all_of(kObjects.begin(), kObjects.end(), [](const Object& o) { return o.id != 0; }));

/// IN_FORMATS has room for so many.
constexpr size_t kMostFormats = 36, kNumModifiers = 5;

struct FormatsBlob {
  drm::FormatModifierBlob header;
  uint32_t formats[kMostFormats];
  drm::FormatModifier modifiers[kNumModifiers];
};
static_assert(offsetof(FormatsBlob, modifiers) % 8 == 0);

}  // namespace

std::vector<uint8_t> make_formats_blob(std::span<const Format* const> all) {
  FormatsBlob blob = {};
  blob.header = {.version = 1,
                 .flags = 0,
                 .count_formats = static_cast<uint32_t>(all.size()),
                 .formats_offset = offsetof(FormatsBlob, formats),
                 .count_modifiers = kNumModifiers,
                 .modifiers_offset = offsetof(FormatsBlob, modifiers)};
  for (size_t i = 0; i < std::min(all.size(), kMostFormats); ++i) blob.formats[i] = all[i]->fourcc;
  for (size_t k = 0; k < std::min(modifiers().size(), kNumModifiers); ++k) {
    blob.modifiers[k].modifier = modifiers()[k];
    for (size_t i = 0; i < all.size(); ++i)
      blob.modifiers[k].formats |= uint64_t{takes_modifier(*all[i], modifiers()[k])} << i;
  }
  std::vector<uint8_t> bytes(sizeof blob);
  std::memcpy(bytes.data(), &blob, sizeof blob);
  return bytes;
}

const Property* find_property(uint32_t id) {
  return id - kFirstPropertyId < std::size(kProperties) ? &kProperties[id - kFirstPropertyId] : nullptr;
}

const Object* find_object(uint32_t id, uint32_t type) {
  if (id < kFirstObjectId || id >= kObjectsEnd) return nullptr;
  const Object& object = kObjects[index_of(id)];
  return type == drm::kObjectAny || object.type == type ? &object : nullptr;
}

std::span<const Object> objects() { return kObjects; }
std::span<const drm::ModeInfo> modes() { return kModes; }

bool is_writeback_format(uint32_t format) {
  return std::find(std::begin(kWritebackFourccs), std::end(kWritebackFourccs), format) !=
         std::end(kWritebackFourccs);
}

std::span<const uint8_t> find_common_blob(uint32_t id) {
  static const auto edid = make_edid(kMonitor, kModes[0]);
  if (id == kEdidBlobId) return edid;
  if (id == kWritebackFormatsBlobId)
    return {reinterpret_cast<const uint8_t*>(kWritebackFourccs), sizeof kWritebackFourccs};
  return {};
}

}  // namespace v3d::ioctl::kms
