/// These are the arguments of the vc4 driver's ioctls in the kernel's layout (Linux
/// include/uapi/drm/vc4_drm.h, the same from 6.1 to 7.1). Numbers, sizes and offsets: vc4-abi.md 2.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ioctl/abi/request.h"

namespace v3d::ioctl::drm::vc4 {

/// What a surface of SUBMIT_CL is that names no BO.
inline constexpr uint32_t kNoSurface = UINT32_MAX;
/// Flag of a surface: color_read and zs_read hold raw samples.
inline constexpr uint16_t kReadIsFullRes = 1;
struct Surface {
  uint32_t hindex;  ///< in the list of BOs, or kNoSurface
  uint32_t offset;  ///< bytes in the BO
  uint16_t bits, flags;
};
static_assert(sizeof(Surface) == 12);

enum SubmitFlags : uint32_t {
  kUseClearColor = 1,
  kFixedRclOrder = 2,
  kRclOrderIncreasingX = 4,
  kRclOrderIncreasingY = 8,
};
inline constexpr uint32_t kSubmitFlags =
    kUseClearColor | kFixedRclOrder | kRclOrderIncreasingX | kRclOrderIncreasingY;
struct SubmitCl {
  uint64_t bin_cl, shader_rec, uniforms, bo_handles;
  uint32_t bin_cl_size, shader_rec_size, shader_rec_count, uniforms_size;
  uint32_t bo_handle_count;
  uint16_t width, height;                                  ///< pixels
  uint8_t min_x_tile, min_y_tile, max_x_tile, max_y_tile;  ///< inclusive
  Surface color_read, color_write, zs_read, zs_write, msaa_color_write, msaa_zs_write;
  uint32_t clear_color[2];
  uint32_t clear_z;
  uint8_t clear_s, pad[3];
  uint32_t flags;
  uint64_t seqno;  ///< out
  uint32_t perfmonid, in_sync, out_sync, pad2;
};
static_assert(sizeof(SubmitCl) == 176 && offsetof(SubmitCl, bin_cl_size) == 32 &&
              offsetof(SubmitCl, bo_handle_count) == 48 && offsetof(SubmitCl, width) == 52 &&
              offsetof(SubmitCl, min_x_tile) == 56 && offsetof(SubmitCl, color_read) == 60 &&
              offsetof(SubmitCl, msaa_zs_write) == 120 && offsetof(SubmitCl, clear_color) == 132 &&
              offsetof(SubmitCl, clear_s) == 144 && offsetof(SubmitCl, flags) == 148 &&
              offsetof(SubmitCl, seqno) == 152 && offsetof(SubmitCl, perfmonid) == 160 &&
              offsetof(SubmitCl, pad2) == 172);

struct WaitSeqno {
  uint64_t seqno, timeout_ns;
};
struct WaitBo {
  uint32_t handle, pad;
  uint64_t timeout_ns;
};
struct CreateBo {
  uint32_t size, flags, handle, pad;
};
struct MmapBo {
  uint32_t handle, flags;
  uint64_t offset;
};
struct CreateShaderBo {
  uint32_t size, flags;
  uint64_t data;
  uint32_t handle, pad;
};
static_assert(sizeof(CreateShaderBo) == 24 && offsetof(CreateShaderBo, handle) == 16);

struct HangStateBo {
  uint32_t handle, paddr, size, pad;
};
struct GetHangState {
  uint64_t bo;  ///< of HangStateBo
  uint32_t bo_count, start_bin, start_render;
  uint32_t ct0ca, ct0ea, ct1ca, ct1ea, ct0cs, ct1cs, ct0ra0, ct1ra0;
  uint32_t bpca, bpcs, bpoa, bpos, vpmbase, dbge, fdbgo, fdbgb, fdbgr, fdbgs, errstat;
  uint32_t pad[16];
};
static_assert(sizeof(GetHangState) == 160 && offsetof(GetHangState, errstat) == 92);

struct GetParam {
  uint32_t param, pad;
  uint64_t value;
};
enum Param : uint32_t {
  kParamIdent0,
  kParamIdent1,
  kParamIdent2,
  kParamSupportsBranches,
  kParamSupportsEtc1,
  kParamSupportsThreadedFs,
  kParamSupportsFixedRclOrder,
  kParamSupportsMadvise,
  kParamSupportsPerfmon,
  kNumParams,
};

/// Modifiers of SET_TILING and GET_TILING.
inline constexpr uint64_t kModifierLinear = 0, kModifierTTiled = 0x0700000000000001;
struct Tiling {
  uint32_t handle, flags;
  uint64_t modifier;
};
struct LabelBo {
  uint32_t handle, len;
  uint64_t name;
};
enum Madvise : uint32_t { kWillNeed = 0, kDontNeed = 1 };
struct GemMadvise {
  uint32_t handle, madv, retained, pad;
};

inline constexpr uint32_t kMaxPerfmonCounters = 16, kNumPerfmonEvents = 30;
struct PerfmonCreate {
  uint32_t id, ncounters;
  uint8_t events[kMaxPerfmonCounters];
};
struct PerfmonDestroy {
  uint32_t id;
};
struct PerfmonGetValues {
  uint32_t id;  ///< four bytes after it that nobody looks at
  uint32_t unused;
  uint64_t values_ptr;
};

/// Request words. Several are also those of other ioctls of the driver v3d, so a word means something only
/// together with a device.
enum Request : uint32_t {
  kSubmitCl = 0xc0b06440,
  kWaitSeqno = 0xc0106441,
  kWaitBo = 0xc0106442,
  kCreateBo = 0xc0106443,
  kMmapBo = 0xc0106444,
  kCreateShaderBo = 0xc0186445,
  kGetHangState = 0xc0a06446,
  kGetParam = 0xc0106447,
  kSetTiling = 0xc0106448,
  kGetTiling = 0xc0106449,
  kLabelBo = 0xc010644a,
  kGemMadvise = 0xc010644b,
  kPerfmonCreate = 0xc018644c,
  kPerfmonDestroy = 0xc004644d,
  kPerfmonGetValues = 0xc010644e,
};
static_assert(request_size(kSubmitCl) == sizeof(SubmitCl) && request_size(kWaitSeqno) == sizeof(WaitSeqno) &&
              request_size(kWaitBo) == sizeof(WaitBo) && request_size(kCreateBo) == sizeof(CreateBo) &&
              request_size(kMmapBo) == sizeof(MmapBo) &&
              request_size(kCreateShaderBo) == sizeof(CreateShaderBo) &&
              request_size(kGetHangState) == sizeof(GetHangState) &&
              request_size(kGetParam) == sizeof(GetParam) && request_size(kSetTiling) == sizeof(Tiling) &&
              request_size(kGetTiling) == sizeof(Tiling) && request_size(kLabelBo) == sizeof(LabelBo) &&
              request_size(kGemMadvise) == sizeof(GemMadvise) &&
              request_size(kPerfmonCreate) == sizeof(PerfmonCreate) &&
              request_size(kPerfmonDestroy) == sizeof(PerfmonDestroy) &&
              request_size(kPerfmonGetValues) == sizeof(PerfmonGetValues));

}  // namespace v3d::ioctl::drm::vc4
