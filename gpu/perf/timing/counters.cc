#include "gpu/perf/timing/replayer.h"

namespace v3d::timing {
namespace {

/// Clocks of one instruction, in which counters of the QPUs count.
constexpr uint64_t kQpuCycle = 4;

}  // namespace

perf::Counts counters_of(const Prediction& p) {
  const MemorySystem::Counts& m = p.memory;
  const auto stalled = [&](Stall stall) { return p.stalls[static_cast<size_t>(stall)] / kQpuCycle; };
  perf::Counts c;
  const auto set = [&](int number, uint64_t value) { c.values[static_cast<size_t>(number)] = value; };
  const uint64_t reads = m.l2_fills, writes = m.l2_writebacks;
  set(0, p.clocks);
  set(1, p.clocks);
  set(4, p.clocks);
  set(18, m.code_hits);
  set(19, m.code_misses);
  set(20, p.uniform_words > m.uniform_misses ? p.uniform_words - m.uniform_misses : 0);
  set(21, m.uniform_misses);
  set(22, p.tmu_busy);
  set(23, p.tmu_stalled);
  set(24, p.lookup_quads);
  set(27, p.one_line_lookups);
  set(28, m.l2_hits[0] + m.l2_hits[1]);
  set(29, m.l2_misses[0] + m.l2_misses[1]);
  set(31, writes);
  set(33, m.l2_merges);
  set(34, m.l2_fills);
  set(44, m.l2_hits[0]);
  set(45, m.l2_misses[0]);
  set(48, m.l2_hits[1]);
  set(49, m.l2_misses[1]);
  set(62, writes);
  set(63, writes);
  set(66, reads);
  set(67, reads);
  set(75, reads);
  set(76, writes);
  set(77, m.read_wait);
  set(78, m.write_wait);
  set(81, p.waiting / kQpuCycle);
  set(82, stalled(Stall::kCode));
  set(85, stalled(Stall::kTmu) + stalled(Stall::kUniforms) + stalled(Stall::kSfu) + stalled(Stall::kRep));
  set(87, stalled(Stall::kTmu));
  set(90, stalled(Stall::kUniforms));
  set(91, stalled(Stall::kSfu));
  set(92, stalled(Stall::kRep));
  return c;
}

}  // namespace v3d::timing
