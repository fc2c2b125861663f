/// These functions connect to the daemon: by the path of its socket, or through a node that is open already.
#pragma once

#include <sys/types.h>

namespace v3d::shim {

/// The daemon has no more for this process, or the process itself is at its limit: no other daemon would
/// help.
bool is_refusal(int error);

/// Where the descriptors begin that are not the program's, if its limit allows that.
inline constexpr int kPrivateFds = 512;

/// The same under a number out of the way of programs that count, select or close low descriptors; as it was,
/// if there is none. @param fd  is used up
int move_high(int fd);

/// A socket connected to the daemon by its path, without greeting. Negative errno: ENOENT or ECONNREFUSED if
/// none listens.
int connect_socket();

/// Whether a descriptor is that of a node of some daemon: the name of the other end says so. That it is one
/// to be trusted is another question.
bool is_named_node(int fd);

/// A connection through an open node of a daemon that is to be trusted, which asks for no user there.
/// Negative errno; EPERM: not trusted.
int connect_through(int node);

/// The path first, or for whoever has become another user a node.
/// @param daemon  that is meant; 0: any
/// @param node  of it; -1: whichever this process has
int connect_anyhow(pid_t daemon, int node);

}  // namespace v3d::shim
