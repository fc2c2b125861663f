/// These are the arguments of the driver ioctls of v3d in the kernel's layout (Linux 7.3,
/// include/uapi/drm/v3d_drm.h; where 6.12 has less, versions.h says so). Sizes and offsets: drm-abi.md 2,
/// 5, 6.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ioctl/abi/request.h"

namespace v3d::ioctl::drm {

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

namespace request {
inline constexpr uint32_t kSubmitCl = iowr<SubmitCl>(0x40);
inline constexpr uint32_t kWaitBo = iowr<WaitBo>(0x41);
inline constexpr uint32_t kCreateBo = iowr<CreateBo>(0x42);
inline constexpr uint32_t kMmapBo = iowr<MmapBo>(0x43);
inline constexpr uint32_t kGetParam = iowr<GetParam>(0x44);
inline constexpr uint32_t kGetBoOffset = iowr<GetBoOffset>(0x45);
inline constexpr uint32_t kSubmitTfu = iow<SubmitTfu>(0x46);
inline constexpr uint32_t kSubmitCsd = iow<SubmitCsd>(0x47);
inline constexpr uint32_t kPerfmonCreate = iowr<PerfmonCreate>(0x48);
inline constexpr uint32_t kPerfmonDestroy = iowr<PerfmonDestroy>(0x49);
inline constexpr uint32_t kPerfmonGetValues = iowr<PerfmonGetValues>(0x4a);
inline constexpr uint32_t kSubmitCpu = iow<SubmitCpu>(0x4b);
inline constexpr uint32_t kPerfmonGetCounter = iowr<PerfmonGetCounter>(0x4c);
inline constexpr uint32_t kPerfmonSetGlobal = iow<PerfmonSetGlobal>(0x4d);
}  // namespace request

}  // namespace v3d::ioctl::drm
