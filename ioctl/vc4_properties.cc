#include "ioctl/vc4_properties.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ioctl/edid.h"

namespace v3d::ioctl::vc4 {

/// CEA-861 format 16.
const drm::ModeInfo kMode = {.clock = 148500,
                             .hdisplay = 1920,
                             .hsync_start = 2008,
                             .hsync_end = 2052,
                             .htotal = 2200,
                             .hskew = 0,
                             .vdisplay = 1080,
                             .vsync_start = 1084,
                             .vsync_end = 1089,
                             .vtotal = 1125,
                             .vscan = 0,
                             .vrefresh = 60,
                             .flags = 5,    // PHSYNC, PVSYNC
                             .type = 0x48,  // DRIVER, PREFERRED
                             .name = "1920x1080"};

namespace {

constexpr Monitor kMonitor = {"VDE", 0x3d71, "v3demu", kMmWidth, kMmHeight, 16};

constexpr EnumValue kDpms[] = {{0, "On"}, {1, "Standby"}, {2, "Suspend"}, {3, "Off"}};
constexpr EnumValue kLinkStatus[] = {{0, "Good"}, {1, "Bad"}};
constexpr EnumValue kColorspace[] = {{0, "Default"},
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
constexpr EnumValue kBroadcastRgb[] = {{0, "Automatic"}, {1, "Full"}, {2, "Limited 16:235"}};
constexpr EnumValue kPlaneType[] = {{0, "Overlay"}, {1, "Primary"}, {2, "Cursor"}};
constexpr EnumValue kBlendMode[] = {{2, "None"}, {0, "Pre-multiplied"}, {1, "Coverage"}};
constexpr EnumValue kRotation[] = {{0, "rotate-0"}, {2, "rotate-180"}, {4, "reflect-x"}, {5, "reflect-y"}};
constexpr EnumValue kColorEncoding[] = {
    {0, "ITU-R BT.601 YCbCr"}, {1, "ITU-R BT.709 YCbCr"}, {2, "ITU-R BT.2020 YCbCr"}};
constexpr EnumValue kColorRange[] = {{0, "YCbCr limited range"}, {1, "YCbCr full range"}};

constexpr uint64_t kInt32Max = INT32_MAX, kUint32Max = UINT32_MAX, kUint64Max = UINT64_MAX;
constexpr auto kInt32Min = static_cast<uint64_t>(int64_t{INT32_MIN});
constexpr auto kMinus1 = static_cast<uint64_t>(int64_t{-1});

constexpr uint32_t kRange = drm::kPropertyRange, kImmutable = drm::kPropertyImmutable,
                   kEnum = drm::kPropertyEnum, kBlob = drm::kPropertyBlob, kBitmask = drm::kPropertyBitmask,
                   kObject = drm::kPropertyObject, kSignedRange = drm::kPropertySignedRange,
                   kAtomic = drm::kPropertyAtomic;

enum PropertyId : uint32_t {
  kEdid = kFirstPropertyId,
  kDpmsId,
  kLinkStatusId,
  kNonDesktop,
  kTile,
  kCrtc,
  kMaxBpc,
  kHdrMetadata,
  kColorspaceId,
  kLeftMargin,
  kRightMargin,
  kTopMargin,
  kBottomMargin,
  kBroadcastRgbId,
  kVrrCapable,
  kType,
  kFb,
  kInFence,
  kCrtcX,
  kCrtcY,
  kCrtcW,
  kCrtcH,
  kSrcX,
  kSrcY,
  kSrcW,
  kSrcH,
  kInFormats,
  kAlpha,
  kBlend,
  kRotationId,
  kColorEncodingId,
  kColorRangeId,
  kZpos,
  kCursorZpos,
  kActive,
  kModeId,
  kOutFence,
  kVrrEnabled,
  kCtm,
  kPropertiesEnd,
};

/// In the order of their ids.
constexpr Property kProperties[] = {
    {"EDID", kBlob | kImmutable, {}},
    {"DPMS", kEnum, kDpms},
    {"link-status", kEnum, kLinkStatus},
    {"non-desktop", kRange | kImmutable, {}, 0, 1},
    {"TILE", kBlob | kImmutable, {}},
    {"CRTC_ID", kObject | kAtomic, {}, drm::kObjectCrtc},
    {"max bpc", kRange, {}, 8, 12},
    {"HDR_OUTPUT_METADATA", kBlob, {}},
    {"Colorspace", kEnum, kColorspace},
    {"left margin", kRange, {}, 0, 100},
    {"right margin", kRange, {}, 0, 100},
    {"top margin", kRange, {}, 0, 100},
    {"bottom margin", kRange, {}, 0, 100},
    {"Broadcast RGB", kEnum, kBroadcastRgb},
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
    {"rotation", kBitmask, kRotation},
    {"COLOR_ENCODING", kEnum, kColorEncoding},
    {"COLOR_RANGE", kEnum, kColorRange},
    {"zpos", kRange | kImmutable, {}, 0, 0},
    {"zpos", kRange, {}, 1, 1},
    {"ACTIVE", kRange | kAtomic, {}, 0, 1},
    {"MODE_ID", kBlob | kAtomic, {}},
    {"OUT_FENCE_PTR", kRange | kAtomic, {}, 0, kUint64Max},
    {"VRR_ENABLED", kRange, {}, 0, 1},
    {"CTM", kBlob, {}},
};
static_assert(std::size(kProperties) == uint32_t{kPropertiesEnd} - uint32_t{kFirstPropertyId});

// In the order in which the kernel attaches them. Values are those of a node that nobody uses: DPMS is "On"
// from the start, and nothing is scanned out.
constexpr Attached kConnectorProperties[] = {
    {kEdid, kEdidBlobId},
    {kDpmsId, 0},
    {kLinkStatusId, 0},
    {kNonDesktop, 0},
    {kTile, 0},
    {kCrtc, 0},
    {kMaxBpc, 12},
    {kHdrMetadata, 0},
    {kColorspaceId, 0},
    {kLeftMargin, 0},
    {kRightMargin, 0},
    {kTopMargin, 0},
    {kBottomMargin, 0},
    {kBroadcastRgbId, 0},
    // Deviation: vc4 has none, which says the same.
    {kVrrCapable, 0},
};

template <uint64_t kPlaneTypeValue, uint32_t kZposId, uint64_t kZposValue>
constexpr Attached kPlaneProperties[] = {
    {kType, kPlaneTypeValue},
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
    {kRotationId, 1},
    {kColorEncodingId, 1},
    {kColorRangeId, 0},
    {kZposId, kZposValue},
};

constexpr Attached kCrtcProperties[] = {
    {kActive, 0}, {kModeId, 0}, {kOutFence, 0}, {kVrrEnabled, 0}, {kCtm, 0}};

constexpr Object kObjects[] = {
    {kCrtcId, drm::kObjectCrtc, kCrtcProperties},
    {kEncoderId, drm::kObjectEncoder, {}},
    {kConnectorId, drm::kObjectConnector, kConnectorProperties},
    {kPrimaryPlaneId, drm::kObjectPlane, kPlaneProperties<1, kZpos, 0>},
    {kCursorPlaneId, drm::kObjectPlane, kPlaneProperties<2, kCursorZpos, 1>},
};

/// XRGB8888 and ARGB8888. A board has many more; these are what dumb buffers are scanned out as.
constexpr std::array<uint32_t, 2> kFormats = {0x34325258, 0x34325241};

struct FormatsBlob {
  drm::FormatModifierBlob header;
  uint32_t formats[kFormats.size()];
  drm::FormatModifier modifiers[1];
};
static_assert(offsetof(FormatsBlob, modifiers) % 8 == 0);

std::array<uint8_t, sizeof(FormatsBlob)> make_formats_blob() {
  FormatsBlob blob = {};
  blob.header = {.version = 1,
                 .flags = 0,
                 .count_formats = kFormats.size(),
                 .formats_offset = offsetof(FormatsBlob, formats),
                 .count_modifiers = 1,
                 .modifiers_offset = offsetof(FormatsBlob, modifiers)};
  std::copy(kFormats.begin(), kFormats.end(), blob.formats);
  blob.modifiers[0].formats = (1u << kFormats.size()) - 1;  // modifier 0: linear
  std::array<uint8_t, sizeof blob> bytes;
  std::memcpy(bytes.data(), &blob, sizeof blob);
  return bytes;
}

}  // namespace

const Property* find_property(uint32_t id) {
  return id - kFirstPropertyId < std::size(kProperties) ? &kProperties[id - kFirstPropertyId] : nullptr;
}

const Object* find_object(uint32_t id, uint32_t type) {
  const auto* it = std::find_if(std::begin(kObjects), std::end(kObjects), [&](const Object& o) {
    return o.id == id && (type == drm::kObjectAny || o.type == type);
  });
  return it == std::end(kObjects) ? nullptr : it;
}

std::span<const uint8_t> find_blob(uint32_t id) {
  static const auto edid = make_edid(kMonitor, kMode);
  static const auto formats = make_formats_blob();
  if (id == kEdidBlobId) return edid;
  if (id == kFormatsBlobId) return formats;
  return {};
}

std::span<const uint32_t> formats() { return kFormats; }

}  // namespace v3d::ioctl::vc4
