#include "daemon/fair_shares.h"

#include <algorithm>

namespace v3d::daemon {

int64_t FairShares::clock(uint64_t key) const {
  const auto it = clocks_.find(key);
  return it == clocks_.end() ? start() : std::max(it->second.clock, start());
}

void FairShares::charge(uint64_t key, int64_t amount, int64_t competitors) {
  constexpr size_t kRoom = 16;
  clocks_.find(key)->second.clock = clock(key) + amount;
  common_ += amount / (2 * std::max<int64_t>(competitors, 1));
  if (clocks_.size() <= kRoom) return;
  std::erase_if(clocks_, [&](const auto& c) { return c.second.entered == 0 && c.second.clock <= start(); });
}

void FairShares::advance_to(int64_t least) { common_ = std::max(common_, least); }

}  // namespace v3d::daemon
