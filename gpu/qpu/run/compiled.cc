#include "gpu/qpu/run/compiled.h"

#include <algorithm>
#include <bit>

namespace v3d::qpu {

Executions::Counts Executions::total() const {
  Counts total;
  for (const Shard& shard : shards_) {
    total.compiled += shard.compiled.load(std::memory_order_relaxed);
    total.interpreted += shard.interpreted.load(std::memory_order_relaxed);
  }
  return total;
}

size_t Executions::shard_of_this_thread() {
  static std::atomic<uint64_t> taken{0};  // bit n: a thread that lives has shard n
  struct Claim {
    Claim() {
      uint64_t before = taken.load(std::memory_order_relaxed);
      do number = std::min(static_cast<size_t>(std::countr_one(before)), kCommonShard);
      while (number != kCommonShard &&
             !taken.compare_exchange_weak(before, before | uint64_t{1} << number, std::memory_order_acquire,
                                          std::memory_order_relaxed));
    }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    ~Claim() {
      if (number != kCommonShard) taken.fetch_and(~(uint64_t{1} << number), std::memory_order_release);
    }
    size_t number;
  };
  static_assert(kShards <= 64);
  thread_local const Claim claim;
  return claim.number;
}

}  // namespace v3d::qpu
