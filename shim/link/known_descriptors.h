/// The library knows descriptors by the identity (st_dev, st_ino) of what they name: duplicates, and
/// descriptors inherited through fork and exec or received from another process, are recognised by what they
/// are, and no table of numbers can go stale.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>

#include "ioctl/link/wire.h"

namespace v3d::shim {

/// A DRM file of a daemon. Its descriptors are one end of a socket pair.
struct File {
  uint64_t token;  ///< names the drm_file in requests
  uint32_t minor;  ///< on the wire: 0, 1 or 128
  pid_t daemon;    ///< that knows it
  wire::FileDriver driver;
};

bool find_known_file(const struct stat& st, File* file);
void remember_file(const struct stat& st, const File& file);
/// Whether it is one that is known without asking anybody.
bool is_known_file(int fd);
/// Some descriptor of this process for which that holds, of that daemon if it is not 0; -1: none.
int any_known_file(pid_t daemon);

/// kAdopt got ENOTTY: a socket that is no DRM file of the daemon.
bool is_known_other(const struct stat& st);
void remember_other(const struct stat& st);

/// A sync_file whose fence has a place in the status of the file with that token (wire::Status::fences).
void remember_sync_file(int fd, uint64_t token, uint32_t place);
bool find_sync_file(int fd, uint64_t token, uint32_t* place);

/// kFdIoctl got ENOTTY: no sync_file and no dma-buf of the daemon.
bool is_known_foreign(const struct stat& st);
void remember_foreign(const struct stat& st);

}  // namespace v3d::shim
