/// These functions map BOs, and say where they lie and which of them need no message.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "ioctl/abi/v3d.h"
#include "shim/drm/local_call.h"
#include "shim/link/connection.h"
#include "shim/link/known_descriptors.h"

namespace v3d::shim {

/// What mmap on a DRM file maps: the memory's descriptor, or a negative errno.
/// @param place  where in it
int find_mapping(const File& file, size_t length, int prot, int flags, off_t offset, off_t* place);

/// mmap on a DRM file. The address, or a negative errno.
long drm_mmap(const File& file, void* address, size_t length, int prot, int flags, off_t offset);

/// MMAP_BO of a BO that is where it was.
int answer_mmap_bo(LocalCall& call, ioctl::drm::MmapBo& args);

/// What was known before the daemon is asked for a place.
struct BeforeMmapBo {
  uint32_t epoch;        ///< mappings_epoch()
  uint32_t changes = 0;  ///< Status::bo_changes
  bool knows_changes = false;

  explicit BeforeMmapBo(const File& file);
};
/// Of the reply to MMAP_BO, for the mapping that follows.
void remember_place(const Call& call, const File& file, const BeforeMmapBo& before);
/// The thread makes another request, which may be the end of what it knows.
void forget_place();

}  // namespace v3d::shim
