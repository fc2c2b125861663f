/// Stores to the V3D's registers fault, since their page is mapped to be read: the instruction is executed
/// here.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <cstdint>

namespace v3d::shim {

#if defined(__x86_64__)
/// The page of registers of the caller's in which an address lies, by its mark; 0: none.
uint64_t find_register_page(uint64_t address);

/// Executes the caller's store to such a page. False: it was none, and nothing has changed.
bool execute_register_store(const siginfo_t& info, uint64_t page, ucontext_t* context);

/// The action of a signal as the kernel has it.
struct KernelAction {
  uint64_t handler, flags, restorer, mask;
};
inline constexpr uint64_t kRestorerFlag = 0x04000000;

/// Flags of the action that gets such faults. What a handler of the program's would run with, it runs with.
inline uint64_t own_flags(uint64_t program) {
  constexpr uint64_t kKept = SA_ONSTACK | SA_NODEFER | SA_RESTART;
  return SA_SIGINFO | kRestorerFlag | (program & kKept);
}
#endif

}  // namespace v3d::shim
