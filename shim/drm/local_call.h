/// A LocalCall is an ioctl on a DRM file that may need no message. Its argument is copied in once and out
/// once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ioctl/abi/v3d.h"
#include "shim/drm/driver.h"
#include "shim/link/known_descriptors.h"

namespace v3d::shim {

struct LocalCall {
  /// What an answer is that is none: the daemon is asked, with the argument as it was copied in.
  static constexpr int kAskDaemon = 1;
  static constexpr size_t kMostBytes = sizeof(ioctl::drm::PerfmonGetCounter);

  LocalCall(const File& of, Driver its) : file(of), driver(its) {}

  const File& file;
  const Driver driver;
  int32_t descriptor = -1;  ///< that the answer gives the caller, who is not to have it without its number
  alignas(uint64_t) uint8_t argument[kMostBytes];  ///< zeros after the shorter one of an older caller

  template <typename Args>
  Args& as() {
    static_assert(sizeof(Args) <= kMostBytes && alignof(Args) <= alignof(uint64_t));
    return *reinterpret_cast<Args*>(argument);
  }
};

/// A row of the table of such ioctls.
struct LocalIoctl {
  uint32_t request;   ///< the whole word
  uint32_t shortest;  ///< bytes of the argument of callers that know less of it
  uint32_t size;      ///< bytes
  /// 0, a negative errno, or kAskDaemon; then the argument is as it was, and nothing has been done that
  /// asking would not repeat.
  int (*answer)(LocalCall& call);
  /// The daemon has answered with success, and this is the argument after it. May be null.
  void (*remember)(LocalCall& call);
};

/// Null: the daemon is always asked.
const LocalIoctl* find_local_ioctl(Driver driver, uint32_t request);

}  // namespace v3d::shim
