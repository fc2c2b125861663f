/// The vc4 node has mode objects with properties, as the kernel's driver makes them (Linux
/// vc4_hdmi.c, vc4_plane.c, vc4_crtc.c, drm_connector.c, drm_mode_config.c).
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "ioctl/abi/mode.h"
#include "ioctl/display/formats.h"
#include "ioctl/link/wire.h"

namespace v3d::ioctl::kms {

inline constexpr uint32_t kNumOverlays = 16;
/// One CRTC shows at most its own two planes and all overlays.
inline constexpr uint32_t kMostPlanes = kNumOverlays + 2;

/// Ids of all mode objects share one number space.
enum ObjectId : uint32_t {
  kFirstObjectId = 32,
  kCrtcId = kFirstObjectId,
  kEncoderId = 33,
  kConnectorId = 34,
  kPrimaryPlaneId = 35,
  kFirstOverlayId = kPrimaryPlaneId + 1,
  kCursorPlaneId = kFirstOverlayId + kNumOverlays,
  kSecondEncoderId,
  kSecondConnectorId,
  kSecondCrtcId,
  kObjectsEnd = 77,
  kEdidBlobId = 200,
  kFormatsBlobId = 201,
  kConsoleFbId = 202,  ///< the framebuffer that is shown when no program shows another
  kWritebackFormatsBlobId = 203,
  kFirstDynamicId = 256,  ///< framebuffers and blobs of clients
};

/// What a CRTC feeds.
enum class Output : uint8_t {
  kMonitor,  ///< a socket of the board
  kMemory,   ///< the transposer, "writeback"
  kNothing,  ///< what has no encoder in the board's device tree
};
/// A CRTC, and what is there for it alone.
struct Pipe {
  Output output;
  uint32_t crtc, primary, cursor;  ///< ids
  uint32_t encoder, connector;     ///< 0: none
};
/// Of each kind a board has the first ones (chip::DisplayUnit). Boards number the transposers first.
inline constexpr Pipe kPipes[] = {
    {Output::kMonitor, kCrtcId, kPrimaryPlaneId, kCursorPlaneId, kEncoderId, kConnectorId},
    {Output::kMonitor, kSecondCrtcId, 56, 57, kSecondEncoderId, kSecondConnectorId},
    {Output::kMemory, 58, 59, 60, 61, 62},
    {Output::kMemory, 63, 64, 65, 66, 67},
    {Output::kNothing, 68, 69, 70, 0, 0},
    {Output::kNothing, 71, 72, 73, 0, 0},
    {Output::kNothing, 74, 75, 76, 0, 0},
};
inline constexpr uint32_t kNumPipes = std::size(kPipes);
/// Which pipe has that object alone; kNumPipes: none.
constexpr uint32_t find_pipe(uint32_t id) {
  const auto* found = std::find_if(std::begin(kPipes), std::end(kPipes), [id](const Pipe& p) {
    return id != 0 &&
           (id == p.crtc || id == p.primary || id == p.cursor || id == p.encoder || id == p.connector);
  });
  return static_cast<uint32_t>(found - std::begin(kPipes));
}

inline constexpr uint32_t kFirstPropertyId = 100;
enum PropertyId : uint32_t {
  kEdid = kFirstPropertyId,
  kDpms,
  kLinkStatus,
  kNonDesktop,
  kTile,
  kCrtc,
  kMaxBpc,
  kMaxBpcOf8Bits,
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
  kWritebackFence,
  kWritebackFb,
  kWritebackFormats,
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

/// All that some board has, in the order of their ids.
inline constexpr uint32_t kNumObjects = kObjectsEnd - kFirstObjectId;
std::span<const Object> objects();
/// Its place in objects().
constexpr uint32_t index_of(uint32_t id) { return id - kFirstObjectId; }
constexpr uint32_t index_of(const Object& object) { return index_of(object.id); }
/// A bit for each object.
using ObjectSet = uint64_t;
static_assert(kNumObjects <= 64);
constexpr ObjectSet bit_of(uint32_t id) { return ObjectSet{1} << index_of(id); }
/// Which of kPipes can show a plane: bit for each.
constexpr uint32_t pipes_of_plane(uint32_t id) {
  const uint32_t pipe = find_pipe(id);
  return pipe == kNumPipes ? (1u << kNumPipes) - 1 : 1u << pipe;
}

/// The sockets are the first pipes; connectors are those of wire::kConnectors, in the same order.
inline constexpr uint32_t kNumMonitors = wire::kNumSockets, kMonitorPipes = (1u << kNumMonitors) - 1;
static_assert([] {
  for (uint32_t i = 0; i < wire::kNumConnectors; ++i)
    if (kPipes[i].connector != wire::kConnectors[i].id) return false;
  return true;
}());

/// Contents of a blob that no client made and that all boards have, empty when there is no such id.
std::span<const uint8_t> find_common_blob(uint32_t id);
/// Those of IN_FORMATS. @param formats  that planes take
std::vector<uint8_t> make_formats_blob(std::span<const Format* const> formats);

/// Of WRITEBACK_PIXEL_FORMATS.
bool is_writeback_format(uint32_t fourcc);

/// Those of the monitor, the preferred one first.
std::span<const drm::ModeInfo> modes();
inline constexpr uint16_t kMmWidth = 510, kMmHeight = 287;

}  // namespace v3d::ioctl::kms
