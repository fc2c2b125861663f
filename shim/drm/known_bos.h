/// The library remembers where BOs are that this process has asked for: MMAP_BO and the mapping after it need
/// no message as long as the file's BOs are the same (wire::Status::bo_changes). Mesa's Vulkan drivers ask
/// again whenever they begin a command buffer.
#pragma once

#include <cstdint>

#include "ioctl/link/wire.h"

namespace v3d::shim {

struct KnownBo {
  uint64_t token;   ///< of the file; 0: none
  uint64_t offset;  ///< for mmap(2)
  wire::BoPlace bo;
  uint32_t handle;
  uint32_t changes;  ///< Status::bo_changes before it was asked for
  uint32_t epoch;    ///< mappings_epoch() before that
};

/// Both thread safe, and in signal handlers: who finds a place busy does without.
void remember_bo(const KnownBo& bo);
/// @param changes, epoch  of now: a BO that is known of others is not found
bool find_bo(uint64_t token, uint32_t handle, uint32_t changes, uint32_t epoch, KnownBo* bo);

}  // namespace v3d::shim
