/// Tests of the timing model share these boards and constants.
#pragma once

#include "gpu/chip/profile.h"
#include "gpu/perf/counter_table.h"
#include "gpu/perf/timing/parameters.h"

namespace v3d::timing {

/// Nothing costs time but what a test sets.
inline Parameters nothing() {
  Parameters p;
  for (const ParameterRow& row : parameter_rows()) p.*row.member = 0;
  p.instruction = 4;
  p.tmu_quad_words = p.tmu_queue = p.tmu_input = p.tmu_misses = p.l2_misses = 64;
  p.tmu_quad_words = p.l2_fill = 1;
  p.l1_bytes = p.l2_bytes = p.code_bytes = p.uniform_bytes = 1 << 16;
  p.l1_ways = p.l2_ways = p.slice_ways = p.l2_sectors = 4;
  p.tmus = 1;
  p.mmu_lines = p.vcd_batches = p.supergroups = 64;
  p.axi_bytes = 1 << 20;
  return p;
}

/// 1000 MHz: a clock is a nanosecond.
inline chip::Profile board(int slices = 1, int qpus = 1) {
  chip::Profile profile = chip::default_profile();
  profile.clock_mhz = 1000;
  profile.slices = slices;
  profile.qpus_per_slice = qpus;
  return profile;
}

inline perf::Units units_of(const chip::Profile& profile) {
  return {.qpus = static_cast<uint64_t>(profile.qpu_count()),
          .tmus = static_cast<uint64_t>(profile.slices) * parameters_of(profile).tmus};
}

}  // namespace v3d::timing
