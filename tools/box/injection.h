/// These functions make mappings in another process. A supervisor can answer mmap, but not map anything
/// there; so the caller is made to do it itself.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <mutex>

#include "tools/box/caller.h"

namespace v3d::box {

/// Held while a program stands still under ptrace: who waits for children meanwhile would take its stops.
extern std::mutex g_tracing;
/// The program, if it is a child of this process: its end is for others to take note of. 0: none.
extern std::atomic<pid_t> g_program;

/// Ends the caller's mmap as one of `memory`, a descriptor of ours, from `place` on.
void answer_with_mapping(const Caller& caller, int memory, off_t place);

}  // namespace v3d::box
