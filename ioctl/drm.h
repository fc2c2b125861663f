/// These are the arguments of the DRM, sync_file and dma-buf ioctls in the kernel's layout (Linux 7.3,
/// include/uapi/drm and include/uapi/linux; where 6.12 has less, abi.h says so). Sizes and offsets:
/// drm-abi.md 2, 5, 6, 7.6.
#pragma once

#include <cstddef>
#include <cstdint>

namespace v3d::ioctl::drm {

// The ioctl request word: direction 31:30, size 29:16, type 15:8, number 7:0.
inline constexpr uint32_t kDirectionIn = 1u << 30;   ///< the caller's argument is read
inline constexpr uint32_t kDirectionOut = 2u << 30;  ///< it is written
constexpr uint32_t request_size(uint32_t request) { return (request >> 16) & 0x3fff; }
constexpr uint32_t request_type(uint32_t request) { return (request >> 8) & 0xff; }
constexpr uint32_t request_nr(uint32_t request) { return request & 0xff; }

inline constexpr uint32_t kDriverFirst = 0x40, kDriverEnd = 0xa0;  ///< numbers of driver ioctls

/// O_CLOEXEC, O_RDWR and O_NONBLOCK as PRIME_HANDLE_TO_FD and CREATE_LEASE take them.
inline constexpr uint32_t kCloexec = 02000000, kRdwr = 2, kNonblock = 04000;

/// Argument of the ioctls that have none.
struct None {};

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

// Driver ioctls of v3d.

struct SubmitCl {
  uint32_t bcl_start, bcl_end, rcl_start, rcl_end;
  uint32_t in_sync_bcl, in_sync_rcl, out_sync;
  uint32_t qma, qms, qts;
  uint64_t bo_handles;
  uint32_t bo_handle_count, flags, perfmon_id, pad;
  uint64_t extensions;
};
static_assert(sizeof(SubmitCl) == 72);
enum SubmitFlags : uint32_t { kSubmitFlushCache = 1, kSubmitExtension = 2 };

struct SubmitTfu {
  uint32_t icfg, iia, iis, ica, iua, ioa, ios;
  uint32_t coef[4];
  uint32_t bo_handles[4];
  uint32_t in_sync, out_sync, flags;
  uint64_t extensions;
  uint32_t ioc, pad;
};
static_assert(sizeof(SubmitTfu) == 88);

struct SubmitCsd {
  uint32_t cfg[7], coef[4];
  uint32_t pad0;
  uint64_t bo_handles;
  uint32_t bo_handle_count, in_sync, out_sync, perfmon_id;
  uint64_t extensions;
  uint32_t flags, pad;
};
static_assert(sizeof(SubmitCsd) == 88);

struct SubmitCpu {
  uint64_t bo_handles;
  uint32_t bo_handle_count, flags;
  uint64_t extensions;
};
static_assert(sizeof(SubmitCpu) == 24);

struct WaitBo {
  uint32_t handle, pad;
  uint64_t timeout_ns;
};
struct CreateBo {
  uint32_t size, flags, handle, offset;
};
struct MmapBo {
  uint32_t handle, flags;
  uint64_t offset;
};
struct GetParam {
  uint32_t param, pad;
  uint64_t value;
};
enum Param : uint32_t {
  kParamUifcfg,
  kParamHubIdent1,
  kParamHubIdent2,
  kParamHubIdent3,
  kParamCore0Ident0,
  kParamCore0Ident1,
  kParamCore0Ident2,
  kParamSupportsTfu,
  kParamSupportsCsd,
  kParamSupportsCacheFlush,
  kParamSupportsPerfmon,
  kParamSupportsMultisyncExt,
  kParamSupportsCpuQueue,
  kParamMaxPerfCounters,
  kParamSupportsSuperPages,
  kParamGlobalResetCounter,
  kParamContextResetCounter,
};
struct GetBoOffset {
  uint32_t handle, offset;
};

inline constexpr uint32_t kMaxPerfmonCounters = 32;
struct PerfmonCreate {
  uint32_t id, ncounters;
  uint8_t counters[kMaxPerfmonCounters];
};
static_assert(sizeof(PerfmonCreate) == 40);
struct PerfmonDestroy {
  uint32_t id;
};
struct PerfmonGetValues {
  uint32_t id, pad;
  uint64_t values_ptr;
};
struct PerfmonGetCounter {
  uint8_t counter;
  uint8_t name[64], category[32], description[256];
  uint8_t reserved[7];
};
static_assert(sizeof(PerfmonGetCounter) == 360);

struct PerfmonSetGlobal {
  uint32_t flags, id;
};
inline constexpr uint32_t kPerfmonClearGlobal = 1;

// The extension chain of the submit ioctls.

struct Extension {
  uint64_t next;
  uint32_t id, flags;
};
enum ExtensionId : uint32_t {
  kExtMultiSync = 1,
  kExtCpuIndirectCsd = 2,
  kExtCpuTimestampQuery = 3,
  kExtCpuResetTimestampQuery = 4,
  kExtCpuCopyTimestampQuery = 5,
  kExtCpuResetPerformanceQuery = 6,
  kExtCpuCopyPerformanceQuery = 7,
};
struct Sem {
  uint32_t handle, flags;
  uint64_t point, mbz[2];
};
static_assert(sizeof(Sem) == 32);
struct MultiSync {
  Extension base;
  uint64_t in_syncs, out_syncs;
  uint32_t in_sync_count, out_sync_count, wait_stage, pad;
};
static_assert(sizeof(MultiSync) == 48);
struct IndirectCsd {
  Extension base;
  SubmitCsd submit;
  uint32_t indirect, offset, wg_size, wg_uniform_offsets[3];
};
static_assert(sizeof(IndirectCsd) == 128);
struct TimestampQuery {
  Extension base;
  uint64_t offsets, syncs;
  uint32_t count, pad;
};
static_assert(sizeof(TimestampQuery) == 40);
struct ResetTimestampQuery {
  Extension base;
  uint64_t syncs;
  uint32_t offset, count;
};
static_assert(sizeof(ResetTimestampQuery) == 32);
struct CopyTimestampQuery {
  Extension base;
  uint8_t do_64bit, do_partial, availability_bit, pad;
  uint32_t offset, stride, count;
  uint64_t offsets, syncs;
};
static_assert(sizeof(CopyTimestampQuery) == 48);
struct ResetPerformanceQuery {
  Extension base;
  uint64_t syncs;
  uint32_t count, nperfmons;
  uint64_t kperfmon_ids;
};
static_assert(sizeof(ResetPerformanceQuery) == 40);
struct CopyPerformanceQuery {
  Extension base;
  uint8_t do_64bit, do_partial, availability_bit, pad;
  uint32_t offset, stride, nperfmons, ncounters, count;
  uint64_t syncs, kperfmon_ids;
};
static_assert(sizeof(CopyPerformanceQuery) == 56);

// Mode setting, as far as the vc4 node answers it.

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

// ioctls of sync_file and dma-buf descriptors. The whole request word selects.

struct SyncMerge {
  char name[32];
  int32_t fd2, fence;
  uint32_t flags, pad;
};
static_assert(sizeof(SyncMerge) == 48);
struct SyncFenceInfo {
  char obj_name[32], driver_name[32];
  int32_t status;
  uint32_t flags;
  uint64_t timestamp_ns;
};
static_assert(sizeof(SyncFenceInfo) == 80);
struct SyncFileInfo {
  char name[32];
  int32_t status;
  uint32_t flags, num_fences, pad;
  uint64_t fence_info;
};
static_assert(sizeof(SyncFileInfo) == 56);
struct SyncSetDeadline {
  uint64_t deadline_ns, pad;
};
inline constexpr uint32_t kSyncMerge = 0xc0303e03;
inline constexpr uint32_t kSyncFileInfo = 0xc0383e04;
inline constexpr uint32_t kSyncSetDeadline = 0x40103e05;

struct DmaBufSync {
  uint64_t flags;
};
struct DmaBufSyncFile {
  uint32_t flags;
  int32_t fd;
};
inline constexpr uint32_t kDmaBufSync = 0x40086200;
inline constexpr uint32_t kDmaBufSetNameA = 0x40046201, kDmaBufSetNameB = 0x40086201;
inline constexpr uint32_t kDmaBufExportSyncFile = 0xc0086202;
inline constexpr uint32_t kDmaBufImportSyncFile = 0x40086203;
enum DmaBufSyncFlags : uint32_t {
  kDmaBufRead = 1,
  kDmaBufWrite = 2,
  kDmaBufRw = 3,
  kDmaBufEnd = 4,
};

}  // namespace v3d::ioctl::drm
