/// A Call is one ioctl call as a handler sees it.
#pragma once

#include <cerrno>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <vector>

#include "ioctl/base/account.h"
#include "ioctl/base/unique_fd.h"
#include "ioctl/base/user_memory.h"
#include "ioctl/core/file.h"
#include "ioctl/core/kernel.h"
#include "ioctl/sync/fence.h"

namespace v3d::ioctl {

/// Longest array of the caller that is copied, in elements. The kernel's bounds are of this order
/// (kmalloc_array of 4 MiB) or those of its memory; either is ENOMEM.
inline constexpr uint32_t kMaxUserArray = 1 << 19;
/// Most handles of a SYNCOBJ_WAIT; more are ENOMEM. The kernel's entry for each takes 64 bytes of one kcalloc
/// (drm_syncobj.c, struct syncobj_wait_entry), which is at most 4 MiB with pages of 4 KiB.
inline constexpr uint32_t kMaxWaitHandles = 1 << 16;

/// The caller's descriptors.
class UserFds {
 public:
  virtual ~UserFds() = default;
  /// A descriptor of the daemon for the caller's number, which it keeps; -1 when the caller has none (EBADF),
  /// kForeign when that is none that any ioctl could mean.
  virtual int find(int number) = 0;
  static constexpr int kForeign = -2;
  /// Hands a descriptor to the caller, who will see its number in the argument.
  virtual void give_in_argument(uint32_t offset, UniqueFd fd, bool close_on_exec) = 0;
  /// The same at an address of the caller's memory, an int32_t there.
  virtual void give_in_memory(uint64_t address, UniqueFd fd, bool close_on_exec) = 0;
  /// Has the caller map other memory at the same addresses, where it has mapped what was moved.
  virtual void replace_mappings(MovedMemory moved) = 0;
};

/// What a handler returns; ENOMEM when memory runs out in it.
template <typename Fn>
int out_of_memory_is_enomem(Fn&& handler) {
  try {
    return handler();
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  } catch (const std::length_error&) {
    return ENOMEM;
  }
}

struct Call {
  Kernel& kernel;
  File& file;
  UserMemory& user;
  UserFds& fds;
  std::shared_ptr<Waiter> waiter;
  Account& account;  ///< of the process that calls, which need not be the one that opened the file
};

}  // namespace v3d::ioctl
