/// The V3D's registers in the memory of a program that has mapped them (vc4-qpu.md 13). Loads see a page that
/// the daemon writes. A store faults, and the handler of SIGSEGV, which is in front of the program's own,
/// executes it: it decodes the instruction, and sends the daemon offset and value.
#pragma once

#include <csignal>

namespace v3d::shim {

/// Maps the page over what is there. 0 or a negative errno. @param prot  of mmap(2)
int open_register_window(void* address, int prot);

/// sigaction(2) of SIGSEGV, where a window is open: what the program asks for is remembered, and so is what
/// it is told. False: there is none, and the call is libc's.
bool segv_action(const struct sigaction* action, struct sigaction* old, int* result);

}  // namespace v3d::shim
