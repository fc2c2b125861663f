/// These functions make system calls without libc: no errno, no cancellation point, no way back into an
/// interposed function. Results are those of the kernel: a value, or -errno.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
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
#else
#error "the shim knows the system call conventions of x86-64 and AArch64 only"
#endif
}

template <typename T>
long word(T* pointer) {
  return reinterpret_cast<long>(pointer);
}
/// Addresses that the kernel or a caller gives as numbers.
inline void* pointer(uint64_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): a number is all there is
}

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
inline int fstatat(int dir, const char* path, struct stat* st, int flags) {
  return static_cast<int>(call(SYS_newfstatat, dir, word(path), word(st), flags));
}
inline int fstat(int fd, struct stat* st) { return static_cast<int>(call(SYS_fstat, fd, word(st))); }
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
inline uid_t geteuid() { return static_cast<uid_t>(call(SYS_geteuid)); }
inline gid_t getegid() { return static_cast<gid_t>(call(SYS_getegid)); }
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

/// nullptr when there is no memory.
inline void* mmap(void* address, size_t size, int prot, int flags, int fd, off_t offset) {
  long result = call(SYS_mmap, word(address), static_cast<long>(size), prot, flags, fd, offset);
  return result < 0 && result > -4096 ? nullptr : pointer(static_cast<uint64_t>(result));
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
  if (value >= 0 || value <= -4096) return value;
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
