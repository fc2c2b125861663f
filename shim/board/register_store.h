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
#endif

}  // namespace v3d::shim
