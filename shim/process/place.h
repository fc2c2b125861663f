/// A place says where this process finds its daemon, and what it asks of it (ioctl/link/place.h).
#pragma once

#include <sys/types.h>

#include "shim/process/text.h"

namespace v3d::shim {

struct DaemonPlace {
  Text<108> socket;         ///< of the daemon: $V3DEMU_SOCKET, or that of the settings that are asked for
  Text<256> runtime_dir;    ///< the folder of the socket, in which the tree, lock and log lie too
  bool runtime_dir_ours;    ///< ours to create; not so when $V3DEMU_SOCKET names a place of the user's
  const char* not_in_xdg;   ///< why it is not in $XDG_RUNTIME_DIR; nullptr: it is, or there is none
  const char* not_by_name;  ///< why it is not $V3DEMU_SOCKET; nullptr: it is, or there is none
  uid_t user;               ///< whose place it is
};

/// As the environment has it, for the effective user. @param former_user  whose $V3DEMU_SOCKET it was
void read_place(DaemonPlace* out, uid_t former_user);
void read_place(DaemonPlace* out);
/// The same without $V3DEMU_SOCKET.
void read_usual_place(DaemonPlace* out);

/// Of the effective user of now.
const DaemonPlace& place();
/// Whether that is another one than the program started as.
bool has_changed_user();

/// Makes the folder of the socket when it is ours to make. 0 or a positive errno (EPERM: it belongs to
/// somebody else).
int make_runtime_dir(const DaemonPlace& at);
int make_runtime_dir();
/// Whether that folder, when it is ours to make, is a folder of this user alone. 0 or a positive errno.
int check_runtime_dir();
/// Where a daemon of this process listens that others had better not use, as it inherits limits that it
/// cannot lift (daemon/surroundings.h). Empty: there are none, or the socket is named; it listens at
/// at.socket.
void limited_socket(const DaemonPlace& at, Text<108>* out);
inline constexpr char kLimitedSuffix[] = "-limited";  ///< after the name of the socket that others use
/// One line, when the folder is not the one that the environment names: for whoever starts a daemon there.
void tell_of_other_folder();

/// What the environment asks of a daemon: lines of place::kCompareCommand, and that before them. At a socket
/// that $V3DEMU_SOCKET names, what nobody asks for may be anything. False: nothing is asked for.
bool add_wishes(const DaemonPlace& at, Text<8192>* command);

}  // namespace v3d::shim
