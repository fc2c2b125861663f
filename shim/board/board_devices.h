/// These functions open and serve the board's device nodes (shim/tree/board_nodes.h). The daemon has no part
/// in them: a descriptor of one is an empty file in memory, known by its name, so that it may be duplicated,
/// inherited and passed on.
#pragma once

#include <sys/stat.h>

#include <cstdint>

namespace v3d::shim {

/// A new descriptor of the node at that place in the table, or a negative errno. `flags` of open(2)
int open_board_device(uint32_t place, int flags);

/// The place in the table of what `fd` is a descriptor of; -1: of none. @param st  what a raw fstat told
int find_board_device(int fd, const struct stat& st);

/// @return true when `fd` is a descriptor of one; *result is then that of the ioctl, or a negative errno
bool board_ioctl(int fd, uint32_t request, uint64_t argument, int* result);

}  // namespace v3d::shim
