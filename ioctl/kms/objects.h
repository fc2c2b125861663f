/// The mode objects of the vc4 node and their properties, as the kernel's driver makes them (Linux
/// vc4_hdmi.c, vc4_plane.c, vc4_crtc.c, drm_connector.c, drm_mode_config.c).
#pragma once

#include <cstdint>
#include <span>

#include "ioctl/drm.h"
#include "ioctl/wire.h"

namespace v3d::ioctl::kms {

inline constexpr uint32_t kNumOverlays = 16, kNumPlanes = kNumOverlays + 2;

/// Ids of all mode objects share one number space.
enum ObjectId : uint32_t {
  kCrtcId = 32,
  kEncoderId = 33,
  kConnectorId = 34,
  kPrimaryPlaneId = 35,
  kCursorPlaneId = kPrimaryPlaneId + kNumOverlays + 1,
  kSecondEncoderId,
  kSecondConnectorId,
  kEdidBlobId = 200,
  kFormatsBlobId = 201,
  kConsoleFbId = 202,     ///< the framebuffer that is shown when no program shows another
  kFirstDynamicId = 256,  ///< framebuffers and blobs of clients
};

inline constexpr uint32_t kFirstPropertyId = 100;
enum PropertyId : uint32_t {
  kEdid = kFirstPropertyId,
  kDpms,
  kLinkStatus,
  kNonDesktop,
  kTile,
  kCrtc,
  kMaxBpc,
  kHdrMetadata,
  kColorspace,
  kLeftMargin,
  kRightMargin,
  kTopMargin,
  kBottomMargin,
  kBroadcastRgb,
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
  kRotation,
  kColorEncoding,
  kColorRange,
  kZpos,
  kMovableZpos,
  kActive,
  kModeId,
  kOutFence,
  kVrrEnabled,
  kCtm,
  kPropertiesEnd,
};
inline constexpr uint32_t kNumProperties = kPropertiesEnd - kFirstPropertyId;

/// Values of "type".
enum PlaneType : uint64_t { kOverlay = 0, kPrimary = 1, kCursor = 2 };

struct EnumValue {
  uint64_t value;
  const char* name;
};
struct Property {
  const char* name;
  uint32_t flags;                    ///< drm::PropertyFlags
  std::span<const EnumValue> enums;  ///< of an enum or bitmask
  uint64_t min = 0, max = 0;         ///< of a range; of an object the type
};
/// nullptr when there is no such id.
const Property* find_property(uint32_t id);

/// A property of an object with its value.
struct Attached {
  uint32_t property;
  uint64_t value;
};
struct Object {
  uint32_t id, type;
  std::span<const Attached> properties;  ///< none: the object cannot have any
};
/// nullptr when there is none. @param type  drm::kObjectAny or the type that it must have
const Object* find_object(uint32_t id, uint32_t type);

/// CRTC, encoder, connector, planes from bottom to top, and encoder and connector of the second socket.
inline constexpr uint32_t kNumObjects = 3 + kNumPlanes + 2, kFirstPlane = 3;
std::span<const Object> objects();
/// Its place in objects().
constexpr uint32_t index_of(const Object& object) { return object.id - kCrtcId; }

/// The objects of the i-th of wire::kConnectors. Both can be lit by the one CRTC, one at a time (board: each
/// has a CRTC of its own).
inline constexpr uint32_t kNumConnectors = wire::kNumConnectors;
constexpr uint32_t connector_id(uint32_t i) { return wire::kConnectors[i].id; }
constexpr uint32_t encoder_id(uint32_t i) { return connector_id(i) - 1; }
static_assert(connector_id(0) == kConnectorId && encoder_id(0) == kEncoderId);
static_assert(connector_id(1) == kSecondConnectorId && encoder_id(1) == kSecondEncoderId);
/// Which of them has that connector or encoder; kNumConnectors: none.
constexpr uint32_t find_connector(uint32_t id) {
  uint32_t i = 0;
  while (i < kNumConnectors && id != connector_id(i) && id != encoder_id(i)) ++i;
  return i;
}

/// Contents of a blob that no client made, empty when there is no such id.
std::span<const uint8_t> find_fixed_blob(uint32_t id);

/// Those of the monitor, the preferred one first.
std::span<const drm::ModeInfo> modes();
inline constexpr uint16_t kMmWidth = 510, kMmHeight = 287;

}  // namespace v3d::ioctl::kms
