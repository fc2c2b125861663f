#include "gpu/qpu/run/compiled.h"

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
  static std::atomic<size_t> threads{0};
  thread_local const size_t shard = threads.fetch_add(1, std::memory_order_relaxed) % kShards;
  return shard;
}

}  // namespace v3d::qpu
