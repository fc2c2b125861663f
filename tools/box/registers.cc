#include "tools/box/registers.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>

#include "ioctl/link/firmware.h"
#include "shim/board/firmware_calls.h"
#include "shim/board/register_store.h"
#include "shim/process/config.h"
#include "shim/process/raw.h"
#include "tools/box/injection.h"

namespace v3d::box {

#if defined(__x86_64__)
namespace {

/// Where the handler is in each program that has one: above what programs choose and below what the kernel
/// gives.
constexpr uint64_t kCode = 0x5f3300000000, kPage = 4096, kRecord = kCode + kPage;
/// ioctl(-1, kStore, context, siginfo): 'd' as the filter lets it through to the supervisor.
constexpr uint32_t kStore = 0xc00064ff;
/// What it returns besides the address of the program's own handler.
enum Next : int64_t { kGoOn = 0, kDie = 1 };

struct Record {
  uint64_t magic;
  shim::KernelAction program;  ///< what the program has set
  shim::KernelAction own;      ///< what stands in the kernel
};
constexpr uint64_t kMagic = 0x766533642d736567;

// The handler. In edi, rsi and rdx it has what a handler of the program's gets, to which it may jump.
extern "C" const char v3demu_box_handler[], v3demu_box_restorer[], v3demu_box_handler_end[];
__asm__(R"(
  .pushsection .rodata
v3demu_box_handler:
  push %rdi
  push %rsi
  push %rdx
  mov %rsi, %r10
  mov $0xffffffff, %edi
  mov $0xc00064ff, %esi
  mov $16, %eax                  # SYS_ioctl
  syscall
  pop %rdx
  pop %rsi
  pop %rdi
  test %rax, %rax
  jz 1f
  cmp $1, %rax
  jle 2f
  jmp *%rax
1:
  ret
2:                               # to the usual end: the instruction faults again
  lea 3f(%rip), %rsi
  mov $11, %edi
  xor %edx, %edx
  mov $8, %r10d
  mov $0x76336465, %r9d          # raw::kOwnCall
  mov $13, %eax                  # SYS_rt_sigaction
  syscall
  ret
3:
  .zero 32
v3demu_box_restorer:
  mov $15, %eax                  # SYS_rt_sigreturn
  syscall
v3demu_box_handler_end:
  .popsection
)");
static_assert(kStore == 0xc00064ff && shim::raw::kOwnCall == 0x76336465 && SIGSEGV == 11 && SYS_ioctl == 16 &&
              SYS_rt_sigaction == 13 && SYS_rt_sigreturn == 15);

bool has_handler(const Caller& caller, Record* record) {
  return caller.read(record, kRecord, sizeof *record) && record->magic == kMagic;
}

shim::KernelAction own_action(const shim::KernelAction& program) {
  return {kCode, shim::own_flags(program.flags),
          kCode + static_cast<uint64_t>(v3demu_box_restorer - v3demu_box_handler), program.mask};
}

/// Of a thread that stands still.
bool copy(const Caller& caller, uint64_t there, void* here, size_t size, bool to_caller) {
  iovec own{here, size}, its{shim::raw::pointer(there), size};
  const ssize_t copied = to_caller ? process_vm_writev(caller.thread(), &own, 1, &its, 1, 0)
                                   : process_vm_readv(caller.thread(), &own, 1, &its, 1, 0);
  return copied == static_cast<ssize_t>(size);
}

/// Sets the action that stands in the record.
uint64_t set_own(Inside& inside) {
  return inside.call(SYS_rt_sigaction,
                     {SIGSEGV, kRecord + offsetof(Record, own), 0, 8, 0, shim::raw::kOwnCall});
}

/// 0 or what the kernel says.
uint64_t install(const Caller& caller, Inside& inside) {
  const uint64_t at =
      inside.call(SYS_mmap, {kCode, 2 * kPage, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, ~uint64_t{0}, 0});
  if (at != kCode) return static_cast<uint64_t>(-ENOMEM);
  Record record{kMagic, {}, {}};
  inside.call(SYS_rt_sigaction, {SIGSEGV, 0, kRecord + offsetof(Record, program), 8, 0, shim::raw::kOwnCall});
  const auto bytes = static_cast<size_t>(v3demu_box_handler_end - v3demu_box_handler);
  if (!copy(caller, kRecord + offsetof(Record, program), &record.program, sizeof record.program, false) ||
      !copy(caller, kCode, const_cast<char*>(v3demu_box_handler), bytes, true))
    return static_cast<uint64_t>(-EFAULT);
  record.own = own_action(record.program);
  if (!copy(caller, kRecord, &record, sizeof record, true)) return static_cast<uint64_t>(-EFAULT);
  inside.call(SYS_mprotect, {kCode, kPage, PROT_READ | PROT_EXEC, 0, 0, 0});
  return set_own(inside);
}

}  // namespace

void answer_with_peripherals(Caller& caller, const shim::PhysicalMemory& memory) {
  const __u64* args = caller.data().args;
  const uint64_t address = args[0], fixed = args[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE);
  const bool writes = args[2] & PROT_WRITE;
  int page = -1, number = -1;
  uint32_t nothing;
  int error =
      memory.has_v3d ? shim::call_firmware(wire::FirmwareCall::kMapRegisters, 0, 0, 0, &nothing, &page) : 0;
  if (page >= 0) {
    number = caller.give(page, true);
    error = number < 0 ? number : 0;
    close(page);
  }
  if (error) {
    caller.answer(error);
    return;
  }
  Record record;
  const bool installs = writes && memory.has_v3d && !has_handler(caller, &record);
  answer_inside(caller, [&](Inside& inside) {
    uint64_t at =
        inside.call(SYS_mmap, {address, memory.bytes, PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, ~uint64_t{0}, 0});
    if (!memory.has_v3d) return at;
    uint64_t result = at;
    if (!shim::raw::is_error(static_cast<long>(at)))
      result = inside.call(SYS_mmap, {at + memory.v3d, wire::kRegisterBytes, PROT_READ,
                                      MAP_SHARED | MAP_FIXED, own_number(number), 0});
    inside.call(SYS_close, {static_cast<uint64_t>(number), 0, 0, 0, 0, 0});
    if (!shim::raw::is_error(static_cast<long>(result)) && installs) {
      const uint64_t refused = install(caller, inside);
      if (refused != 0) result = refused;
    }
    if (!shim::raw::is_error(static_cast<long>(result))) return at;
    if (!shim::raw::is_error(static_cast<long>(at))) inside.call(SYS_munmap, {at, memory.bytes, 0, 0, 0, 0});
    return result;
  });
}

bool is_register_store(const seccomp_data& call) {
  return static_cast<int>(call.args[0]) == -1 && static_cast<uint32_t>(call.args[1]) == kStore;
}

void answer_register_store(Caller& caller) {
  const uint64_t context_at = caller.data().args[2], info_at = caller.data().args[3];
  constexpr size_t kRegisters = offsetof(ucontext_t, uc_mcontext.gregs);
  siginfo_t info{};
  ucontext_t context{};
  Record record;
  if (!has_handler(caller, &record) || !caller.read(&info, info_at, sizeof info) ||
      !caller.read(&context, context_at, kRegisters + sizeof context.uc_mcontext.gregs)) {
    caller.answer(kDie);
    return;
  }
  const uint64_t page = shim::find_register_page(shim::raw::address_of(info.si_addr));
  if (page && shim::execute_register_store(info, page, &context) &&
      caller.write(context_at + kRegisters, &context.uc_mcontext.gregs, sizeof context.uc_mcontext.gregs)) {
    caller.answer(kGoOn);
    return;
  }
  const shim::KernelAction program = record.program;
  const auto dfl = shim::raw::address_of(SIG_DFL), ign = shim::raw::address_of(SIG_IGN);
  const bool is_function = program.handler != dfl && program.handler != ign;
  if (is_function && program.flags & SA_RESETHAND) {
    record.program = {};
    caller.write(kRecord, &record, sizeof record);
  }
  caller.answer(is_function ? static_cast<int64_t>(program.handler) : int64_t{kDie});
}

bool answer_action(Caller& caller) {
  const __u64* args = caller.data().args;
  Record record;
  if (args[0] != SIGSEGV || args[3] != sizeof(uint64_t) || !has_handler(caller, &record)) return false;
  const shim::KernelAction before = record.program;
  if (args[1] && !caller.read(&record.program, args[1], sizeof record.program)) {
    caller.answer(-EFAULT);
    return true;
  }
  record.own = own_action(record.program);
  if ((args[2] && !caller.write(args[2], &before, sizeof before)) ||
      (args[1] && !caller.write(kRecord, &record, sizeof record))) {
    caller.answer(-EFAULT);
    return true;
  }
  if (args[1])
    answer_inside(caller, set_own);
  else
    caller.answer(0);
  return true;
}

#else

void answer_with_peripherals(Caller& caller, const shim::PhysicalMemory&) {
  shim::complain("/dev/mem: not implemented: registers of the V3D, in programs that are not for x86-64");
  caller.answer(-ENODEV);
}
bool is_register_store(const seccomp_data&) { return false; }
void answer_register_store(Caller& caller) { caller.answer(-EBADF); }
bool answer_action(Caller&) { return false; }

#endif

}  // namespace v3d::box
