/// The mode objects of the vc4 node and their properties, as the kernel's driver makes them (Linux
/// vc4_hdmi.c, vc4_plane.c, vc4_crtc.c, drm_connector.c, drm_mode_config.c).
#pragma once

#include <cstdint>
#include <span>

#include "ioctl/drm.h"

namespace v3d::ioctl::vc4 {

/// Ids of all mode objects share one number space.
enum ObjectId : uint32_t {
  kCrtcId = 32,
  kEncoderId = 33,
  kConnectorId = 34,
  kPrimaryPlaneId = 35,
  kCursorPlaneId = 36,
  kFirstPropertyId = 100,  ///< and on
  kEdidBlobId = 200,
  kFormatsBlobId = 201,
};

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

/// Contents of a blob, empty when there is no such id.
std::span<const uint8_t> find_blob(uint32_t id);

/// The only mode, and the size of the monitor that has it.
extern const drm::ModeInfo kMode;
inline constexpr uint16_t kMmWidth = 510, kMmHeight = 287;

/// DRM_FORMAT_* that planes take.
std::span<const uint32_t> formats();

}  // namespace v3d::ioctl::vc4
