/// The descriptor of an open node leads to the daemon: whoever holds it may open connections through it, as
/// whichever user and in whatever root they are by now (wire.h, "device").
#pragma once

#include "ioctl/base/unique_fd.h"

namespace v3d::daemon {

/// The two ends of an open node. Of the client's end nothing is read but what take_knock() takes.
bool make_node_pair(ioctl::UniqueFd* client_end, ioctl::UniqueFd* own_end);

enum class Knock { kNothing, kConnection, kLater, kNeverAgain };

/// Takes one message off the daemon's end, without waiting. kConnection: it brought the daemon's end of a
/// connection, made by the process that sent it. kNothing: it brought none that is served. kNeverAgain: the
/// client has shut that direction, or sent what this library never sends; there is nothing to wait for, and
/// the queue is empty. kLater: what lies there cannot be taken as long as ioctl::closer_has_room() is false.
/// It may be the node itself, which stays open until then.
Knock take_knock(int own_end, ioctl::UniqueFd* connection);

}  // namespace v3d::daemon
