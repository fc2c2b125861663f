/// @file Dumb buffers of the vc4 node (Linux drm_dumb_buffers.c, drm_gem_dma_helper.c). Swapchains of v3dv
/// and scanout surfaces of GL lie in them (drm-abi.md 7.2).
#include <cerrno>

#include "ioctl/kms/handlers.h"

namespace v3d::ioctl {

int create_dumb(Call& call, drm::CreateDumb& args) {
  if (!call.file.device().modeset) return ENOSYS;  // no dumb_create in v3d
  if (!args.width || !args.height || !args.bpp || args.bpp > UINT32_MAX - 8) return EINVAL;
  const uint32_t bytes_per_pixel = (args.bpp + 7) / 8;
  const uint64_t pitch = (uint64_t{args.width} * args.bpp + 7) / 8;
  if (uint64_t{bytes_per_pixel} * args.width > UINT32_MAX ||
      uint64_t{bytes_per_pixel} * args.width * args.height > UINT32_MAX - mmu::kPageSize)
    return EINVAL;
  args.handle = args.pitch = 0;
  args.size = 0;
  const uint64_t size = (pitch * args.height + mmu::kPageSize - 1) / mmu::kPageSize * mmu::kPageSize;
  std::shared_ptr<Bo> bo;
  uint32_t handle = 0;
  if (const int error = call.file.create_bo(call.account, size, &bo, &handle)) return error;
  args.handle = handle;
  args.pitch = static_cast<uint32_t>(pitch);
  args.size = size;
  return 0;
}

int map_dumb(Call& call, drm::MapDumb& args) {
  if (!call.file.device().modeset) return ENOSYS;  // no dumb_create in v3d
  const std::shared_ptr<Bo> bo = call.file.find_bo(args.handle);
  if (!bo) return ENOENT;
  if (bo->imported()) return EINVAL;  // drm_gem_dumb_map_offset
  args.offset = bo->mmap_offset();
  return 0;
}

int destroy_dumb(Call& call, drm::DestroyDumb& args) {
  if (!call.file.device().modeset) return ENOSYS;  // no dumb_create in v3d
  return call.file.close_handle(args.handle) ? 0 : EINVAL;
}

}  // namespace v3d::ioctl
