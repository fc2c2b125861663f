/// @file Ioctls on buffer objects (Linux v3d_bo.c, drm_gem.c).
#include "ioctl/bo.h"

#include <algorithm>
#include <cerrno>

#include "ioctl/handlers.h"

namespace v3d::ioctl {

int gem_close(Call& call, drm::GemClose& args) { return call.file.close_handle(args.handle) ? 0 : EINVAL; }

int gem_flink(Call& call, drm::GemFlink& args) {
  const std::shared_ptr<Bo> bo = call.file.find_bo(args.handle);
  if (!bo) return ENOENT;
  if (const int error = make_shareable(call, *bo)) return error;
  DrmDevice& device = call.file.device();
  const std::lock_guard lock(device.mutex);
  if (const auto known = device.names_of_bos.find(bo.get()); known != device.names_of_bos.end()) {
    const auto named = device.names.find(known->second);
    if (named != device.names.end() && named->second.lock() == bo) {
      args.name = named->first;
      return 0;
    }
  }
  if (device.names.size() >= device.prune_names_at) {
    std::erase_if(device.names, [](const auto& entry) { return entry.second.expired(); });
    std::erase_if(device.names_of_bos,
                  [&](const auto& entry) { return !device.names.contains(entry.second); });
    device.prune_names_at = std::max<size_t>(64, 2 * device.names.size());
  }
  const uint32_t name = device.next_name++;
  device.names_of_bos[bo.get()] = name;
  device.names[name] = bo;
  args.name = name;
  return 0;
}

int gem_open(Call& call, drm::GemOpen& args) {
  std::shared_ptr<Bo> named;
  {
    DrmDevice& device = call.file.device();
    const std::lock_guard lock(device.mutex);
    const auto it = device.names.find(args.name);
    if (it != device.names.end()) named = it->second.lock();
  }
  if (!named) return ENOENT;
  // Another file's object is another address space's: this file gets its own for the same memory.
  uint32_t handle = 0;
  const std::shared_ptr<Bo> own = call.file.find_bo(*named->buffer());
  const int error = own ? call.file.add_handle(call.account, own, &handle)
                        : call.file.import_buffer(call.account, named->buffer(), &handle);
  if (error) return error;
  args.handle = handle;
  args.size = named->size();
  return 0;
}

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
