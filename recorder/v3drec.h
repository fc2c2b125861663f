/* What libv3drec.so needs to know of others: the kernel's v3d, vc4 and DRM structures as far as it reads them
 * (Linux include/uapi/drm/v3d_drm.h, vc4_drm.h and drm.h), and the file that it writes (daemon/capture.h). */
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
  CREATE_DUMB = 0xb2,
  DESTROY_DUMB = 0xb4,
  SYNCOBJ_WAIT = 0xc3,
};
/* Those of vc4, some of which are other ones of v3d. */
enum vc4_number {
  VC4_SUBMIT_CL = 0x40,
  VC4_WAIT_BO = 0x42,
  VC4_CREATE_BO = 0x43,
  VC4_MMAP_BO = 0x44,
  VC4_CREATE_SHADER_BO = 0x45,
  VC4_GET_PARAM = 0x47,
};

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
struct create_dumb {
  uint32_t height, width, bpp, flags, handle, pitch;
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

struct vc4_surface {
  uint32_t hindex, offset;
  uint16_t bits, flags;
};
enum { VC4_NO_SURFACE = 0xffffffff };
struct vc4_submit_cl {
  uint64_t bin_cl, shader_rec, uniforms, bo_handles;
  uint32_t bin_cl_size, shader_rec_size, shader_rec_count, uniforms_size, bo_handle_count;
  uint16_t width, height;
  uint8_t min_x_tile, min_y_tile, max_x_tile, max_y_tile;
  struct vc4_surface color_read, color_write, zs_read, zs_write, msaa_color_write, msaa_zs_write;
  uint32_t clear_color[2], clear_z;
  uint8_t clear_s, pad[3];
  uint32_t flags;
  uint64_t seqno;
  uint32_t perfmonid, in_sync, out_sync, pad2;
};
struct vc4_create_bo {
  uint32_t size, flags, handle, pad;
};
struct vc4_create_shader_bo {
  uint32_t size, flags;
  uint64_t data;
  uint32_t handle, pad;
};
enum { VC4_PARAM_IDENT0 = 0, VC4_PARAM_IDENT1 = 1 };

/* The capture. */
enum { CAPTURE_FORMAT = 6, PAGE = 4096, MOST_CONTEXTS = 256, MOST_PAGES_IN_CHUNK = 64 };
enum record_type {
  RECORD_PAGE = 1,
  RECORD_MAPS,
  RECORD_SETS,
  RECORD_JOB,
  RECORD_END,
  RECORD_AFTER = 8,
  RECORD_CHUNK = 10,
  RECORD_SUBMISSION,
  RECORD_AFTER_HASHES
};
enum job_kind { JOB_BIN, JOB_RENDER, JOB_CSD, JOB_TFU };
struct capture_header {
  char magic[7];
  uint8_t format;
  char profile[24];
};
struct job_record {
  uint32_t context, kind, submission, words[16];
};
/* A buffer object of a submission of vc4. */
struct submitted_bo {
  uint32_t address, pages, is_shader;
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

/* The same of the packets that vc4 takes. */
enum vc4_packet {
  VC4_PACKET_INDEXED_PRIMITIVE = 32,
  VC4_PACKET_ARRAY_PRIMITIVE = 33,
  VC4_PACKET_SHADER_STATE = 64,
  VC4_PACKET_GEM_HANDLES = 254,
};
static const struct {
  uint8_t opcode, bytes;
} vc4_packets[] = {
    {0, 1},   {1, 1},   {4, 1},   {5, 1},   {6, 1},    {7, 1},   {32, 14}, {33, 10},
    {56, 2},  {64, 5},  {96, 4},  {97, 5},  {98, 5},   {99, 5},  {100, 3}, {101, 5},
    {102, 9}, {103, 5}, {105, 9}, {106, 9}, {112, 16}, {254, 9},
};
