/// Handles of a drm_file are small integers from 1, the lowest free one first (the kernel's idr). Mesa
/// indexes arrays by them (drm-abi.md 4.1). A handle keeps what was charged for it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ioctl/base/account.h"

namespace v3d::ioctl {

/// Not synchronised.
template <typename T>
class HandleTable {
 public:
  static constexpr uint32_t kMaxHandles = 1u << 20;

  /// 0 when the table is full.
  uint32_t add(std::shared_ptr<T> object, Charge charge = {}) {
    while (lowest_ < slots_.size() && slots_[lowest_].object) ++lowest_;
    if (lowest_ == kMaxHandles) return 0;
    if (lowest_ == slots_.size()) slots_.emplace_back();
    slots_[lowest_] = {std::move(object), std::move(charge)};
    ++count_;
    return static_cast<uint32_t>(lowest_ + 1);
  }
  /// Null when there is no such handle.
  std::shared_ptr<T> find(uint32_t handle) const {
    return handle - 1 < slots_.size() ? slots_[handle - 1].object : nullptr;
  }
  std::shared_ptr<T> remove(uint32_t handle) {
    if (handle - 1 >= slots_.size() || !slots_[handle - 1].object) return nullptr;
    lowest_ = std::min(lowest_, size_t{handle} - 1);
    --count_;
    return std::exchange(slots_[handle - 1], {}).object;
  }
  /// Lowest handle of an object, 0 when it has none. Linear.
  uint32_t find_handle(const T* object) const {
    const auto it =
        std::find_if(slots_.begin(), slots_.end(), [&](const Slot& s) { return s.object.get() == object; });
    return it == slots_.end() ? 0 : static_cast<uint32_t>(it - slots_.begin() + 1);
  }
  size_t count() const { return count_; }
  /// All handles are below it.
  uint32_t end() const { return static_cast<uint32_t>(slots_.size() + 1); }
  /// Removes everything.
  struct Slot {
    std::shared_ptr<T> object;
    Charge charge;
  };
  std::vector<Slot> take_all() {
    lowest_ = count_ = 0;
    return std::exchange(slots_, {});
  }
  template <typename Fn>
  void for_each(Fn&& fn) const {
    for (const Slot& slot : slots_)
      if (slot.object) fn(*slot.object);
  }

 private:
  std::vector<Slot> slots_;  // handle - 1
  size_t lowest_ = 0;        // no free slot below it
  size_t count_ = 0;
};

}  // namespace v3d::ioctl
