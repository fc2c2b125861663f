/// These are arguments of mode setting ioctls that change something, and events, in the kernel's layout
/// (Linux include/uapi/drm/drm_mode.h, drm.h). Those that only ask are in ioctl/drm.h.
#pragma once

#include "ioctl/drm.h"

namespace v3d::ioctl::drm {

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

}  // namespace v3d::ioctl::drm
