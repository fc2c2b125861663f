#include "shim/board/register_window.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <atomic>
#include <cstring>

#include "ioctl/link/firmware.h"
#include "shim/board/firmware_calls.h"
#include "shim/board/store_decoder.h"
#include "shim/process/config.h"
#include "shim/process/raw.h"
#include "shim/process/text.h"
#include "shim/process/user_memory.h"

namespace v3d::shim {

#if defined(__x86_64__)
namespace {

/// Where windows have been opened. Of one that was unmapped since nobody hears: what is there now tells, by
/// the page's mark.
constexpr size_t kMostWindows = 16;
constinit std::atomic<uintptr_t> windows[kMostWindows] = {};
constinit std::atomic<uint32_t> num_opened{0};

/// Of actions: whoever changes them, which signal handlers may do.
constinit std::atomic_flag changing = ATOMIC_FLAG_INIT;
constinit std::atomic<bool> installed{false};
/// What the program wants of SIGSEGV.
constinit struct sigaction programs_action {};

/// As the kernel has it.
struct KernelAction {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)();
  uint64_t mask;
};
constexpr unsigned long kRestorer = 0x04000000;

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

bool has_mark(uintptr_t window) {
  uint64_t mark = 0;
  return copy_from_user(&mark, window + wire::kRegisterMark, sizeof(mark)) && mark == wire::kRegisterMagic;
}

/// The window in which an address lies; 0: none.
uintptr_t find_window(uintptr_t address) {
  const uintptr_t page = address & ~uintptr_t{wire::kRegisterBytes - 1};
  for (const auto& window : windows)
    if (window.load(std::memory_order_acquire) == page) return page && has_mark(page) ? page : 0;
  return 0;
}

constexpr int kRegisterOrder[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

/// Once for each register.
void say_unknown(uint32_t offset, const char* what) {
  static constinit std::atomic<uint32_t> told[wire::kRegisterBytes / 4 / 32] = {};
  const uint32_t word = offset / 4;
  if (told[word / 32].fetch_or(1u << word % 32) >> word % 32 & 1) return;
  complain("/dev/mem: not implemented: ", what,
           Text<48>().add(" the V3D's register 0x").add(uint64_t{offset}, 16).c_str());
}

void write_register(uint32_t offset, uint32_t value) {
  uint32_t nothing;
  const int error = call_firmware(wire::FirmwareCall::kWriteRegister, offset, value, 0, &nothing);
  if (error == -EINVAL) say_unknown(offset, "stores to");
  static constinit std::atomic<bool> told{false};
  if (error && error != -EINVAL && !told.exchange(true))
    complain("/dev/mem: the daemon does not take what is stored to the V3D's registers");
}

void say_undecoded(const uint8_t* code) {
  Text<64> bytes;
  for (int n = 0; n < 15; ++n) bytes.add(' ').add(uint64_t{code[n]} >> 4, 16).add(uint64_t{code[n]} & 15, 16);
  complain("/dev/mem: not implemented: a store to the V3D's registers by the instruction", bytes.c_str());
}

/// Executes the store. False: the signal is the program's.
bool execute(const siginfo_t& info, ucontext_t* context) {
  constexpr long kWrite = 2;  // of the error code of page faults
  const auto address = reinterpret_cast<uintptr_t>(info.si_addr);
  greg_t* const registers = context->uc_mcontext.gregs;
  if (info.si_code != SEGV_ACCERR || !(registers[REG_ERR] & kWrite)) return false;
  const uintptr_t window = find_window(address);
  if (!window) return false;
  const auto offset = static_cast<uint32_t>(address - window);
  uint8_t code[16] = {};
  copy_from_user(code, static_cast<uint64_t>(registers[REG_RIP]), 15);
  uint64_t old = 0;
  copy_from_user(&old, address, offset + 8 <= wire::kRegisterBytes ? 8 : wire::kRegisterBytes - offset);
  StoppedThread thread;
  for (int n = 0; n < 16; ++n) thread.registers[n] = static_cast<uint64_t>(registers[kRegisterOrder[n]]);
  thread.flags = static_cast<uint64_t>(registers[REG_EFL]);
  Store store;
  if (!execute_store(code, old, &thread, &store)) {
    say_undecoded(code);
    return false;
  }
  if (offset % 4 || store.width < 4) {
    say_unknown(offset & ~3u, "stores of less than a word to");
  } else {
    write_register(offset, static_cast<uint32_t>(store.value));
    if (store.width == 8 && offset + 4 < wire::kRegisterBytes)
      write_register(offset + 4, static_cast<uint32_t>(store.value >> 32));
  }
  for (int n = 0; n < 16; ++n) registers[kRegisterOrder[n]] = static_cast<greg_t>(thread.registers[n]);
  registers[REG_EFL] = static_cast<greg_t>(thread.flags);
  registers[REG_RIP] += store.length;
  return true;
}

/// The kernel has done for the program's action what its flags and mask say: they are ours as well.
void pass_on(int signal, siginfo_t* info, void* context) {
  const struct sigaction action = programs_action;
  const bool is_function =
      action.sa_flags & SA_SIGINFO || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
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

/// What a handler of the program's would run with, ours runs with.
KernelAction own_action(const struct sigaction& program) {
  KernelAction action{on_fault, 0, v3demu_signal_return, 0};
  const auto flags = static_cast<unsigned long>(program.sa_flags);
  action.flags = SA_SIGINFO | kRestorer | (flags & (SA_ONSTACK | SA_NODEFER | SA_RESTART));
  memcpy(&action.mask, &program.sa_mask, sizeof(action.mask));
  return action;
}

void install() {
  while (changing.test_and_set(std::memory_order_acquire)) raw::call(SYS_sched_yield);
  if (!installed.load()) {
    KernelAction old{};
    set_action(nullptr, &old);
    programs_action = {};
    programs_action.sa_sigaction = old.handler;
    programs_action.sa_flags = static_cast<int>(old.flags & ~kRestorer);
    memcpy(&programs_action.sa_mask, &old.mask, sizeof(old.mask));
    const KernelAction own = own_action(programs_action);
    set_action(&own, nullptr);
    installed = true;
  }
  changing.clear(std::memory_order_release);
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
  while (changing.test_and_set(std::memory_order_acquire)) raw::call(SYS_sched_yield);
  const struct sigaction before = programs_action;
  if (action) {
    programs_action = *action;
    const KernelAction own = own_action(*action);
    set_action(&own, nullptr);
  }
  changing.clear(std::memory_order_release);
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
