/// Each Linux version whose ABI can be answered with is one row of properties in versions.cc. Handlers ask
/// for a property, never for a version.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace v3d::ioctl {

/// GPU addresses of BOs are multiples of the first for BOs below 64 KiB, the second below 1 MiB, the third
/// from there on. In bytes.
using BoAlignment = std::array<uint32_t, 3>;

struct Abi {
  const char* name;  ///< Linux version: "6.12"
  bool has_v3d;      ///< what its driver v3d does is known; else boards with the driver vc4 alone have it

  /// @name What is known; all else is EINVAL
  uint32_t num_params;        ///< GET_PARAM: this many, from 0
  uint32_t syncobj_fd_flags;  ///< of SYNCOBJ_HANDLE_TO_FD and SYNCOBJ_FD_TO_HANDLE
  bool set_global_perfmon;    ///< PERFMON_SET_GLOBAL
  bool set_client_name;       ///< SET_CLIENT_NAME
  bool gem_change_handle;     ///< GEM_CHANGE_HANDLE: known, and refused
  bool plane_color_pipeline;  ///< client capability PLANE_COLOR_PIPELINE
  bool cursor_plane_hotspot;  ///< client capability CURSOR_PLANE_HOTSPOT: known, and refused
  bool atomic_async_flips;    ///< capability ATOMIC_ASYNC_PAGE_FLIP, and the flag of atomic commits
  bool close_fb;              ///< MODE_CLOSEFB
  bool syncobj_eventfd;       ///< SYNCOBJ_EVENTFD: known, and refused

  /// @name Submissions (v3d_submit.c)
  bool missing_syncs_fail;     ///< in_sync and out_sync that do not exist are ENOENT; else ignored
  bool bos_may_repeat;         ///< a BO may stand twice in a list; else EALREADY
  bool cpu_bos_checked_first;  ///< a CPU job's BOs are looked up before the dispatch that it prepares
  bool cpu_offsets_checked;    ///< CPU jobs that reach outside their BOs are EINVAL
  bool clean_has_the_bos;      ///< a cache clean, not the job before it, waits for the fences of the BOs
  bool last_fence_for_all;     ///< the BOs of all jobs get the last job's fence; else each those of its own

  /// @name Perfmons (v3d_perfmon.c, v3d_submit.c)
  bool perfmons_run_alone;     ///< jobs with a perfmon do not overlap with others
  bool reading_stops_perfmon;  ///< PERFMON_GET_VALUES ends the counting in a job that runs

  BoAlignment bo_alignment;

  /// @name The driver vc4 (vc4_gem.c, vc4_validate.c, vc4_perfmon.c)
  const char* vc4_date;             ///< of VERSION
  int vc4_missing_bo_error;         ///< of a handle in SUBMIT_CL that names no BO
  bool vc4_too_many_tiles_refused;  ///< for which binning has no memory
  bool vc4_waits_for_reservations;  ///< WAIT_BO: for all fences, and says how much time is left
  bool vc4_destroy_stops_perfmon;   ///< PERFMON_DESTROY ends the counting in a job that runs

  /// @name The display (vc4_plane.c, vc4_hdmi.c)
  bool planes_have_zpos;
  bool planes_take_small_rgb;  ///< formats of 8 and 12 bits
  bool planes_take_yuv444;
  bool max_bpc_by_socket;  ///< 12 where there is HDR, else 8; else 12 everywhere
};

/// nullptr when there is no such version.
const Abi* find_abi(std::string_view name);
/// The newest.
const Abi& default_abi();
/// All, the newest first.
std::span<const Abi> all_abis();

}  // namespace v3d::ioctl
