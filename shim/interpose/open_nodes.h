/// These functions say which node a descriptor is one of, of whatever the daemon or the library makes of
/// nodes.
#pragma once

#include <sys/stat.h>

#include "shim/tree/tree.h"

namespace v3d::shim {

/// nullptr: of none. @param fd  -1: `st` is of a path. @param st  what a raw stat told
const Node* find_open_node(int fd, const struct stat& st);

}  // namespace v3d::shim
