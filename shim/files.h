/// Which descriptors are DRM files of our daemon. A DRM fd is one end of a socket pair, so identity is that
/// of the socket, (st_dev, st_ino): duplicates, descriptors inherited through fork and exec or received from
/// another process are recognised by what they are, and no table of numbers can go stale.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>

namespace v3d::shim {

struct File {
  uint64_t token;  ///< names the drm_file in requests
  uint32_t minor;  ///< on the wire: 0, 1 or 128
  pid_t daemon;    ///< that knows it
};

/// What is behind `fd` if it is a DRM file. Asks the daemon (if one runs) about a socket seen for the first
/// time that could be one; EBADF-safe, cheap for everything else.
/// @return 0; -ENOTTY: no DRM file; another negative errno: why the daemon could not be asked, or refused
///         (ENOMEM at a limit), so that nothing is known
int identify_file(int fd, File* file);
/// The same with the result of a raw fstat at hand.
int identify_file(int fd, const struct stat& st, File* file);

/// Whether it is known to be one.
bool find_file(int fd, File* file);
bool find_file(int fd, const struct stat& st, File* file);

/// Whether it is one that is known without asking anybody.
bool is_known_file(int fd);
/// Some descriptor of this process for which that holds, of that daemon if it is not 0; -1: none.
int any_known_file(pid_t daemon);

/// Opens a node (Node::wire_minor): the new descriptor, or a negative errno. `flags` of open(2).
int open_file(uint32_t wire_minor, int flags);

/// A sync_file whose fence has a place in the status of the file with that token (wire::Status::fences).
void remember_sync_file(int fd, uint64_t token, uint32_t place);
bool find_sync_file(int fd, uint64_t token, uint32_t* place);

/// kFdIoctl got ENOTTY: no sync_file and no dma-buf of the daemon. Remembered by identity.
bool is_known_foreign(const struct stat& st);
void remember_foreign(const struct stat& st);

}  // namespace v3d::shim
