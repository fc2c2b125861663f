/// Handles of a drm_file: small integers from 1, the lowest free one first (the kernel's idr). Mesa indexes
/// arrays by them (drm-abi.md 4.1).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace v3d::ioctl {

/// Not synchronised.
template <typename T>
class HandleTable {
 public:
  static constexpr uint32_t kMaxHandles = 1u << 20;

  /// 0 when the table is full.
  uint32_t add(std::shared_ptr<T> object) {
    while (lowest_ < slots_.size() && slots_[lowest_]) ++lowest_;
    if (lowest_ == kMaxHandles) return 0;
    if (lowest_ == slots_.size()) slots_.emplace_back();
    slots_[lowest_] = std::move(object);
    ++count_;
    return static_cast<uint32_t>(lowest_ + 1);
  }
  /// Null when there is no such handle.
  std::shared_ptr<T> find(uint32_t handle) const {
    return handle - 1 < slots_.size() ? slots_[handle - 1] : nullptr;
  }
  std::shared_ptr<T> remove(uint32_t handle) {
    if (handle - 1 >= slots_.size() || !slots_[handle - 1]) return nullptr;
    lowest_ = std::min(lowest_, size_t{handle} - 1);
    --count_;
    return std::move(slots_[handle - 1]);
  }
  /// Lowest handle of an object, 0 when it has none. Linear.
  uint32_t find_handle(const T* object) const {
    const auto it =
        std::find_if(slots_.begin(), slots_.end(), [&](const auto& s) { return s.get() == object; });
    return it == slots_.end() ? 0 : static_cast<uint32_t>(it - slots_.begin() + 1);
  }
  size_t count() const { return count_; }
  /// Removes everything.
  std::vector<std::shared_ptr<T>> take_all() {
    lowest_ = count_ = 0;
    return std::exchange(slots_, {});
  }
  template <typename Fn>
  void for_each(Fn&& fn) const {
    for (const auto& object : slots_)
      if (object) fn(*object);
  }

 private:
  std::vector<std::shared_ptr<T>> slots_;  // handle - 1
  size_t lowest_ = 0;                      // no free slot below it
  size_t count_ = 0;
};

}  // namespace v3d::ioctl
