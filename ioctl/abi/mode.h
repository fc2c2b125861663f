/// These are the arguments of the mode setting ioctls, and events, in the kernel's layout (Linux 7.3,
/// include/uapi/drm/drm_mode.h, drm.h), as far as the vc4 node answers them. Sizes and offsets:
/// drm-abi.md 7.6.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ioctl/abi/request.h"

namespace v3d::ioctl::drm {

struct CardResources {
  uint64_t fb_ids, crtc_ids, connector_ids, encoder_ids;
  uint32_t count_fbs, count_crtcs, count_connectors, count_encoders;
  uint32_t min_width, max_width, min_height, max_height;
};
static_assert(sizeof(CardResources) == 64);
struct ModeInfo {
  uint32_t clock;
  uint16_t hdisplay, hsync_start, hsync_end, htotal, hskew;
  uint16_t vdisplay, vsync_start, vsync_end, vtotal, vscan;
  uint32_t vrefresh, flags, type;
  char name[32];
};
static_assert(sizeof(ModeInfo) == 68);
struct Crtc {
  uint64_t connector_ids;
  uint32_t count_connectors, crtc_id, fb_id, x, y, gamma_size, mode_valid;
  ModeInfo mode;
};
static_assert(sizeof(Crtc) == 104);
struct Encoder {
  uint32_t encoder_id, encoder_type, crtc_id, possible_crtcs, possible_clones;
};
struct Connector {
  uint64_t encoder_ids, modes, property_ids, property_values;
  uint32_t count_modes, count_properties, count_encoders;
  uint32_t encoder_id, connector_id, connector_type, connector_type_id;
  uint32_t connection, mm_width, mm_height, subpixel, pad;
};
static_assert(sizeof(Connector) == 80);
enum PropertyFlags : uint32_t {
  kPropertyRange = 2,
  kPropertyImmutable = 4,
  kPropertyEnum = 8,
  kPropertyBlob = 16,
  kPropertyBitmask = 32,
  kPropertyObject = 1 << 6,
  kPropertySignedRange = 2 << 6,
  kPropertyAtomic = 1u << 31,  ///< shown to clients with the capability ATOMIC only
};
inline constexpr size_t kPropertyNameSize = 32;
struct GetProperty {
  uint64_t values, enum_blobs;
  uint32_t prop_id, flags;
  char name[kPropertyNameSize];
  uint32_t count_values, count_enum_blobs;
};
static_assert(sizeof(GetProperty) == 64);
struct PropertyEnum {
  uint64_t value;
  char name[kPropertyNameSize];
};
static_assert(sizeof(PropertyEnum) == 40);
struct GetBlob {
  uint32_t blob_id, length;
  uint64_t data;
};
struct PlaneResources {
  uint64_t plane_ids;
  uint32_t count_planes, pad;
};
struct GetPlane {
  uint32_t plane_id, crtc_id, fb_id, possible_crtcs, gamma_size, count_formats;
  uint64_t formats;
};
static_assert(sizeof(GetPlane) == 32);
struct ObjectProperties {
  uint64_t properties, values;
  uint32_t count, object_id, object_type, pad;
};
static_assert(sizeof(ObjectProperties) == 32);
enum ObjectType : uint32_t {
  kObjectAny = 0,
  kObjectConnector = 0xc0c0c0c0,
  kObjectCrtc = 0xcccccccc,
  kObjectEncoder = 0xe0e0e0e0,
  kObjectPlane = 0xeeeeeeee,
  kObjectFb = 0xfbfbfbfb,
};
/// What the blob IN_FORMATS holds: this, the formats, and a FormatModifier for each modifier.
struct FormatModifierBlob {
  uint32_t version, flags, count_formats, formats_offset, count_modifiers, modifiers_offset;
};
struct FormatModifier {
  uint64_t formats;  ///< bit i: the modifier goes with format offset + i
  uint32_t offset, pad;
  uint64_t modifier;
};
static_assert(sizeof(FormatModifier) == 24);
struct CreateDumb {
  uint32_t height, width, bpp, flags, handle, pitch;
  uint64_t size;
};
struct MapDumb {
  uint32_t handle, pad;
  uint64_t offset;
};
struct DestroyDumb {
  uint32_t handle;
};

inline constexpr uint32_t kFbInterlaced = 1, kFbModifiers = 2;  ///< flags of framebuffers
struct FbCmd {
  uint32_t fb_id, width, height, pitch, bpp, depth, handle;
};
static_assert(sizeof(FbCmd) == 28);
struct FbCmd2 {
  uint32_t fb_id, width, height, pixel_format, flags;
  uint32_t handles[4], pitches[4], offsets[4];
  uint64_t modifier[4];
};
static_assert(sizeof(FbCmd2) == 104);
struct FbId {
  uint32_t fb_id;
};
struct CloseFb {
  uint32_t fb_id, pad;
};
struct FbDirty {
  uint32_t fb_id, flags, color, num_clips;
  uint64_t clips;
};
static_assert(sizeof(FbDirty) == 24);
inline constexpr uint32_t kDirtyAnnotateCopy = 1, kDirtyMaxClips = 256;

enum PageFlipFlags : uint32_t {
  kPageFlipEvent = 1,
  kPageFlipAsync = 2,
  kPageFlipTargetAbsolute = 4,
  kPageFlipTargetRelative = 8,
};
struct PageFlip {
  uint32_t crtc_id, fb_id, flags, sequence;
  uint64_t user_data;
};
static_assert(sizeof(PageFlip) == 24);

enum CursorFlags : uint32_t { kCursorBo = 1, kCursorMove = 2 };
struct Cursor {
  uint32_t flags, crtc_id;
  int32_t x, y;
  uint32_t width, height, handle;
};
static_assert(sizeof(Cursor) == 28);
struct Cursor2 {
  uint32_t flags, crtc_id;
  int32_t x, y;
  uint32_t width, height, handle;
  int32_t hot_x, hot_y;
};
static_assert(sizeof(Cursor2) == 36);

struct CrtcLut {
  uint32_t crtc_id, gamma_size;
  uint64_t red, green, blue;
};
static_assert(sizeof(CrtcLut) == 32);

struct SetPlane {
  uint32_t plane_id, crtc_id, fb_id, flags;
  int32_t crtc_x, crtc_y;
  uint32_t crtc_w, crtc_h, src_x, src_y, src_h, src_w;
};
static_assert(sizeof(SetPlane) == 48);

struct SetConnectorProperty {
  uint64_t value;
  uint32_t prop_id, connector_id;
};
struct SetObjectProperty {
  uint64_t value;
  uint32_t prop_id, object_id, object_type, pad;
};
static_assert(sizeof(SetObjectProperty) == 24);
struct CreateBlob {
  uint64_t data;
  uint32_t length, blob_id;
};
struct DestroyBlob {
  uint32_t blob_id;
};

enum AtomicFlags : uint32_t {
  kAtomicTestOnly = 0x100,
  kAtomicNonblock = 0x200,
  kAtomicAllowModeset = 0x400,
};
struct Atomic {
  uint32_t flags, count_objects;
  uint64_t objects, count_properties, properties, values, reserved, user_data;
};
static_assert(sizeof(Atomic) == 56);

/// Of ioctls that do nothing any more.
struct ModeCommand {
  uint32_t connector_id;
  ModeInfo mode;
};
static_assert(sizeof(ModeCommand) == 72);

struct DirtyClip {
  uint16_t x1, y1, x2, y2;
};
struct LutEntry {
  uint16_t value;
};

struct CreateLease {
  uint64_t object_ids;
  uint32_t object_count, flags, lessee_id;
  int32_t fd;
};
static_assert(sizeof(CreateLease) == 24);
/// DRM_IOCTL_MODE_LIST_LESSEES and _GET_LEASE: ids of lessees, or of objects.
struct LeaseList {
  uint32_t count, pad;
  uint64_t ids;
};
static_assert(sizeof(LeaseList) == 16);
struct RevokeLease {
  uint32_t lessee_id;
};

enum VblankType : uint32_t {
  kVblankRelative = 1,
  kVblankTypeMask = 1,  ///< absolute: 0
  kVblankHighCrtcMask = 0x3e,
  kVblankEvent = 0x4000000,
  kVblankFlip = 0x8000000,
  kVblankNextOnMiss = 0x10000000,
  kVblankSecondary = 0x20000000,
  kVblankSignal = 0x40000000,
};
/// DRM_IOCTL_WAIT_VBLANK: the request, and what is answered at the same place.
struct WaitVblank {
  uint32_t type, sequence;
  union {
    uint64_t signal;   ///< of the request: the event's user data
    int64_t tval_sec;  ///< of the reply
  };
  int64_t tval_usec;
};
static_assert(sizeof(WaitVblank) == 24);
struct CrtcGetSequence {
  uint32_t crtc_id, active;
  uint64_t sequence;
  int64_t sequence_ns;
};
static_assert(sizeof(CrtcGetSequence) == 24);
enum SequenceFlags : uint32_t { kSequenceRelative = 1, kSequenceNextOnMiss = 2 };
struct CrtcQueueSequence {
  uint32_t crtc_id, flags;
  uint64_t sequence, user_data;
};
static_assert(sizeof(CrtcQueueSequence) == 24);

enum EventType : uint32_t { kEventVblank = 1, kEventFlipComplete = 2, kEventCrtcSequence = 3 };
struct EventHeader {
  uint32_t type, length;
};
struct VblankEvent {
  EventHeader base;
  uint64_t user_data;
  uint32_t tv_sec, tv_usec, sequence, crtc_id;
};
static_assert(sizeof(VblankEvent) == 32);
struct SequenceEvent {
  EventHeader base;
  uint64_t user_data;
  int64_t time_ns;
  uint64_t sequence;
};
static_assert(sizeof(SequenceEvent) == 32);

namespace request {
inline constexpr uint32_t kWaitVblank = iowr<WaitVblank>(0x3a);
inline constexpr uint32_t kCrtcGetSequence = iowr<CrtcGetSequence>(0x3b);
inline constexpr uint32_t kCrtcQueueSequence = iowr<CrtcQueueSequence>(0x3c);
inline constexpr uint32_t kGetResources = iowr<CardResources>(0xa0);
inline constexpr uint32_t kGetCrtc = iowr<Crtc>(0xa1);
inline constexpr uint32_t kSetCrtc = iowr<Crtc>(0xa2);
inline constexpr uint32_t kCursor = iowr<Cursor>(0xa3);
inline constexpr uint32_t kGetGamma = iowr<CrtcLut>(0xa4);
inline constexpr uint32_t kSetGamma = iowr<CrtcLut>(0xa5);
inline constexpr uint32_t kGetEncoder = iowr<Encoder>(0xa6);
inline constexpr uint32_t kGetConnector = iowr<Connector>(0xa7);
inline constexpr uint32_t kAttachMode = iowr<ModeCommand>(0xa8);
inline constexpr uint32_t kDetachMode = iowr<ModeCommand>(0xa9);
inline constexpr uint32_t kGetProperty = iowr<GetProperty>(0xaa);
inline constexpr uint32_t kSetProperty = iowr<SetConnectorProperty>(0xab);
inline constexpr uint32_t kGetPropBlob = iowr<GetBlob>(0xac);
inline constexpr uint32_t kGetFb = iowr<FbCmd>(0xad);
inline constexpr uint32_t kAddFb = iowr<FbCmd>(0xae);
inline constexpr uint32_t kRmFb = iowr<FbId>(0xaf);
inline constexpr uint32_t kPageFlip = iowr<PageFlip>(0xb0);
inline constexpr uint32_t kDirtyFb = iowr<FbDirty>(0xb1);
inline constexpr uint32_t kCreateDumb = iowr<CreateDumb>(0xb2);
inline constexpr uint32_t kMapDumb = iowr<MapDumb>(0xb3);
inline constexpr uint32_t kDestroyDumb = iowr<DestroyDumb>(0xb4);
inline constexpr uint32_t kGetPlaneResources = iowr<PlaneResources>(0xb5);
inline constexpr uint32_t kGetPlane = iowr<GetPlane>(0xb6);
inline constexpr uint32_t kSetPlane = iowr<SetPlane>(0xb7);
inline constexpr uint32_t kAddFb2 = iowr<FbCmd2>(0xb8);
inline constexpr uint32_t kObjGetProperties = iowr<ObjectProperties>(0xb9);
inline constexpr uint32_t kObjSetProperty = iowr<SetObjectProperty>(0xba);
inline constexpr uint32_t kCursor2 = iowr<Cursor2>(0xbb);
inline constexpr uint32_t kAtomic = iowr<Atomic>(0xbc);
inline constexpr uint32_t kCreatePropBlob = iowr<CreateBlob>(0xbd);
inline constexpr uint32_t kDestroyPropBlob = iowr<DestroyBlob>(0xbe);
inline constexpr uint32_t kCreateLease = iowr<CreateLease>(0xc6);
inline constexpr uint32_t kListLessees = iowr<LeaseList>(0xc7);
inline constexpr uint32_t kGetLease = iowr<LeaseList>(0xc8);
inline constexpr uint32_t kRevokeLease = iowr<RevokeLease>(0xc9);
inline constexpr uint32_t kGetFb2 = iowr<FbCmd2>(0xce);
inline constexpr uint32_t kCloseFb = iowr<CloseFb>(0xd0);
}  // namespace request

}  // namespace v3d::ioctl::drm
