/// These are the arguments of the ioctls of DRM's core in the kernel's layout (Linux 7.3,
/// include/uapi/drm/drm.h; where 6.12 has less, versions.h says so). Sizes and offsets: drm-abi.md 2.
#pragma once

#include <cstdint>

#include "ioctl/abi/request.h"

namespace v3d::ioctl::drm {

inline constexpr uint32_t kDriverFirst = 0x40, kDriverEnd = 0xa0;  ///< numbers of driver ioctls

/// O_CLOEXEC, O_RDWR and O_NONBLOCK as PRIME_HANDLE_TO_FD and CREATE_LEASE take them.
inline constexpr uint32_t kCloexec = 02000000, kRdwr = 2, kNonblock = 04000;

struct Version {
  int32_t major, minor, patchlevel;
  uint32_t pad;
  uint64_t name_len, name, date_len, date, desc_len, desc;
};
static_assert(sizeof(Version) == 64);

struct Unique {
  uint64_t unique_len, unique;
};
struct Auth {
  uint32_t magic;
};
struct Client {
  int32_t idx, auth;
  uint64_t pid, uid, magic, iocs;
};
static_assert(sizeof(Client) == 40);
struct Stats {
  uint64_t count;
  struct {
    uint64_t value;
    uint32_t type, pad;
  } data[15];
};
static_assert(sizeof(Stats) == 248);
struct SetVersion {
  int32_t di_major, di_minor, dd_major, dd_minor;
};
struct GemClose {
  uint32_t handle, pad;
};
struct GemFlink {
  uint32_t handle, name;
};
struct GemOpen {
  uint32_t name, handle;
  uint64_t size;
};

struct GetCap {
  uint64_t capability, value;
};
enum Cap : uint64_t {
  kCapDumbBuffer = 1,
  kCapVblankHighCrtc = 2,
  kCapDumbPreferredDepth = 3,
  kCapDumbPreferShadow = 4,
  kCapPrime = 5,
  kCapTimestampMonotonic = 6,
  kCapAsyncPageFlip = 7,
  kCapCursorWidth = 8,
  kCapCursorHeight = 9,
  kCapAddfb2Modifiers = 0x10,
  kCapPageFlipTarget = 0x11,
  kCapCrtcInVblankEvent = 0x12,
  kCapSyncobj = 0x13,
  kCapSyncobjTimeline = 0x14,
  kCapAtomicAsyncPageFlip = 0x15,
};

struct SetClientCap {
  uint64_t capability, value;
};
enum ClientCap : uint64_t {
  kClientCapStereo3d = 1,
  kClientCapUniversalPlanes = 2,
  kClientCapAtomic = 3,
  kClientCapAspectRatio = 4,
  kClientCapWritebackConnectors = 5,
  kClientCapCursorPlaneHotspot = 6,
  kClientCapPlaneColorPipeline = 7,
};

struct SetClientName {
  uint64_t name_len, name;
};
inline constexpr uint64_t kMaxClientName = 64;  ///< bytes

struct PrimeHandle {
  uint32_t handle, flags;
  int32_t fd;
};
static_assert(sizeof(PrimeHandle) == 12);

struct SyncobjCreate {
  uint32_t handle, flags;
};
inline constexpr uint32_t kSyncobjCreateSignaled = 1;
struct SyncobjDestroy {
  uint32_t handle, pad;
};
struct SyncobjHandle {
  uint32_t handle, flags;
  int32_t fd;
  uint32_t pad;
  uint64_t point = 0;  ///< with kSyncobjTimeline
};
static_assert(sizeof(SyncobjHandle) == 24);
inline constexpr uint32_t kSyncobjSyncFile = 1;  ///< flags of HANDLE_TO_FD and FD_TO_HANDLE
inline constexpr uint32_t kSyncobjTimeline = 2;
struct SyncobjWait {
  uint64_t handles;
  int64_t timeout_ns;
  uint32_t count_handles, flags, first_signaled, pad;
  uint64_t deadline_ns;
};
static_assert(sizeof(SyncobjWait) == 40);
enum SyncobjWaitFlags : uint32_t { kWaitAll = 1, kWaitForSubmit = 2, kWaitAvailable = 4, kWaitDeadline = 8 };
struct SyncobjArray {
  uint64_t handles;
  uint32_t count_handles, pad;
};

// Neither node has DRIVER_SYNCOBJ_TIMELINE.
struct SyncobjTimelineWait {
  uint64_t handles, points;
  int64_t timeout_ns;
  uint32_t count_handles, flags, first_signaled, pad;
  uint64_t deadline_ns;
};
static_assert(sizeof(SyncobjTimelineWait) == 48);
/// SYNCOBJ_QUERY and SYNCOBJ_TIMELINE_SIGNAL.
struct SyncobjTimelineArray {
  uint64_t handles, points;
  uint32_t count_handles, flags;
};
struct SyncobjTransfer {
  uint32_t src_handle, dst_handle;
  uint64_t src_point, dst_point;
  uint32_t flags, pad;
};
struct SyncobjEventfd {
  uint32_t handle, flags;
  uint64_t point;
  int32_t fd;
  uint32_t pad;
};

struct GemChangeHandle {
  uint32_t handle, new_handle;
};
/// Argument of what drivers with user mode setting had: a handle, or more that nobody looks at.
struct Obsolete {
  uint32_t value;
};
struct UpdateDraw {
  uint32_t handle, type, num, pad;
  uint64_t data;
};
struct DmaLock {
  uint32_t context, flags;
};

namespace request {
inline constexpr uint32_t kVersion = iowr<Version>(0x00);
inline constexpr uint32_t kGetUnique = iowr<Unique>(0x01);
inline constexpr uint32_t kGetMagic = ior<Auth>(0x02);
inline constexpr uint32_t kGetClient = iowr<Client>(0x05);
inline constexpr uint32_t kGetStats = ior<Stats>(0x06);
inline constexpr uint32_t kSetVersion = iowr<SetVersion>(0x07);
inline constexpr uint32_t kGemClose = iow<GemClose>(0x09);
inline constexpr uint32_t kGemFlink = iowr<GemFlink>(0x0a);
inline constexpr uint32_t kGemOpen = iowr<GemOpen>(0x0b);
inline constexpr uint32_t kGetCap = iowr<GetCap>(0x0c);
inline constexpr uint32_t kSetClientCap = iow<SetClientCap>(0x0d);
inline constexpr uint32_t kSetUnique = iow<Unique>(0x10);
inline constexpr uint32_t kAuthMagic = iow<Auth>(0x11);
inline constexpr uint32_t kBlock = iowr<Obsolete>(0x12);
inline constexpr uint32_t kUnblock = iowr<Obsolete>(0x13);
inline constexpr uint32_t kSetMaster = io(0x1e);
inline constexpr uint32_t kDropMaster = io(0x1f);
inline constexpr uint32_t kAddDraw = iowr<Obsolete>(0x27);
inline constexpr uint32_t kRmDraw = iowr<Obsolete>(0x28);
inline constexpr uint32_t kFinish = iow<DmaLock>(0x2c);
inline constexpr uint32_t kPrimeHandleToFd = iowr<PrimeHandle>(0x2d);
inline constexpr uint32_t kPrimeFdToHandle = iowr<PrimeHandle>(0x2e);
inline constexpr uint32_t kUpdateDraw = iow<UpdateDraw>(0x3f);
inline constexpr uint32_t kSyncobjCreate = iowr<SyncobjCreate>(0xbf);
inline constexpr uint32_t kSyncobjDestroy = iowr<SyncobjDestroy>(0xc0);
inline constexpr uint32_t kSyncobjHandleToFd = iowr<SyncobjHandle>(0xc1);
inline constexpr uint32_t kSyncobjFdToHandle = iowr<SyncobjHandle>(0xc2);
inline constexpr uint32_t kSyncobjWait = iowr<SyncobjWait>(0xc3);
inline constexpr uint32_t kSyncobjReset = iowr<SyncobjArray>(0xc4);
inline constexpr uint32_t kSyncobjSignal = iowr<SyncobjArray>(0xc5);
inline constexpr uint32_t kSyncobjTimelineWait = iowr<SyncobjTimelineWait>(0xca);
inline constexpr uint32_t kSyncobjQuery = iowr<SyncobjTimelineArray>(0xcb);
inline constexpr uint32_t kSyncobjTransfer = iowr<SyncobjTransfer>(0xcc);
inline constexpr uint32_t kSyncobjTimelineSignal = iowr<SyncobjTimelineArray>(0xcd);
inline constexpr uint32_t kSyncobjEventfd = iowr<SyncobjEventfd>(0xcf);
inline constexpr uint32_t kSetClientName = iowr<SetClientName>(0xd1);
inline constexpr uint32_t kGemChangeHandle = iowr<GemChangeHandle>(0xd2);
}  // namespace request

}  // namespace v3d::ioctl::drm
