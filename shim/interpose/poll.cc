/// poll and ppoll of dma-bufs. Ours are memfds, which the host's kernel calls ready at any time; a dma-buf is
/// readable when those who write it have ended, and writable when all have (Linux dma_buf_poll). epoll takes
/// no memfds (EPERM), and select() leaves them ready.

#include <poll.h>
#include <signal.h>

#include <cstring>

#include "ioctl/abi/dma_buf.h"
#include "shim/drm/drm_ioctl.h"
#include "shim/interpose/interpose.h"
#include "shim/interpose/layouts.h"
#include "shim/process/raw.h"

namespace v3d::shim {
namespace {

namespace drm = ioctl::drm;

constexpr short kEither = POLLIN | POLLOUT;

/// A sync_file of what keeps a dma-buf from being ready for `event`; negative: it is none of ours.
int export_fence(int fd, short event) {
  drm::DmaBufSyncFile args = {event == POLLIN ? drm::kDmaBufRead : drm::kDmaBufWrite, -1};
  const int error = fence_ioctl(fd, drm::request::kDmaBufExportSyncFile, reinterpret_cast<uint64_t>(&args));
  return error ? error : args.fd;
}

/// Descriptors to wait for in place of a program's: the first `count` are its own, or none where a fence
/// stands for it; then the fences.
class Substitute {
 public:
  /// Takes what the host's kernel says is ready. No dma-bufs among it: is_needed() is false.
  Substitute(const pollfd* fds, nfds_t count) : fds_(fds), count_(count) {
    for (nfds_t i = 0; i < count; ++i) {
      const short wanted = fds[i].events & kEither;
      // A memfd is ready for all that is asked of it.
      if (fds[i].fd < 0 || !wanted || (fds[i].revents & kEither) != wanted || fds[i].revents & ~kAny)
        continue;
      for (const short event : {short{POLLIN}, short{POLLOUT}})
        if (wanted & event && !add(i, event)) return;
    }
  }
  ~Substitute() {
    for (size_t i = 0; i < num_fences_; ++i) raw::close(list_[count_ + i].fd);
    if (list_) raw::unmap_memory(list_, bytes());
  }
  Substitute(const Substitute&) = delete;
  Substitute& operator=(const Substitute&) = delete;

  bool is_needed() const { return num_fences_ > 0; }

  /// As ppoll(2): the number of ready descriptors, or a negative errno. Fills revents of `out`.
  long wait(pollfd* out, const timespec* timeout, const sigset_t* mask) {
    timespec left = timeout ? *timeout : timespec{};  // the kernel writes to it
    const long result = raw::call(SYS_ppoll, raw::word(list_), static_cast<long>(count_ + num_fences_),
                                  timeout ? raw::word(&left) : 0, raw::word(mask), kKernelMaskBytes);
    if (result < 0) return result;
    for (size_t i = 0; i < num_fences_; ++i) {
      const Fence& fence = fences()[i];
      if (list_[count_ + i].revents) list_[fence.of].revents |= fence.event;
    }
    long ready = 0;
    for (nfds_t i = 0; i < count_; ++i) {
      out[i].revents = list_[i].revents;
      ready += list_[i].revents != 0;
    }
    return ready;
  }

 private:
  static constexpr short kAny = kEither | POLLRDNORM | POLLWRNORM;
  static constexpr long kKernelMaskBytes = 8;
  struct Fence {
    nfds_t of;
    short event;
  };

  size_t bytes() const { return count_ * 3 * sizeof(pollfd) + count_ * 2 * sizeof(Fence); }
  Fence* fences() const { return reinterpret_cast<Fence*>(list_ + count_ * 3); }

  /// False when there is no memory.
  bool add(nfds_t i, short event) {
    const int fence = export_fence(fds_[i].fd, event);
    if (fence < 0) return true;
    if (!list_) {
      list_ = static_cast<pollfd*>(raw::map_memory(bytes()));
      if (!list_) {
        raw::close(fence);
        return false;
      }
      memcpy(list_, fds_, count_ * sizeof(pollfd));
    }
    list_[i].fd = -1;
    list_[count_ + num_fences_] = {fence, POLLIN, 0};
    fences()[num_fences_++] = {i, event};
    return true;
  }

  const pollfd* const fds_;
  const nfds_t count_;
  pollfd* list_ = nullptr;
  size_t num_fences_ = 0;
};

/// @param ready  what the host's kernel answered, at once if a dma-buf is among it
int settle(pollfd* fds, nfds_t count, int ready, const timespec* timeout, const sigset_t* mask) {
  if (ready <= 0) return ready;
  long result = ready;
  {
    raw::KeepErrno keep;
    Substitute substitute(fds, count);
    if (substitute.is_needed()) result = substitute.wait(fds, timeout, mask);
  }
  return raw::result(result);
}

int settle_ms(pollfd* fds, nfds_t count, int ready, int timeout) {
  const timespec time = {timeout / 1000, timeout % 1000 * 1'000'000L};
  return settle(fds, count, ready, timeout < 0 ? nullptr : &time, nullptr);
}

}  // namespace

V3D_INTERPOSE(int, polled, "poll", (pollfd * fds, nfds_t count, int timeout)) {
  return settle_ms(fds, count, V3D_NEXT(int(pollfd*, nfds_t, int), "poll")(fds, count, timeout), timeout);
}

V3D_INTERPOSE(int, ppolled, "ppoll",
              (pollfd * fds, nfds_t count, const timespec* timeout, const sigset_t* mask)) {
  using Ppoll = int(pollfd*, nfds_t, const timespec*, const sigset_t*);
  return settle(fds, count, V3D_NEXT(Ppoll, "ppoll")(fds, count, timeout, mask), timeout, mask);
}

#if defined(__arm__)
namespace {

/// A time of 64 bits as one of 32, in which a longer one is the longest.
const timespec* shortened(const LongTime* time, timespec* out) {
  if (!time) return nullptr;
  constexpr int64_t kLongest = INT32_MAX;
  *out = {static_cast<time_t>(time->tv_sec < kLongest ? time->tv_sec : kLongest), time->tv_nsec};
  return out;
}

}  // namespace

V3D_INTERPOSE(int, ppolled_long_time, "__ppoll64",
              (pollfd * fds, nfds_t count, const LongTime* timeout, const sigset_t* mask)) {
  using Ppoll = int(pollfd*, nfds_t, const LongTime*, const sigset_t*);
  timespec time;
  return settle(fds, count, V3D_NEXT(Ppoll, "__ppoll64")(fds, count, timeout, mask),
                shortened(timeout, &time), mask);
}

V3D_INTERPOSE(int, ppolled_long_time_checked, "__ppoll64_chk",
              (pollfd * fds, nfds_t count, const LongTime* timeout, const sigset_t* mask, size_t bytes)) {
  using Ppoll = int(pollfd*, nfds_t, const LongTime*, const sigset_t*, size_t);
  timespec time;
  return settle(fds, count, V3D_NEXT(Ppoll, "__ppoll64_chk")(fds, count, timeout, mask, bytes),
                shortened(timeout, &time), mask);
}
#endif

// Of programs built with _FORTIFY_SOURCE, where the compiler does not know the size of the array.
V3D_INTERPOSE(int, polled_checked, "__poll_chk", (pollfd * fds, nfds_t count, int timeout, size_t bytes)) {
  using Poll = int(pollfd*, nfds_t, int, size_t);
  return settle_ms(fds, count, V3D_NEXT(Poll, "__poll_chk")(fds, count, timeout, bytes), timeout);
}

V3D_INTERPOSE(int, ppolled_checked, "__ppoll_chk",
              (pollfd * fds, nfds_t count, const timespec* timeout, const sigset_t* mask, size_t bytes)) {
  using Ppoll = int(pollfd*, nfds_t, const timespec*, const sigset_t*, size_t);
  return settle(fds, count, V3D_NEXT(Ppoll, "__ppoll_chk")(fds, count, timeout, mask, bytes), timeout, mask);
}

}  // namespace v3d::shim
