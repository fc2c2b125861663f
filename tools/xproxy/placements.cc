#include "tools/xproxy/placements.h"

#include <algorithm>

namespace v3d::xproxy {

bool Placements::tell(const void* source, const Placement& placement) {
  uint64_t& next = next_[source];
  next = std::max(next, first_);
  // A change of the window's rank is told like one of its place.
  if (next > first_ && known_[next - 1 - first_] == placement) return false;
  const auto begin = known_.begin() + static_cast<ptrdiff_t>(next - first_);
  const auto found = std::find(begin, known_.end(), placement);
  const bool is_new = found == known_.end();
  next += static_cast<uint64_t>(found - begin) + 1;
  if (!is_new) return false;
  known_.push_back(placement);
  if (known_.size() > kMost) {
    known_.pop_front();
    ++first_;
  }
  return true;
}

}  // namespace v3d::xproxy
