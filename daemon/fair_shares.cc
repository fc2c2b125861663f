#include "daemon/fair_shares.h"

#include <algorithm>

namespace v3d::daemon {

int64_t FairShares::clock(uint64_t key) const {
  const auto it = clocks_.find(key);
  return it == clocks_.end() ? start() : std::max(it->second, start());
}

void FairShares::charge(uint64_t key, int64_t amount, int64_t competitors) {
  constexpr size_t kRoom = 16;
  clocks_[key] = clock(key) + amount;
  common_ += amount / (2 * std::max<int64_t>(competitors, 1));
  if (clocks_.size() > kRoom) std::erase_if(clocks_, [&](const auto& c) { return c.second <= start(); });
}

void FairShares::advance_to(int64_t least) { common_ = std::max(common_, least); }

}  // namespace v3d::daemon
