/// These functions start the daemon when a client needs one and none answers.
#pragma once

#include "shim/process/text.h"

namespace v3d::shim {

/// Starts v3demud unless another process is at it, and waits until somebody listens on the socket, 10 s at
/// most. 0 or a positive errno; the first failure of a process is told on stderr.
int start_daemon();

/// Where the messages of a daemon go that is started: $V3DEMU_LOG, else a file beside the socket. Empty: to
/// this process's stderr.
void log_file(Path* out);

}  // namespace v3d::shim
