#include "tools/box/filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "shim/process/raw.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV  // Linux 5.19
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

namespace v3d::box {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#else
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif

constexpr uint32_t kNumber = offsetof(seccomp_data, nr), kArch = offsetof(seccomp_data, arch);
constexpr uint32_t low_half(uint32_t argument) {
  return static_cast<uint32_t>(offsetof(seccomp_data, args)) + argument * 8;
}
constexpr uint32_t high_half(uint32_t argument) { return low_half(argument) + 4; }

constexpr sock_filter load(uint32_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset); }
constexpr sock_filter give(uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }
/// Goes on with the next instruction if the accumulator is that, else skips some.
constexpr sock_filter unless(uint32_t value, uint8_t skip) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip);
}
constexpr sock_filter unless_bits(uint32_t bits, uint8_t skip) {
  return BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, skip);
}

constexpr uint32_t kAsk = SECCOMP_RET_USER_NOTIF, kAllow = SECCOMP_RET_ALLOW;
/// Stands for the one or the other of these, where only programs with /dev/mem are asked about.
constexpr uint32_t kAskOfMemory = kAsk | 1;

// Whatever can be told without the caller's memory is decided here: an answer costs two switches of
// processes.
constexpr sock_filter kProgram[] = {
    load(kArch),
    unless(kArchitecture, 1),
    BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0),
    give(kAllow),
    load(kNumber),
#if defined(SYS_open)
    unless(SYS_open, 1),
    give(kAsk),
#endif
    unless(SYS_openat, 1),
    give(kAsk),
    unless(SYS_openat2, 1),
    give(kAsk),
    unless(SYS_fstat, 4),  // a DRM file is a socket, and to the preload library stays one
    load(low_half(5)),
    unless(shim::raw::kOwnCall, 1),
    give(kAllow),
    give(kAsk),
    unless(SYS_newfstatat, 4),
    load(low_half(3)),
    unless_bits(AT_EMPTY_PATH, 1),
    give(kAsk),
    give(kAllow),
    unless(SYS_statx, 4),
    load(low_half(2)),
    unless_bits(AT_EMPTY_PATH, 1),
    give(kAsk),
    give(kAllow),
    // DRM and vcio, framebuffer, sync_file, dma-buf, its heaps, udmabuf and vcsm-cma by the type in the
    // request's second byte.
    unless(SYS_ioctl, 12),
    load(low_half(1)),
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff00),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 'd' << 8, 7, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 'F' << 8, 6, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, '>' << 8, 5, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 'b' << 8, 4, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 'H' << 8, 3, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 'u' << 8, 2, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 'J' << 8, 1, 0),
    give(kAllow),
    give(kAsk),
    give(kAllow),
    // The offsets that MMAP_BO gives begin at 4 GiB; what is mapped without a file has none. Addresses of
    // /dev/mem are any.
    unless(SYS_mmap, 11),
    load(high_half(4)),
    unless(shim::raw::kOwnCall, 1),
    give(kAllow),
    load(high_half(5)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
    give(kAsk),
    load(low_half(3)),
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, MAP_SHARED | MAP_ANONYMOUS),
    unless(MAP_SHARED, 1),
    give(kAskOfMemory),
    give(kAllow),
    // Of programs that have the registers of the V3D behind /dev/mem, SIGSEGV is the supervisor's before it
    // is theirs.
    unless(SYS_rt_sigaction, 6),
    load(low_half(0)),
    unless(SIGSEGV, 4),
    load(low_half(5)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, shim::raw::kOwnCall, 1, 0),
    give(kAskOfMemory),
    give(kAllow),
    give(kAllow),
};

int install(unsigned long flags, bool physical_memory) {
  sock_filter program[std::size(kProgram)];
  for (size_t i = 0; i < std::size(kProgram); ++i) {
    program[i] = kProgram[i];
    if (program[i].code == (BPF_RET | BPF_K) && program[i].k == kAskOfMemory)
      program[i].k = physical_memory ? kAsk : kAllow;
  }
  sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  const long listener =
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags | SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
  return listener < 0 ? -errno : static_cast<int>(listener);
}

}  // namespace

int install_filter(bool physical_memory, bool* unstoppable) {
  *unstoppable = true;
  int listener = install(SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, physical_memory);
  if (listener == -EACCES) {
    // Who is not privileged has to give up gaining rights.
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -errno;
    listener = install(SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, physical_memory);
  }
  if (listener != -EINVAL) return listener;
  *unstoppable = false;
  return install(0, physical_memory);
}

}  // namespace v3d::box
