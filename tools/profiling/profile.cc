#include "tools/profiling/profile.h"

#include <algorithm>
#include <numeric>

namespace v3d::tools::profiling {

const char* kind_name(Kind kind) {
  static constexpr const char* kNames[kKinds] = {"bin", "render", "compute", "tfu"};
  return kNames[static_cast<size_t>(kind)];
}

uint64_t sum(const Stalls& stalls) { return std::accumulate(stalls.begin(), stalls.end(), uint64_t{0}); }

uint64_t qpu_clocks(uint64_t instructions, const Stalls& stalls) { return 4 * instructions + sum(stalls); }

uint64_t Profile::end_ns() const {
  uint64_t end = 0;
  for (const Job& job : jobs) end = std::max(end, job.end_ns);
  return end;
}

}  // namespace v3d::tools::profiling
