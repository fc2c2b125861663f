#include "tools/cli/captures/nonzero_counters.h"

#include "gpu/perf/counter_table.h"

namespace v3d::tools {

std::vector<ShownCounter> nonzero_counters(chip::Generation generation, const perf::Counts& counts) {
  std::vector<ShownCounter> shown;
  const auto table = perf::counter_table(generation);
  for (size_t i = 0; i < table.size(); ++i) {
    const int index = perf::index_in_counts(generation, static_cast<int>(i));
    const uint64_t value = index < 0 ? 0 : counts.values[static_cast<size_t>(index)];
    if (value != 0) shown.push_back({i, table[i].name, value});
  }
  return shown;
}

}  // namespace v3d::tools
