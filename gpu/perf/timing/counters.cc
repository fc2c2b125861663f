#include <span>
#include <string_view>

#include "gpu/perf/timing/prediction.h"

namespace v3d::timing {
namespace {

/// Clocks of one instruction, in which counters of the QPUs count.
constexpr uint64_t kQpuCycle = 4;

/// Bytes of a transaction of units that stream.
constexpr uint64_t kBurst = 64;
constexpr uint64_t bursts(uint64_t bytes) { return (bytes + kBurst - 1) / kBurst; }

void set(perf::Counts& c, int number, uint64_t value) { c.values[static_cast<size_t>(number)] = value; }

uint64_t stalled(const Stalls& stalls, Stall stall) { return stalls[static_cast<size_t>(stall)] / kQpuCycle; }

/// For the units of VideoCore IV alone, and for other QPUs.
uint64_t stalled_outside(const Stalls& stalls) {
  return stalled(stalls, Stall::kVaryings) + stalled(stalls, Stall::kVpm) + stalled(stalls, Stall::kSync);
}

/// All that hold a thread back once it has its instruction.
uint64_t stalled(const Stalls& stalls) {
  uint64_t sum = 0;
  for (const Stall stall : {Stall::kTmu, Stall::kTlb, Stall::kUniforms, Stall::kSfu, Stall::kRep})
    sum += stalled(stalls, stall);
  return sum + stalled_outside(stalls);
}

void count_clocks(perf::Counts& c, const Prediction& p) {
  constexpr int kOfKind[] = {2, 3, 4};
  set(c, 0, p.clocks);
  if (p.kind == JobKind::kTransfer) return;
  set(c, 1, p.clocks);
  set(c, kOfKind[static_cast<size_t>(p.kind)], p.clocks);
  if (p.kind != JobKind::kCompute) set(c, perf::kCleClocks, p.clocks);
}

void count_qpus(perf::Counts& c, const Prediction& p) {
  set(c, 81, p.waiting / kQpuCycle);
  set(c, 82, stalled(p.stalls, Stall::kCode));
  set(c, 85, stalled(p.stalls));
  set(c, 87, stalled(p.stalls, Stall::kTmu));
  set(c, 88, stalled(p.stalls, Stall::kTlb));
  set(c, 89, stalled_outside(p.stalls));
  set(c, 90, stalled(p.stalls, Stall::kUniforms));
  set(c, 91, stalled(p.stalls, Stall::kSfu));
  set(c, 92, stalled(p.stalls, Stall::kRep));
  uint64_t fragments = 0, code_of_fragments = 0;
  for (const Prediction::ProgramTime& program : p.programs) {
    if (program.stage != std::string_view("fragment")) continue;
    fragments += stalled(program.stalls);
    code_of_fragments += stalled(program.stalls, Stall::kCode);
  }
  set(c, 86, kQpuCycle * fragments);
  const uint64_t all = stalled(p.stalls) + stalled(p.stalls, Stall::kCode);
  const uint64_t clocks = p.clocks * static_cast<uint64_t>(p.qpus), busy = kQpuCycle * (p.instructions + all);
  set(c, perf::kQpuIdleClocks, clocks > busy ? clocks - busy : 0);
  set(c, perf::kQpuTmuClocks, kQpuCycle * stalled(p.stalls, Stall::kTmu));
  set(c, perf::kQpuTlbClocks, kQpuCycle * stalled(p.stalls, Stall::kTlb));
  set(c, perf::kQpuOtherStallClocks, kQpuCycle * (stalled(p.stalls) - fragments));
  set(c, perf::kQpuVaryingClocks, kQpuCycle * stalled(p.stalls, Stall::kVaryings));
  set(c, perf::kQpuFragmentTime, kQpuCycle * (fragments + code_of_fragments));
  set(c, perf::kQpuVertexTime, kQpuCycle * (all - fragments - code_of_fragments));
  set(c, perf::kVcdClocks, p.units.fetch_stalled);
}

void count_caches(perf::Counts& c, const Prediction& p) {
  const MemoryCounts& m = p.memory;
  set(c, perf::kCodeFetches, p.instructions);
  set(c, perf::kUniformFetches, p.uniform_words);
  set(c, 18, m.code_hits);
  set(c, 19, m.code_misses);
  set(c, 20, p.uniform_words > m.uniform_misses ? p.uniform_words - m.uniform_misses : 0);
  set(c, 21, m.uniform_misses);
  set(c, 22, p.tmu_busy);
  set(c, 23, p.tmu_stalled);
  set(c, 24, p.lookup_quads);
  set(c, 25, p.one_line_busy);
  set(c, 26, p.one_line_stalled);
  set(c, 27, p.one_line_lookups);
  set(c, 28, m.hits());
  set(c, 29, m.misses());
  set(c, 31, m.l2_writebacks);
  set(c, 33, m.l2_merges);
  set(c, 34, m.misses());
  set(c, 36, m.l2_full);
  set(c, 37, m.l2_queued);
  set(c, 40, m.l2_fill_waits);
  set(c, 41, m.hits());
  set(c, 43, m.l2_data_wait);
  set(c, perf::kTmuMisses, m.l1_misses);
  set(c, perf::kL2Writes, m.l2_writes);
  set(c, perf::kL2WriteMisses, m.l2_writes - m.l2_merges);
  constexpr int kOfClient[kNumClients] = {44, 48, 46};
  for (size_t client = 0; client < kNumClients; ++client) {
    set(c, kOfClient[client], m.l2_hits[client]);
    set(c, kOfClient[client] + 1, m.l2_misses[client]);
  }
  const auto reads = [&](Client client) {
    return m.l2_hits[static_cast<size_t>(client)] + m.l2_misses[static_cast<size_t>(client)];
  };
  set(c, perf::kL2TmuReads, reads(Client::kTmu));
  set(c, perf::kL2VcdReads, reads(Client::kVcd));
}

/// Sets the counters after `whole` to its parts. @return  their sum, which it is set to
uint64_t set_with_parts(perf::Counts& c, int whole, std::span<const uint64_t> parts) {
  uint64_t sum = 0;
  int number = whole;
  for (const uint64_t part : parts) {
    set(c, ++number, part);
    sum += part;
  }
  set(c, whole, sum);
  return sum;
}

void count_memory(perf::Counts& c, const MemoryCounts& m) {
  const uint64_t writes[] = {m.l2_writebacks, bursts(m.list_written), bursts(m.tile_stored)};
  const uint64_t reads[] = {m.misses(), 0, bursts(m.list_read), bursts(m.tile_loaded)};
  const uint64_t written = set_with_parts(c, 62, writes), read = set_with_parts(c, 66, reads);
  set(c, 75, read);
  set(c, 76, written);
  set(c, 77, m.read_wait);
  set(c, 78, m.write_wait);
  set(c, 79, m.most_reads);
}

}  // namespace

perf::Counts counters_of(const Prediction& p) {
  perf::Counts c;
  count_clocks(c, p);
  if (p.kind == JobKind::kTransfer) return c;
  count_qpus(c, p);
  count_caches(c, p);
  count_memory(c, p.memory);
  return c;
}

}  // namespace v3d::timing
