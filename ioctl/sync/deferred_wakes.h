/// A client wakes some threads itself. A thread on another processor is woken up by an interrupt there, which
/// in a virtual machine takes longer than many a job; a client that is about to have its reply is there
/// already.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "ioctl/link/wire.h"

namespace v3d::ioctl {

class FileStatus;

/// Collects what the calling thread would wake while it lives. One per thread at a time.
class DeferredWakes {
 public:
  /// @param status  whose futexes are meant, those of other files are woken as ever; null: none are
  explicit DeferredWakes(FileStatus* status);
  /// Wakes who is left.
  ~DeferredWakes();
  DeferredWakes(const DeferredWakes&) = delete;
  DeferredWakes& operator=(const DeferredWakes&) = delete;

  /// Of the thread; null: none.
  static DeferredWakes* current();
  /// False: whoever sleeps there is to be woken now.
  /// @param offset  of the futex in the status, bytes
  bool add(const FileStatus& status, uint32_t offset);

  /// Offsets to be woken.
  std::span<const uint32_t> offsets() const { return std::span(offsets_).first(size_); }
  /// The client does it.
  void hand_over() { size_ = 0; }

 private:
  FileStatus* const status_;
  size_t size_ = 0;
  std::array<uint32_t, wire::Channel::kMostWakes> offsets_;
};

}  // namespace v3d::ioctl
