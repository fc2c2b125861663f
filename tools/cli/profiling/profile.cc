#include "tools/cli/profiling/profile.h"

#include <algorithm>

namespace v3d::tools::profiling {

uint64_t Profile::end_ns() const {
  uint64_t end = 0;
  for (const Job& job : jobs) end = std::max(end, job.end_ns);
  return end;
}

}  // namespace v3d::tools::profiling
