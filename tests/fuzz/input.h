/// An Input gives values off its front, and zeros after its end.
#pragma once

#include <algorithm>
#include <cstring>

#include "tests/fuzz/targets.h"

namespace v3d::fuzz {

class Input {
 public:
  explicit Input(Bytes bytes) : bytes_(bytes) {}

  template <typename T>
  T take() {
    T value{};
    const Bytes part = take_bytes(sizeof(T));
    if (!part.empty()) std::memcpy(static_cast<void*>(&value), part.data(), part.size());
    return value;
  }
  /// Fewer when fewer are left.
  Bytes take_bytes(size_t count) {
    const Bytes part = bytes_.first(std::min(count, bytes_.size()));
    bytes_ = bytes_.subspan(part.size());
    return part;
  }
  Bytes rest() const { return bytes_; }
  bool empty() const { return bytes_.empty(); }

 private:
  Bytes bytes_;
};

}  // namespace v3d::fuzz
