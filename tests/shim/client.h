/// Scenarios run inside a process with libv3demu.so preloaded. A scenario is a function; the program takes
/// its name and exits with 0 if no check failed.
#pragma once

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace client {

using Scenario = void (*)();
void add(const char* name, Scenario scenario);

void fail(const char* file, int line, const std::string& what);
void differ(const char* file, int line, const char* a, const char* b, const std::string& a_shown,
            const std::string& b_shown);
int failures();

struct Adder {
  Adder(const char* name, Scenario scenario) { add(name, scenario); }
};

#define SCENARIO(name)                                  \
  static void name();                                   \
  static const client::Adder adder_##name(#name, name); \
  static void name()

#define CHECK(condition)                                            \
  do {                                                              \
    if (!(condition)) client::fail(__FILE__, __LINE__, #condition); \
  } while (false)

#define CHECK_EQ(a, b)                                                                                   \
  do {                                                                                                   \
    const auto& va_ = (a);                                                                               \
    const auto& vb_ = (b);                                                                               \
    if (!(va_ == vb_)) client::differ(__FILE__, __LINE__, #a, #b, client::show(va_), client::show(vb_)); \
  } while (false)

/// `call` fails with -1 and the errno `error`.
#define CHECK_ERRNO(call, error)            \
  do {                                      \
    errno = 0;                              \
    CHECK_EQ(static_cast<long>(call), -1L); \
    CHECK_EQ(errno, error);                 \
  } while (false)

inline std::string show(const std::string& text) { return text; }
inline std::string show(const char* text) { return text; }
template <typename T>
std::string show(T value) {
  return std::to_string(value);
}

inline constexpr char kRenderNode[] = "/dev/dri/renderD128";
inline constexpr char kCardNode[] = "/dev/dri/card0";

/// An open render node; fails the scenario if there is none.
int open_render(int extra_flags = 0);

/// VERSION's driver name through `fd`, "" with errno set if it fails.
std::string driver_name(int fd);

struct WaitBo {
  uint32_t handle, pad;
  uint64_t timeout;
};
constexpr unsigned long kWaitBo = _IOWR('d', 0x41, WaitBo);
struct SubmitCl {
  uint32_t bcl_start, bcl_end, rcl_start, rcl_end, in_sync_bcl, in_sync_rcl, out_sync, qma, qms, qts;
  uint64_t bo_handles;
  uint32_t bo_handle_count, flags, perfmon_id, pad;
  uint64_t extensions;
};
constexpr unsigned long kSubmitCl = _IOWR('d', 0x40, SubmitCl);

/// CREATE_BO's handle, and MMAP_BO's offset for a handle; 0 if they fail.
uint32_t create_bo(int fd, uint32_t size);
int close_bo(int fd, uint32_t handle);  ///< 0 or an errno
uint64_t map_offset(int fd, uint32_t handle);
void* map_bo(int fd, uint32_t bo, size_t length, int flags = MAP_SHARED);  ///< readable and writable

/// SYNCOBJ_*; WAIT's errno, 0 when it succeeded.
uint32_t create_syncobj(int fd);
int wait_syncobj(int fd, uint32_t handle, int64_t timeout_ns);
int signal_syncobj(int fd, uint32_t handle);
int64_t monotonic_ns();

/// Runs this program again with another scenario; exit status. Descriptors that are not close-on-exec stay.
int run_self(const std::vector<std::string>& arguments);
/// What follows the scenario's name on the command line.
const std::vector<std::string>& arguments();

/// Waits for a child; its exit status, 128 + signal if it was killed.
int wait_for(pid_t child);

/// Numbers of the open descriptors of this process.
std::vector<int> open_descriptors();

}  // namespace client
