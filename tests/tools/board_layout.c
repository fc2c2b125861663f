/// The structures of bench/measure/v3d_device.h beside those of the kernel's header.

#include <drm/v3d_drm.h>

#include "bench/measure/v3d_device.h"

#define SAME_SIZE(ours, kernels) \
  _Static_assert(sizeof(struct ours) == sizeof(struct kernels), "size of " #kernels)
#define SAME(ours, member, kernels, name)                                                     \
  _Static_assert(offsetof(struct ours, member) == offsetof(struct kernels, name) &&           \
                     sizeof(((struct ours*)0)->member) == sizeof(((struct kernels*)0)->name), \
                 #kernels "." #name)
#define SAME_NAME(ours, kernels, member) SAME(ours, member, kernels, member)
#define SAME_REQUEST(ours, kernels) _Static_assert(ours == kernels, #kernels)

SAME_SIZE(version_args, drm_version);
SAME(version_args, name_length, drm_version, name_len);
SAME(version_args, name, drm_version, name);
SAME_REQUEST(IOCTL_VERSION, DRM_IOCTL_VERSION);

SAME_SIZE(create_bo_args, drm_v3d_create_bo);
SAME_NAME(create_bo_args, drm_v3d_create_bo, size);
SAME_NAME(create_bo_args, drm_v3d_create_bo, flags);
SAME_NAME(create_bo_args, drm_v3d_create_bo, handle);
SAME_NAME(create_bo_args, drm_v3d_create_bo, offset);
SAME_REQUEST(IOCTL_CREATE_BO, DRM_IOCTL_V3D_CREATE_BO);

SAME_SIZE(mmap_bo_args, drm_v3d_mmap_bo);
SAME_NAME(mmap_bo_args, drm_v3d_mmap_bo, handle);
SAME_NAME(mmap_bo_args, drm_v3d_mmap_bo, offset);
SAME_REQUEST(IOCTL_MMAP_BO, DRM_IOCTL_V3D_MMAP_BO);

SAME_SIZE(wait_bo_args, drm_v3d_wait_bo);
SAME_NAME(wait_bo_args, drm_v3d_wait_bo, handle);
SAME_NAME(wait_bo_args, drm_v3d_wait_bo, timeout_ns);
SAME_REQUEST(IOCTL_WAIT_BO, DRM_IOCTL_V3D_WAIT_BO);

SAME_SIZE(get_param_args, drm_v3d_get_param);
SAME_NAME(get_param_args, drm_v3d_get_param, param);
SAME_NAME(get_param_args, drm_v3d_get_param, value);
SAME_REQUEST(IOCTL_GET_PARAM, DRM_IOCTL_V3D_GET_PARAM);
_Static_assert((int)UIFCFG == (int)DRM_V3D_PARAM_V3D_UIFCFG, "params");
_Static_assert((int)HUB_IDENT3 == (int)DRM_V3D_PARAM_V3D_HUB_IDENT3, "params");
_Static_assert((int)CORE0_IDENT0 == (int)DRM_V3D_PARAM_V3D_CORE0_IDENT0, "params");
_Static_assert((int)CORE0_IDENT2 == (int)DRM_V3D_PARAM_V3D_CORE0_IDENT2, "params");

SAME_SIZE(submit_cl_args, drm_v3d_submit_cl);
SAME_NAME(submit_cl_args, drm_v3d_submit_cl, bcl_start);
SAME_NAME(submit_cl_args, drm_v3d_submit_cl, bcl_end);
SAME_NAME(submit_cl_args, drm_v3d_submit_cl, rcl_start);
SAME_NAME(submit_cl_args, drm_v3d_submit_cl, rcl_end);
SAME_NAME(submit_cl_args, drm_v3d_submit_cl, in_sync_bcl);
SAME_NAME(submit_cl_args, drm_v3d_submit_cl, in_sync_rcl);
SAME_NAME(submit_cl_args, drm_v3d_submit_cl, out_sync);
SAME_NAME(submit_cl_args, drm_v3d_submit_cl, qma);
SAME_NAME(submit_cl_args, drm_v3d_submit_cl, qms);
SAME_NAME(submit_cl_args, drm_v3d_submit_cl, qts);
SAME_NAME(submit_cl_args, drm_v3d_submit_cl, bo_handles);
SAME_NAME(submit_cl_args, drm_v3d_submit_cl, bo_handle_count);
SAME_NAME(submit_cl_args, drm_v3d_submit_cl, flags);
SAME_NAME(submit_cl_args, drm_v3d_submit_cl, extensions);
SAME_REQUEST(IOCTL_SUBMIT_CL, DRM_IOCTL_V3D_SUBMIT_CL);

SAME_SIZE(submit_tfu_args, drm_v3d_submit_tfu);
SAME_NAME(submit_tfu_args, drm_v3d_submit_tfu, icfg);
SAME_NAME(submit_tfu_args, drm_v3d_submit_tfu, iia);
SAME_NAME(submit_tfu_args, drm_v3d_submit_tfu, iis);
SAME_NAME(submit_tfu_args, drm_v3d_submit_tfu, ioa);
SAME_NAME(submit_tfu_args, drm_v3d_submit_tfu, ios);
SAME_NAME(submit_tfu_args, drm_v3d_submit_tfu, coef);
SAME_NAME(submit_tfu_args, drm_v3d_submit_tfu, bo_handles);
SAME_NAME(submit_tfu_args, drm_v3d_submit_tfu, flags);
SAME(submit_tfu_args, ioc, drm_v3d_submit_tfu, v71.ioc);
SAME_REQUEST(IOCTL_SUBMIT_TFU, DRM_IOCTL_V3D_SUBMIT_TFU);

SAME_SIZE(submit_csd_args, drm_v3d_submit_csd);
SAME_NAME(submit_csd_args, drm_v3d_submit_csd, cfg);
SAME_NAME(submit_csd_args, drm_v3d_submit_csd, bo_handles);
SAME_NAME(submit_csd_args, drm_v3d_submit_csd, bo_handle_count);
SAME_NAME(submit_csd_args, drm_v3d_submit_csd, extensions);
SAME_NAME(submit_csd_args, drm_v3d_submit_csd, flags);
SAME_REQUEST(IOCTL_SUBMIT_CSD, DRM_IOCTL_V3D_SUBMIT_CSD);
