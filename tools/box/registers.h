/// Programs into which nothing is preloaded store to the V3D's registers, too: the page is mapped into them
/// to be read, with a handler of SIGSEGV that has the supervisor execute the store. What the program itself
/// wants of that signal is kept beside the handler, in the program's memory: forks hand it on, exec drops it.
#pragma once

#include "shim/board/physical_memory.h"
#include "tools/box/caller.h"

namespace v3d::box {

/// Ends the caller's mmap as one of peripherals.
void answer_with_peripherals(Caller& caller, const shim::PhysicalMemory& memory);

/// Whether an ioctl is the handler's; its end says what the handler is to do.
bool is_register_store(const seccomp_data& call);
void answer_register_store(Caller& caller);

/// rt_sigaction of SIGSEGV, in programs that have the handler. False: the kernel answers.
bool answer_action(Caller& caller);

}  // namespace v3d::box
