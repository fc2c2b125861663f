/// What needs no message: what the daemon shows of a file (wire::Status) answers waits for its syncobjs and
/// idle BOs, and resets.
#pragma once

#include <cstdint>

#include "shim/files.h"

namespace v3d::shim {

/// From now on knows the file's status. @param fd  the memory, which stays the caller's
void remember_status(uint64_t token, int fd, uint32_t bytes);

/// SYNCOBJ_WAIT, SYNCOBJ_RESET, SYNCOBJ_HANDLE_TO_FD of what has no fence, and WAIT_BO, where the status says
/// enough. False: ask the daemon.
/// @param result  0 or a negative errno
bool find_status_answer(const File& file, uint32_t request, uint64_t argument, int* result);

/// Whether the file's status is known.
bool has_status(const File& file);
/// Wakes who sleeps there, in any process. @param offset  of a futex in the file's status, bytes
void wake_sleepers(const File& file, uint32_t offset);

/// Whether the daemon of a file still answers: 0 or a negative errno. Defined by those who can ask.
int ask_for_life(const File& file);

}  // namespace v3d::shim
