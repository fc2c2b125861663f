#include "shim/board/register_window.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <atomic>
#include <cstring>

#include "ioctl/link/firmware.h"
#include "shim/board/firmware_calls.h"
#include "shim/board/register_store.h"
#include "shim/process/config.h"
#include "shim/process/process_lock.h"
#include "shim/process/raw.h"

namespace v3d::shim {

#if defined(__x86_64__)
namespace {

/// Where windows have been opened. Of one that was unmapped since nobody hears: what is there now tells, by
/// the page's mark.
constexpr size_t kMostWindows = 16;
constinit std::atomic<uintptr_t> windows[kMostWindows] = {};
constinit std::atomic<uint32_t> num_opened{0};

/// Of actions: whoever changes them, which signal handlers may do; below such a one they do without it.
constinit ProcessLock changing;
constinit std::atomic<bool> installed{false};
/// What the program wants of SIGSEGV.
constinit struct sigaction programs_action {};

extern "C" void v3demu_signal_return();
__asm__(R"(
  .text
  .hidden v3demu_signal_return
  .type v3demu_signal_return, @function
v3demu_signal_return:
  movq $15, %rax                 # SYS_rt_sigreturn
  syscall
  .size v3demu_signal_return, .-v3demu_signal_return
)");

long set_action(const KernelAction* action, KernelAction* old) {
  return raw::call(SYS_rt_sigaction, SIGSEGV, raw::word(action), raw::word(old), sizeof(uint64_t));
}

/// The window in which an address lies; 0: none.
uintptr_t find_window(uintptr_t address) {
  const uintptr_t page = address & ~uintptr_t{wire::kRegisterBytes - 1};
  for (const auto& window : windows)
    if (window.load(std::memory_order_acquire) == page) return page ? find_register_page(page) : 0;
  return 0;
}

/// Executes the store. False: the signal is the program's.
bool execute(const siginfo_t& info, ucontext_t* context) {
  const uintptr_t window = find_window(reinterpret_cast<uintptr_t>(info.si_addr));
  return window && execute_register_store(info, window, context);
}

/// The kernel has done for the program's action what its flags and mask say: they are ours as well.
void pass_on(int signal, siginfo_t* info, void* context) {
  const struct sigaction action = programs_action;
  const bool is_function = action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
  if (!is_function || action.sa_flags & static_cast<int>(SA_RESETHAND)) {
    // A fault cannot be ignored: the instruction is executed again, and the kernel ends the program.
    programs_action = {};
    if (!is_function) {
      const KernelAction usual{};
      set_action(&usual, nullptr);
      installed = false;
      return;
    }
  }
  if (action.sa_flags & SA_SIGINFO)
    action.sa_sigaction(signal, info, context);
  else
    action.sa_handler(signal);
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const raw::KeepErrno keep;
  if (!execute(*info, static_cast<ucontext_t*>(context))) pass_on(signal, info, context);
}

KernelAction own_action(const struct sigaction& program) {
  KernelAction action{raw::address_of(on_fault), own_flags(static_cast<uint64_t>(program.sa_flags)),
                      raw::address_of(v3demu_signal_return), 0};
  memcpy(&action.mask, &program.sa_mask, sizeof(action.mask));
  return action;
}

void install() {
  const bool held = changing.hold();
  if (!installed.load()) {
    KernelAction old{};
    set_action(nullptr, &old);
    programs_action = {};
    memcpy(&programs_action.sa_sigaction, &old.handler, sizeof(old.handler));
    programs_action.sa_flags = static_cast<int>(old.flags & ~kRestorerFlag);
    memcpy(&programs_action.sa_mask, &old.mask, sizeof(old.mask));
    const KernelAction own = own_action(programs_action);
    set_action(&own, nullptr);
    installed = true;
  }
  if (held) changing.release();
}

}  // namespace

int open_register_window(void* address, int prot) {
  int fd;
  uint32_t nothing;
  const int error = call_firmware(wire::FirmwareCall::kMapRegisters, 0, 0, 0, &nothing, &fd);
  if (error) return error;
  const long mapped = raw::map(address, wire::kRegisterBytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
  raw::close(fd);
  if (raw::is_error(mapped)) return static_cast<int>(mapped);
  if (!(prot & PROT_WRITE)) return 0;
  install();
  const auto page = reinterpret_cast<uintptr_t>(address);
  for (auto& window : windows)
    if (window.load(std::memory_order_relaxed) == page) return 0;
  windows[num_opened.fetch_add(1) % kMostWindows].store(page, std::memory_order_release);
  return 0;
}

bool segv_action(const struct sigaction* action, struct sigaction* old, int* result) {
  if (!installed.load(std::memory_order_acquire)) return false;
  const bool held = changing.hold();
  const struct sigaction before = programs_action;
  if (action) {
    programs_action = *action;
    const KernelAction own = own_action(*action);
    set_action(&own, nullptr);
  }
  if (held) changing.release();
  if (old) *old = before;
  *result = 0;
  return true;
}

#else

int open_register_window(void*, int) {
  complain("/dev/mem: not implemented: registers of the V3D, in programs that are not for x86-64");
  return -ENODEV;
}

bool segv_action(const struct sigaction*, struct sigaction*, int*) { return false; }

#endif

}  // namespace v3d::shim
