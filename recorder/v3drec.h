/* What libv3drec.so needs to know of others: the kernel's v3d and DRM structures as far as it reads them
 * (Linux include/uapi/drm/v3d_drm.h and drm.h), and the file that it writes (daemon/capture.h). */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum drm_number {
  DRM_VERSION = 0x00,
  GEM_CLOSE = 0x09,
  GEM_OPEN = 0x0b,
  PRIME_FD_TO_HANDLE = 0x2e,
  V3D_SUBMIT_CL = 0x40,
  V3D_WAIT_BO = 0x41,
  V3D_CREATE_BO = 0x42,
  V3D_MMAP_BO = 0x43,
  V3D_GET_PARAM = 0x44,
  V3D_GET_BO_OFFSET = 0x45,
  V3D_SUBMIT_TFU = 0x46,
  V3D_SUBMIT_CSD = 0x47,
  V3D_SUBMIT_CPU = 0x4b,
  SYNCOBJ_WAIT = 0xc3,
};
enum { VC4_SUBMIT_CL = 0x40 };

struct drm_version_arg {
  int32_t version[3];
  size_t name_len;
  char* name;
  size_t date_len;
  char* date;
  size_t desc_len;
  char* desc;
};
struct gem_close {
  uint32_t handle, pad;
};
struct gem_open {
  uint32_t name, handle;
  uint64_t size;
};
struct prime_handle {
  uint32_t handle, flags;
  int32_t fd;
};
struct syncobj_wait {
  uint64_t handles;
  int64_t timeout_nsec;
  uint32_t count_handles, flags, first_signaled, pad;
};
enum { SYNCOBJ_WAIT_ALL = 1 };

struct v3d_submit_cl {
  uint32_t bcl_start, bcl_end, rcl_start, rcl_end;
  uint32_t in_sync_bcl, in_sync_rcl, out_sync;
  uint32_t qma, qms, qts;
  uint64_t bo_handles;
  uint32_t bo_handle_count, flags, perfmon_id, pad;
  uint64_t extensions;
};
struct v3d_submit_tfu {
  uint32_t icfg, iia, iis, ica, iua, ioa, ios;
  uint32_t coef[4];
  uint32_t bo_handles[4];
  uint32_t in_sync, out_sync, flags;
  uint64_t extensions;
  uint32_t ioc, pad;
};
struct v3d_submit_csd {
  uint32_t cfg[7], coef[4], pad0;
  uint64_t bo_handles;
  uint32_t bo_handle_count, in_sync, out_sync, perfmon_id;
  uint64_t extensions;
  uint32_t flags, pad;
};
struct v3d_submit_cpu {
  uint64_t bo_handles;
  uint32_t bo_handle_count, flags;
  uint64_t extensions;
};
struct v3d_wait_bo {
  uint32_t handle, pad;
  uint64_t timeout_ns;
};
struct v3d_create_bo {
  uint32_t size, flags, handle, offset;
};
struct v3d_mmap_bo {
  uint32_t handle, flags;
  uint64_t offset;
};
struct v3d_get_param {
  uint32_t param, pad;
  uint64_t value;
};
enum { PARAM_HUB_IDENT3 = 3, PARAM_CORE0_IDENT0 = 4, PARAM_CORE0_IDENT1 = 5 };
struct v3d_get_bo_offset {
  uint32_t handle, offset;
};
enum { SUBMIT_EXTENSION = 2, EXTENSION_MULTI_SYNC = 1, EXTENSION_INDIRECT_CSD = 2 };
struct v3d_extension {
  uint64_t next;
  uint32_t id, flags;
};
struct v3d_multi_sync {
  struct v3d_extension base;
  uint64_t in_syncs, out_syncs;
  uint32_t in_sync_count, out_sync_count, wait_stage, pad;
};
/* A dispatch of as many workgroups as the first buffer object of the CPU job says. */
struct v3d_indirect_csd {
  struct v3d_extension base;
  struct v3d_submit_csd submit;
  uint32_t indirect, offset, wg_size, wg_uniform_offsets[3];
};
enum { NO_UNIFORM = 0xffffffff };
struct v3d_sem {
  uint32_t handle, flags;
  uint64_t point, mbz[2];
};

/* The capture. */
enum { CAPTURE_FORMAT = 6, PAGE = 4096, MOST_CONTEXTS = 256 };
enum record_type { RECORD_PAGE = 1, RECORD_MAPS, RECORD_SETS, RECORD_JOB, RECORD_END, RECORD_AFTER = 8 };
enum job_kind { JOB_BIN, JOB_RENDER, JOB_CSD, JOB_TFU };
struct capture_header {
  char magic[7];
  uint8_t format;
  char profile[24];
};
struct job_record {
  uint32_t context, kind, submission, words[16];
};

/* Bytes of each packet in the lists of V3D 4.2 and 7.1, by opcode; 0: there is none. Of 25, which clears tile
 * buffers, 4.2 has one byte more. */
static const uint8_t packet_bytes[128] = {
    1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  2,  5, /* from 0 */
    5, 5, 1, 1, 9, 2, 8, 3, 0, 1, 1, 1, 0, 13, 13, 1, /* from 16 */
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0, /* from 32 */
    0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0,  0,  0, /* from 48 */
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0, /* from 64 */
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 5, 9,  0,  0, /* from 80 */
    0, 0, 0, 1, 5, 0, 0, 0, 0, 0, 9, 9, 9, 0,  9,  0, /* from 96 */
    0, 0, 0, 0, 0, 0, 0, 2, 0, 9, 9, 5, 4, 1,  2,  0, /* from 112 */
};
enum packet {
  PACKET_RETURN = 18,
  PACKET_GENERIC_TILE_LIST = 20,
  PACKET_CLEAR_TILE_BUFFERS = 25,
  PACKET_STORE = 29,
  PACKET_RENDERING_MODE = 121,
};
