#include "shim/drm/ready_sync_file.h"

#include <linux/futex.h>
#include <time.h>

#include <climits>

#include "shim/link/connect.h"
#include "shim/link/connection.h"
#include "shim/process/raw.h"

namespace v3d::shim {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

}  // namespace

ReadySyncFile::Expected* ReadySyncFile::find(uint32_t handle) {
  for (Expected& one : expected_) {
    if (one.handle.load(std::memory_order_relaxed) == handle) return &one;
  }
  return nullptr;
}

void ReadySyncFile::note_export(uint32_t handle) {
  if (Expected* const known = find(handle)) {
    const uint32_t submits = known->submits.exchange(0, std::memory_order_relaxed);
    if (submits) known->after.store(submits, std::memory_order_relaxed);
    return;
  }
  Expected& other = expected_[oldest_.fetch_add(1, std::memory_order_relaxed) % expected_.size()];
  other.submits.store(0, std::memory_order_relaxed);
  other.after.store(0, std::memory_order_relaxed);
  other.handle.store(handle, std::memory_order_relaxed);
}

Exports ReadySyncFile::expected() const {
  Exports handles;
  for (size_t i = 0; i < handles.size(); ++i)
    handles[i] = expected_[i].handle.load(std::memory_order_relaxed);
  return handles;
}

bool ReadySyncFile::is_wanted_by_submit(uint32_t handle) {
  Expected* const known = find(handle);
  return known && known->submits.fetch_add(1, std::memory_order_relaxed) + 1 >=
                      known->after.load(std::memory_order_relaxed);
}

void ReadySyncFile::begin_coming() { coming_.fetch_add(1); }

void ReadySyncFile::end_coming() {
  uint32_t coming = coming_.load();
  while (coming != 0 && !coming_.compare_exchange_weak(coming, coming - 1)) {
  }
  raw::call(SYS_futex, raw::word(&coming_), FUTEX_WAKE_PRIVATE, INT_MAX);
}

void ReadySyncFile::wait_while_coming(int64_t until_ns) {
  while (const uint32_t coming = coming_.load()) {
    const int64_t left = until_ns - static_cast<int64_t>(raw::fast_monotonic_ns());
    // Nobody's any more: a process that was forked off meanwhile has none of the threads that it would need.
    if (left <= 0) return coming_.store(0);
    const timespec timeout{static_cast<time_t>(left / kSecond), static_cast<long>(left % kSecond)};
    raw::call(SYS_futex, raw::word(&coming_), FUTEX_WAIT_PRIVATE, coming, raw::word(&timeout));
  }
}

bool ReadySyncFile::has_one() const { return is_intact(fd_plus_one_ - 1, dev_, ino_); }

void ReadySyncFile::drop() {
  if (has_one()) raw::close(fd_plus_one_ - 1);
  fd_plus_one_ = 0;
}

void ReadySyncFile::put(uint64_t token, const wire::ReadySyncFile& what, int fd) {
  struct stat st;
  if (busy_.exchange(true, std::memory_order_acquire)) {
    raw::close(fd);
    return;
  }
  if (fd_plus_one_ && !is_used_ && ++unused_ >= kMostUnused) {
    for (Expected& one : expected_) one.handle.store(0, std::memory_order_relaxed);
  }
  drop();
  fd = move_high(fd);
  if (raw::fstat(fd, &st) == 0) {
    token_ = token;
    what_ = what;
    fd_plus_one_ = fd + 1;
    is_used_ = false;
    dev_ = st.st_dev;
    ino_ = st.st_ino;
  }
  busy_.store(false, std::memory_order_release);
}

int ReadySyncFile::take(uint64_t token, uint32_t entry, uint32_t* place) {
  if (busy_.exchange(true, std::memory_order_acquire)) return -1;
  int fd = -1;
  if (token_ == token && what_.entry == entry) {
    is_kept_ |= is_used_;
    is_used_ = true;
    unused_ = 0;
    *place = what_.place;
    if (has_one()) fd = raw::fcntl(fd_plus_one_ - 1, F_DUPFD_CLOEXEC, 0);
    if (!is_kept_) drop();
  }
  busy_.store(false, std::memory_order_release);
  return fd;
}

}  // namespace v3d::shim
