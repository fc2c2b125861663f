/// The library knows which descriptors are DRM files of our daemon. A DRM fd is one end of a socket pair, so
/// identity is that of the socket, (st_dev, st_ino): duplicates, descriptors inherited through fork and exec
/// or received from another process are recognised by what they are, and no table of numbers can go stale.
#pragma once

#include <sys/stat.h>

#include <cstdint>

#include "shim/link/known_descriptors.h"

namespace v3d::shim {

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

/// Opens a node (Node::wire_minor): the new descriptor, or a negative errno. `flags` of open(2).
int open_file(uint32_t wire_minor, int flags);

}  // namespace v3d::shim
