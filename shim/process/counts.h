/// The library counts what it does on its way to the daemon, over the life of the process, and tells it on
/// stderr in the end where V3DEMU_COUNT=1.
#pragma once

#include <atomic>
#include <cstdint>

namespace v3d::shim {

enum Counted : unsigned {
  kRequests,  ///< of the daemon, over a channel or a socket
  kSocketCalls,
  kFutexCalls,
  kNumCounted,
};
inline std::atomic<uint64_t> counts[kNumCounted];

inline void count(Counted what) { counts[what].fetch_add(1, std::memory_order_relaxed); }

}  // namespace v3d::shim
