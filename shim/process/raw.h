/// These functions make system calls without libc: no errno, no cancellation point, no way back into an
/// interposed function. Results are those of the kernel: a value, or -errno.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace v3d::shim::raw {

inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
#if defined(__x86_64__)
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
#elif defined(__arm__)
  // r7, the number's, may be the frame pointer, which a named register would take from the compiler.
  register long r0 __asm__("r0") = a;
  register long r1 __asm__("r1") = b;
  register long r2 __asm__("r2") = c;
  register long r3 __asm__("r3") = d;
  register long r4 __asm__("r4") = e;
  register long r5 __asm__("r5") = f;
  long kept;
  __asm__ volatile("mov %[kept], r7\n\tmov r7, %[number]\n\tsvc #0\n\tmov r7, %[kept]"
                   : "+r"(r0), [kept] "=&r"(kept)
                   : "r"(r1), "r"(r2), "r"(r3), "r"(r4), "r"(r5), [number] "r"(number)
                   : "memory");
  return r0;
#else
#error "the shim knows the system call conventions of x86-64, AArch64 and 32-bit ARM only"
#endif
}

/// Where a long is shorter than a pointer into a file, the kernel takes two, and calls of other numbers.
inline constexpr bool kIs32Bit = sizeof(long) == 4;
static_assert(sizeof(off_t) == 8, "-D_FILE_OFFSET_BITS=64 is missing");

template <typename T>
long word(T* pointer) {
  return reinterpret_cast<long>(pointer);
}
/// Addresses that the kernel or a caller gives as numbers.
inline void* pointer(uint64_t address) {
  return reinterpret_cast<void*>(  // NOLINT(performance-no-int-to-ptr): a number is all there is
      static_cast<uintptr_t>(address));
}
/// The number of an address as structures of the kernel have it: zeros above a short one.
template <typename T>
uint64_t address_of(T* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}
/// Whether a number names an address at all.
constexpr bool is_address(uint64_t number) { return number <= UINTPTR_MAX; }

inline int openat(int dir, const char* path, int flags, mode_t mode = 0) {
  return static_cast<int>(call(SYS_openat, dir, word(path), flags, mode));
}
inline int open(const char* path, int flags, mode_t mode = 0) { return openat(AT_FDCWD, path, flags, mode); }
inline int close(int fd) { return static_cast<int>(call(SYS_close, fd)); }
inline long read(int fd, void* data, size_t size) {
  return call(SYS_read, fd, word(data), static_cast<long>(size));
}
inline long write(int fd, const void* data, size_t size) {
  return call(SYS_write, fd, word(data), static_cast<long>(size));
}
#if defined(__arm__)
inline constexpr long kFstatat = SYS_fstatat64, kFstat = SYS_fstat64, kGeteuid = SYS_geteuid32,
                      kGetegid = SYS_getegid32;
#else
inline constexpr long kFstatat = SYS_newfstatat, kFstat = SYS_fstat, kGeteuid = SYS_geteuid,
                      kGetegid = SYS_getegid;
#endif
inline int fstatat(int dir, const char* path, struct stat* st, int flags) {
  return static_cast<int>(call(kFstatat, dir, word(path), word(st), flags));
}
/// In the last register of an fstat, which the kernel does not read: the call is the library's own, to which
/// a supervisor (tools/box/filter.cc) leaves what the descriptor is.
inline constexpr uint32_t kOwnCall = 0x76336465;
inline int fstat(int fd, struct stat* st) {
  return static_cast<int>(call(kFstat, fd, word(st), 0, 0, 0, kOwnCall));
}
inline int fstatfs(int fd, struct statfs* st) {
#if defined(__arm__)
  return static_cast<int>(call(SYS_fstatfs64, fd, sizeof(*st), word(st)));
#else
  return static_cast<int>(call(SYS_fstatfs, fd, word(st)));
#endif
}
/// The halves of an offset lie in a pair of registers of which the first one's number is even.
inline int ftruncate(int fd, uint64_t size) {
#if defined(__arm__)
  return static_cast<int>(
      call(SYS_ftruncate64, fd, 0, static_cast<long>(size & ~0u), static_cast<long>(size >> 32)));
#else
  return static_cast<int>(call(SYS_ftruncate, fd, static_cast<long>(size)));
#endif
}
inline long pread(int fd, void* data, size_t size, uint64_t offset) {
#if defined(__arm__)
  return call(SYS_pread64, fd, word(data), static_cast<long>(size), 0, static_cast<long>(offset & ~0u),
              static_cast<long>(offset >> 32));
#else
  return call(SYS_pread64, fd, word(data), static_cast<long>(size), static_cast<long>(offset));
#endif
}
inline long readlinkat(int dir, const char* path, char* text, size_t size) {
  return call(SYS_readlinkat, dir, word(path), word(text), static_cast<long>(size));
}
inline int access(const char* path, int mode) {
  return static_cast<int>(call(SYS_faccessat, AT_FDCWD, word(path), mode));
}
inline int mkdirat(int dir, const char* path, mode_t mode) {
  return static_cast<int>(call(SYS_mkdirat, dir, word(path), mode));
}
inline int symlinkat(const char* target, int dir, const char* path) {
  return static_cast<int>(call(SYS_symlinkat, word(target), dir, word(path)));
}
inline int unlinkat(int dir, const char* path, int flags) {
  return static_cast<int>(call(SYS_unlinkat, dir, word(path), flags));
}
inline int rename(const char* from, const char* to) {
  return static_cast<int>(call(SYS_renameat2, AT_FDCWD, word(from), AT_FDCWD, word(to), 0));
}
inline int fcntl(int fd, int command, long argument) {
  return static_cast<int>(call(SYS_fcntl, fd, command, argument));
}
inline int socket(int domain, int type) { return static_cast<int>(call(SYS_socket, domain, type, 0)); }
inline int connect(int fd, const sockaddr* address, socklen_t size) {
  return static_cast<int>(call(SYS_connect, fd, word(address), size));
}
inline long sendmsg(int fd, const msghdr* message, int flags) {
  return call(SYS_sendmsg, fd, word(message), flags);
}
inline long recvmsg(int fd, msghdr* message, int flags) {
  return call(SYS_recvmsg, fd, word(message), flags);
}
inline int getsockopt(int fd, int level, int option, void* value, socklen_t* size) {
  return static_cast<int>(call(SYS_getsockopt, fd, level, option, word(value), word(size)));
}
inline pid_t getpid() { return static_cast<pid_t>(call(SYS_getpid)); }
inline uid_t geteuid() { return static_cast<uid_t>(call(kGeteuid)); }
inline gid_t getegid() { return static_cast<gid_t>(call(kGetegid)); }
inline void sleep_ms(long ms) {
  timespec time{ms / 1000, (ms % 1000) * 1000000};
  call(SYS_nanosleep, word(&time), 0);
}
inline uint64_t monotonic_ns() {
  timespec time{};
  call(SYS_clock_gettime, CLOCK_MONOTONIC, word(&time));
  return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

/// The same without a system call, in libc.
inline uint64_t fast_monotonic_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}
/// wire::Channel::kNoCpu where it takes a system call to know, or nobody does. (libc reads what the kernel
/// keeps up to date in the thread's memory, or asks the vDSO.)
inline uint32_t current_cpu() {
#if defined(__x86_64__)
  return static_cast<uint32_t>(sched_getcpu());
#else
  return ~0u;
#endif
}
/// For loops that wait for another processor.
inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  __asm__ volatile("yield");
#endif
}

/// What the kernel says: an address, which may look negative, or -errno.
inline long map(void* address, size_t size, int prot, int flags, int fd, off_t offset) {
#if defined(__arm__)
  constexpr off_t kUnit = 4096;  // whatever the size of a page is
  if (offset % kUnit) return -EINVAL;
  return call(SYS_mmap2, word(address), static_cast<long>(size), prot, flags, fd,
              static_cast<long>(offset / kUnit));
#else
  return call(SYS_mmap, word(address), static_cast<long>(size), prot, flags, fd, offset);
#endif
}
/// Of the host: the daemon does not start where they are larger.
inline constexpr uint64_t kPage = 4096;
constexpr uint64_t whole_pages(uint64_t bytes) { return (bytes + kPage - 1) & ~(kPage - 1); }
inline bool is_error(long result) { return result < 0 && result > -4096; }
/// nullptr when there is no memory.
inline void* mmap(void* address, size_t size, int prot, int flags, int fd, off_t offset) {
  const long result = map(address, size, prot, flags, fd, offset);
  return is_error(result) ? nullptr : pointer(static_cast<uint64_t>(result));
}
#ifdef __SANITIZE_THREAD__  // sees libc's calls alone: else memory's last owner seems to race with the next
                            // one
inline void* map_memory(size_t size) {
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}
inline void unmap_memory(void* memory, size_t size) { ::munmap(memory, size); }
#else
inline void* map_memory(size_t size) {
  return mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
inline void unmap_memory(void* memory, size_t size) {
  call(SYS_munmap, word(memory), static_cast<long>(size));
}
#endif

/// libc's habit from the kernel's: -1 and errno.
inline long long_result(long value) {
  if (!is_error(value)) return value;
  errno = static_cast<int>(-value);
  return -1;
}
inline int result(long value) { return static_cast<int>(long_result(value)); }

/// Restores errno: for work behind the caller's back.
class KeepErrno {
 public:
  KeepErrno() : saved_(errno) {}
  ~KeepErrno() { errno = saved_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  int saved_;
};

}  // namespace v3d::shim::raw
