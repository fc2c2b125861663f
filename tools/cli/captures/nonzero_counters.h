/// Performance counters of a job as commands show them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/chip/generation.h"
#include "gpu/perf/counters.h"

namespace v3d::tools {

struct ShownCounter {
  size_t number;  ///< in the chip's table
  const char* name;
  uint64_t value;
};
/// Those of the chip that are not 0, in its order.
std::vector<ShownCounter> nonzero_counters(chip::Generation generation, const perf::Counts& counts);

}  // namespace v3d::tools
