/// @file Ioctls on buffer objects that v3d adds (Linux v3d_bo.c).
#include <algorithm>
#include <cerrno>

#include "ioctl/v3d/handlers.h"

namespace v3d::ioctl {

int create_bo(Call& call, drm::CreateBo& args) {
  if (args.flags != 0) return EINVAL;
  const uint32_t size =
      (args.size + mmu::kPageSize - 1) & ~(mmu::kPageSize - 1);  // may wrap to 0, as in Linux
  if (size == 0) return EINVAL;
  std::shared_ptr<Bo> bo;
  uint32_t handle = 0;
  if (const int error = call.file.create_bo(call.account, size, &bo, &handle)) return error;
  args.handle = handle;
  args.offset = bo->address();
  return 0;
}

int mmap_bo(Call& call, drm::MmapBo& args) {
  if (args.flags != 0) return EINVAL;
  const std::shared_ptr<Bo> bo = call.file.find_bo(args.handle);
  if (!bo) return ENOENT;
  args.offset = bo->mmap_offset();
  return 0;
}

int get_bo_offset(Call& call, drm::GetBoOffset& args) {
  const std::shared_ptr<Bo> bo = call.file.find_bo(args.handle);
  if (!bo) return ENOENT;
  args.offset = bo->address();
  return 0;
}

int wait_bo(Call& call, drm::WaitBo& args) {
  if (args.pad != 0) return EINVAL;
  const int64_t start = monotonic_ns();
  int error = EINVAL;  // not ENOENT: drm_gem_dma_resv_wait
  if (const std::shared_ptr<Bo> bo = call.file.find_bo(args.handle)) {
    const int64_t deadline = args.timeout_ns >= static_cast<uint64_t>(INT64_MAX - start)
                                 ? INT64_MAX
                                 : start + static_cast<int64_t>(args.timeout_ns);
    error = wait_for_all(bo->reservation().fences(true), call.waiter, deadline);
  }
  // Relative time left, for a caller that was interrupted and starts again.
  const auto elapsed = static_cast<uint64_t>(monotonic_ns() - start);
  args.timeout_ns -= std::min(elapsed, args.timeout_ns);
  return error;
}

}  // namespace v3d::ioctl
