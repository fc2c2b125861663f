/// The table has the performance counters as the kernel names them, and what this model can say of each
/// (compute-and-timing.md 15).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "gpu/chip/generation.h"
#include "gpu/perf/counters.h"

namespace v3d::perf {

/// Who counts it. What it would take of those that nobody counts: compute-and-timing.md 15.
enum class Class : char {
  kExact = 'E',       ///< functional execution, exactly
  kModelled = 'M',    ///< the timing model, where that runs (counters_of in gpu/perf/timing); 0 without
  kNotCounted = 'N',  ///< nothing yet: 0
  kConstant = 'K',    ///< always 0: nothing programs or uses what it watches
};

struct ClassInfo {
  Class counts;
  const char* name;
  const char* meaning;
};
std::span<const ClassInfo> counter_classes();
const char* class_name(Class counts);

struct CounterInfo {
  Class counts;
  const char* name;      ///< GL and Vulkan show it; Vulkan makes UUIDs of it
  const char* category;  ///< hardware block
  const char* description;
};

/// All counters of a chip; index = counter number of PERFMON_CREATE.
/// 93 counters of 7.1, 87 of 4.2, 30 of 2.1.
std::span<const CounterInfo> counter_table(chip::Generation generation);

/// Where Counts keep a counter of the chip, -1 when they do not: Counts are numbered as on 7.1.
/// @param counter  below counter_table(generation).size()
int index_in_counts(chip::Generation generation, int counter);

/// How many of them a chip has.
struct Units {
  uint64_t qpus = 1, tmus = 1;
};
/// The rules that the counters of any job must keep, those that do not hold, in words.
std::vector<std::string> inconsistencies(const Counts& counts, const Units& units);
/// Whether one of the rules is about it.  @param index  in Counts
bool has_rule(int index);

}  // namespace v3d::perf
