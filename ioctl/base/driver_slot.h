/// A DriverSlot is what a driver keeps with an object that all drivers have: a buffer, an open file, the
/// kernel.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace v3d::ioctl {

class DriverState {
 public:
  virtual ~DriverState() = default;
  /// @name Of buffers: 0, or the errno of whoever wants to do this
  /// As a dma-buf.
  virtual int export_it() { return 0; }
  /// @param prot  of mmap(2)
  virtual int map_it(int /*prot*/) { return 0; }
};

/// Thread safe. One driver uses it, with one class.
class DriverSlot {
 public:
  /// Made at the first call.
  template <typename T, typename... Args>
  T& get(Args&&... args) {
    const std::lock_guard lock(mutex_);
    if (!state_) state_ = std::make_unique<T>(std::forward<Args>(args)...);
    return static_cast<T&>(*state_);
  }
  /// Null as long as there was no call of get().
  DriverState* find() const {
    const std::lock_guard lock(mutex_);
    return state_.get();
  }

 private:
  mutable std::mutex mutex_;
  std::unique_ptr<DriverState> state_;  // under mutex_
};

}  // namespace v3d::ioctl
