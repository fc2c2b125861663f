/// @file The versions. Sources: Linux 6.12.94 and 7.2.8 (drivers/gpu/drm: v3d, drm_ioctl.c, drm_syncobj.c),
/// v3d's v3d_submit.c and v3d_perfmon.c as of 7.3, newer-mesa.md; of the driver vc4 also 6.1.176
/// (vc4-abi.md).
#include "ioctl/abi/versions.h"

#include <algorithm>
#include <cerrno>

#include "ioctl/abi/core.h"
#include "ioctl/abi/v3d.h"

namespace v3d::ioctl {
namespace {

constexpr uint32_t kKib = 1 << 10, kMib = 1 << 20;

constexpr Abi kAbis[] = {
    {
        .name = "7.3",
        .has_v3d = true,
        .num_params = drm::kParamContextResetCounter + 1,
        .syncobj_fd_flags = drm::kSyncobjSyncFile | drm::kSyncobjTimeline,
        .set_global_perfmon = true,
        .set_client_name = true,
        .gem_change_handle = true,
        .plane_color_pipeline = true,
        .cursor_plane_hotspot = true,
        .atomic_async_flips = true,
        .close_fb = true,
        .syncobj_eventfd = true,
        .missing_syncs_fail = true,
        .bos_may_repeat = true,
        .cpu_bos_checked_first = true,
        .cpu_offsets_checked = true,
        .clean_has_the_bos = false,
        .last_fence_for_all = true,
        .perfmons_run_alone = true,
        .reading_stops_perfmon = false,
        // With super pages, as Raspberry Pi kernels are built.
        .bo_alignment = {4 * kKib, 64 * kKib, kMib},
        .vc4_date = "0",
        .vc4_missing_bo_error = ENOENT,
        .vc4_too_many_tiles_refused = true,
        .vc4_waits_for_reservations = true,
        .vc4_destroy_stops_perfmon = true,
        .planes_have_zpos = true,
        .planes_take_small_rgb = true,
        .planes_take_yuv444 = true,
        .max_bpc_by_socket = true,
    },
    {
        .name = "6.12",
        .has_v3d = true,
        .num_params = drm::kParamMaxPerfCounters + 1,
        .syncobj_fd_flags = drm::kSyncobjSyncFile,
        .set_global_perfmon = false,
        .set_client_name = false,
        .gem_change_handle = false,
        .plane_color_pipeline = false,
        .cursor_plane_hotspot = true,
        .atomic_async_flips = true,
        .close_fb = true,
        .syncobj_eventfd = true,
        .missing_syncs_fail = false,
        .bos_may_repeat = false,
        .cpu_bos_checked_first = false,
        .cpu_offsets_checked = false,
        .clean_has_the_bos = true,
        .last_fence_for_all = false,
        .perfmons_run_alone = false,
        .reading_stops_perfmon = true,
        .bo_alignment = {128 * kKib, 128 * kKib, 128 * kKib},
        .vc4_date = "0",
        .vc4_missing_bo_error = ENOENT,
        .vc4_too_many_tiles_refused = true,
        .vc4_waits_for_reservations = false,
        .vc4_destroy_stops_perfmon = false,
        .planes_have_zpos = true,
        .planes_take_small_rgb = true,
        .planes_take_yuv444 = false,
        .max_bpc_by_socket = true,
    },
    {
        .name = "6.1",
        .has_v3d = false,
        .num_params = 0,
        .syncobj_fd_flags = drm::kSyncobjSyncFile,
        .set_global_perfmon = false,
        .set_client_name = false,
        .gem_change_handle = false,
        .plane_color_pipeline = false,
        .cursor_plane_hotspot = false,
        .atomic_async_flips = false,
        .close_fb = false,
        .syncobj_eventfd = false,
        .missing_syncs_fail = false,
        .bos_may_repeat = false,
        .cpu_bos_checked_first = false,
        .cpu_offsets_checked = false,
        .clean_has_the_bos = true,
        .last_fence_for_all = false,
        .perfmons_run_alone = false,
        .reading_stops_perfmon = true,
        .bo_alignment = {128 * kKib, 128 * kKib, 128 * kKib},
        .vc4_date = "20140616",
        .vc4_missing_bo_error = EINVAL,
        .vc4_too_many_tiles_refused = false,
        .vc4_waits_for_reservations = false,
        .vc4_destroy_stops_perfmon = false,
        .planes_have_zpos = false,
        .planes_take_small_rgb = false,
        .planes_take_yuv444 = false,
        .max_bpc_by_socket = false,
    },
};

}  // namespace

const Abi* find_abi(std::string_view name) {
  const auto* it =
      std::find_if(std::begin(kAbis), std::end(kAbis), [&](const Abi& a) { return name == a.name; });
  return it == std::end(kAbis) ? nullptr : it;
}

const Abi& default_abi() { return kAbis[0]; }

std::span<const Abi> all_abis() { return kAbis; }

}  // namespace v3d::ioctl
