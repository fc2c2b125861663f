/// @file Ioctls on buffer objects that all drivers have (Linux drm_gem.c).
#include <algorithm>
#include <cerrno>

#include "ioctl/core/handlers.h"

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

}  // namespace v3d::ioctl
