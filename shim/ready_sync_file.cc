#include "shim/ready_sync_file.h"

#include "shim/connection.h"
#include "shim/raw.h"

namespace v3d::shim {

void ReadySyncFile::note_export(uint32_t handle) {
  const uint32_t submits = submits_.exchange(0, std::memory_order_relaxed);
  if (submits) expected_after_.store(submits, std::memory_order_relaxed);
  handle_.store(handle, std::memory_order_relaxed);
}

uint32_t ReadySyncFile::wanted_by_submit() {
  const uint32_t submits = submits_.fetch_add(1, std::memory_order_relaxed) + 1;
  return submits >= expected_after_.load(std::memory_order_relaxed) ? handle_.load(std::memory_order_relaxed)
                                                                    : 0;
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
  if (fd_plus_one_ && ++unused_ >= kMostUnused) handle_.store(0, std::memory_order_relaxed);
  drop();
  fd = move_high(fd);
  if (raw::fstat(fd, &st) == 0) {
    token_ = token;
    what_ = what;
    fd_plus_one_ = fd + 1;
    dev_ = st.st_dev;
    ino_ = st.st_ino;
  }
  busy_.store(false, std::memory_order_release);
}

int ReadySyncFile::take(uint64_t token, uint32_t entry, uint32_t* place) {
  if (busy_.exchange(true, std::memory_order_acquire)) return -1;
  int fd = -1;
  if (fd_plus_one_ && token_ == token && what_.entry == entry) {
    *place = what_.place;
    if (has_one()) {
      fd = raw::fcntl(fd_plus_one_ - 1, F_DUPFD_CLOEXEC, 0);
      raw::close(fd_plus_one_ - 1);
    }
    fd_plus_one_ = 0;
    unused_ = 0;
  }
  busy_.store(false, std::memory_order_release);
  return fd;
}

}  // namespace v3d::shim
