#include "gpu/perf/timing/report.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/strings/str_format.h"

namespace v3d::timing {
namespace {

double percent(double share) { return 100 * share; }

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

uint64_t stalled(const std::array<uint64_t, kNumStalls>& stalls) {
  return std::accumulate(stalls.begin(), stalls.end(), uint64_t{0});
}

uint64_t time_of(const Prediction::Instruction& i) { return 4 * i.issued + stalled(i.stalls); }

std::string stalls_text(const std::array<uint64_t, kNumStalls>& stalls, uint64_t whole) {
  std::string text;
  for (int n = 0; n < kNumStalls; ++n)
    if (const uint64_t clocks = stalls[static_cast<size_t>(n)])
      absl::StrAppendFormat(&text, "  %s %.1f %%", stall_name(static_cast<Stall>(n)),
                            percent(share(clocks, whole)));
  return text;
}

std::string instructions_text(const Prediction& p, const std::function<std::string(uint32_t)>& text_of,
                              size_t count) {
  std::vector<uint32_t> order(p.program.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return time_of(p.program[a]) > time_of(p.program[b]); });
  const uint64_t whole = 4 * p.instructions + stalled(p.stalls);
  std::string text;
  for (size_t n = 0; n < std::min(count, order.size()) && p.program[order[n]].issued != 0; ++n) {
    const Prediction::Instruction& i = p.program[order[n]];
    absl::StrAppendFormat(&text, "  %5.1f %%  %5d  %s  (%d times%s)\n", percent(share(time_of(i), whole)),
                          order[n], text_of(order[n]), i.issued, stalls_text(i.stalls, time_of(i)));
  }
  return text;
}

}  // namespace

std::string report(const Prediction& p, const std::function<std::string(uint32_t)>& text_of,
                   size_t instructions) {
  const uint64_t qpu_clocks = p.clocks * static_cast<uint64_t>(p.qpus);
  const MemorySystem::Counts& m = p.memory;
  std::string text = absl::StrFormat(
      "  bound by %s: QPUs issue %.1f %%, TMUs %.1f %%, L2T %.1f %%, DRAM %.1f %% of %d clocks at %d MHz\n",
      bound_name(p.bound()), percent(p.issue_share()), percent(p.tmu_share()), percent(p.l2_share()),
      percent(p.dram_share()), p.clocks, p.clock_mhz);
  absl::StrAppendFormat(&text, "  QPUs: %.2f threads each; stalled%s  all threads wait %.1f %%\n",
                        share(p.resident, qpu_clocks), stalls_text(p.stalls, qpu_clocks),
                        percent(share(p.waiting, qpu_clocks)));
  absl::StrAppendFormat(
      &text, "  bytes: DRAM %d read, %d written; L2T %d read, %d written; TMU cache %d of %d lines hit\n",
      m.read_bytes, m.write_bytes,
      kLineBytes * (m.l2_hits[0] + m.l2_hits[1] + m.l2_misses[0] + m.l2_misses[1]), kLineBytes * m.l2_writes,
      m.l1_hits, m.l1_hits + m.l1_misses);
  if (p.texture_lookups != 0)
    absl::StrAppendFormat(&text, "  not modelled: memory accesses of %d texture lookups\n",
                          p.texture_lookups);
  if (p.released != 0)
    absl::StrAppendFormat(&text, "  not modelled: barriers that cannot complete on the board, %d times\n",
                          p.released);
  return text + instructions_text(p, text_of, instructions);
}

}  // namespace v3d::timing
