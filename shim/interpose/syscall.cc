/// syscall(), for programs that make ioctl, mmap and what changes mappings by number.
#include "shim/interpose/syscall.h"

#include "shim/process/raw.h"

namespace v3d::shim {

extern "C" {

long v3demu_ioctl_by_number(int fd, unsigned long request, void* argument) {
  return raw::long_result(ioctl_by_number(fd, request, argument));
}

long v3demu_mmap_by_number(void* address, size_t length, int prot, int flags, int fd, off_t offset) {
  return raw::long_result(mmap_by_number(address, length, prot, flags, fd, offset));
}

#if defined(__arm__)
/// mmap2: the offset is in units of 4096 bytes.
long v3demu_mmap2_by_number(void* address, size_t length, int prot, int flags, int fd, uint32_t units) {
  return raw::long_result(mmap_by_number(address, length, prot, flags, fd, off_t{units} * 4096));
}
#endif

#if defined(__x86_64__)  // the others keep no slabs mapped
long v3demu_munmap_by_number(void* address, size_t length) {
  return raw::long_result(munmap_by_number(address, length));
}

long v3demu_mprotect_by_number(void* address, size_t length, int prot) {
  return raw::long_result(mprotect_by_number(address, length, prot));
}

long v3demu_mremap_by_number(void* address, size_t length, size_t new_length, int flags, void* new_address) {
  return raw::long_result(mremap_by_number(address, length, new_length, flags, new_address));
}
#endif

long v3demu_syscall_failed(long value) { return raw::long_result(value); }
}

}  // namespace v3d::shim

// In assembly: clone and vfork by number return twice, which a frame of C would not survive.
#if defined(__x86_64__)
__asm__(R"(
  .text
  .globl syscall
  .type syscall, @function
syscall:
  .cfi_startproc
  endbr64
  movq %rdi, %rax
  movq %rsi, %rdi
  movq %rdx, %rsi
  movq %rcx, %rdx
  movq %r8, %rcx
  movq %r9, %r8
  movq 8(%rsp), %r9
  cmpq $16, %rax                 # SYS_ioctl
  je v3demu_ioctl_by_number
  cmpq $9, %rax                  # SYS_mmap
  je v3demu_mmap_by_number
  cmpq $11, %rax                 # SYS_munmap
  je v3demu_munmap_by_number
  cmpq $10, %rax                 # SYS_mprotect
  je v3demu_mprotect_by_number
  cmpq $25, %rax                 # SYS_mremap
  je v3demu_mremap_by_number
  movq %rcx, %r10
  syscall
  cmpq $-4095, %rax
  jae 1f
  ret
1:
  movq %rax, %rdi
  jmp v3demu_syscall_failed
  .cfi_endproc
  .size syscall, .-syscall
)");
static_assert(SYS_ioctl == 16 && SYS_mmap == 9 && SYS_munmap == 11 && SYS_mprotect == 10 && SYS_mremap == 25);
#elif defined(__aarch64__)
__asm__(R"(
  .text
  .globl syscall
  .type syscall, %function
syscall:
  .cfi_startproc
  hint #34                       // bti c
  mov x8, x0
  mov x0, x1
  mov x1, x2
  mov x2, x3
  mov x3, x4
  mov x4, x5
  mov x5, x6
  cmp x8, #29                    // SYS_ioctl
  b.eq v3demu_ioctl_by_number
  cmp x8, #222                   // SYS_mmap
  b.eq v3demu_mmap_by_number
  svc #0
  cmn x0, #4095
  b.hs v3demu_syscall_failed
  ret
  .cfi_endproc
  .size syscall, .-syscall
)");
static_assert(SYS_ioctl == 29 && SYS_mmap == 222);
#elif defined(__arm__)
// r0 to r3 hold the number and three arguments, the stack the other three, or four of a call with none in
// between.
__asm__(R"(
  .text
  .arm
  .align 2
  .globl syscall
  .type syscall, %function
syscall:
  .cfi_startproc
  mov ip, sp
  push {r4, r5, r6, r7}
  .cfi_adjust_cfa_offset 16
  .cfi_rel_offset r4, 0
  .cfi_rel_offset r5, 4
  .cfi_rel_offset r6, 8
  .cfi_rel_offset r7, 12
  mov r7, r0
  mov r0, r1
  mov r1, r2
  mov r2, r3
  ldm ip, {r3, r4, r5, r6}
  cmp r7, #54                    @ SYS_ioctl
  beq 1f
  cmp r7, #192                   @ SYS_mmap2
  beq 2f
  svc #0
  pop {r4, r5, r6, r7}
  cmn r0, #4096
  bxcc lr
  b v3demu_syscall_failed
1:
  pop {r4, r5, r6, r7}
  b v3demu_ioctl_by_number
2:
  stm ip, {r4, r5}               @ the fifth argument and the sixth
  pop {r4, r5, r6, r7}
  b v3demu_mmap2_by_number
  .cfi_endproc
  .size syscall, .-syscall
)");
static_assert(SYS_ioctl == 54 && SYS_mmap2 == 192);
#endif
