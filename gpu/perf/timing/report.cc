#include "gpu/perf/timing/report.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/perf/timing/events.h"

namespace v3d::timing {
namespace {

double percent(double share) { return 100 * share; }

uint64_t time_of(const Prediction::Instruction& i) { return qpu_clocks(i.issued, i.stalls); }

/// Of graphics, which run several programs.
std::string stage_text(const Prediction::ProgramTime& program, const Prediction& p) {
  return p.kind == JobKind::kCompute ? "" : absl::StrFormat("%-10s 0x%08x", program.stage, program.code);
}

std::string stalls_text(const Stalls& stalls, uint64_t whole) {
  std::string text;
  for (int n = 0; n < kNumStalls; ++n)
    if (const uint64_t clocks = stalls[static_cast<size_t>(n)])
      absl::StrAppendFormat(&text, "  %s %.1f %%", stall_name(static_cast<Stall>(n)),
                            percent(share(clocks, whole)));
  return text;
}

/// The instructions of all programs that took longest.
std::string instructions_text(const Prediction& p, const TextOf& text_of, size_t count) {
  struct TimedInstruction {
    const Prediction::ProgramTime* program;
    uint32_t number;
    const Prediction::Instruction& at() const { return program->at[number]; }
  };
  std::vector<TimedInstruction> order;
  for (const Prediction::ProgramTime& program : p.programs)
    for (uint32_t number = 0; number < program.at.size(); ++number)
      if (program.at[number].issued != 0) order.push_back({&program, number});
  std::stable_sort(order.begin(), order.end(), [](const TimedInstruction& a, const TimedInstruction& b) {
    return time_of(a.at()) > time_of(b.at());
  });
  const uint64_t whole = qpu_clocks(p.instructions, p.stalls);
  std::string text;
  for (size_t n = 0; n < std::min(count, order.size()); ++n) {
    const Prediction::Instruction& i = order[n].at();
    absl::StrAppendFormat(&text, "  %5.1f %%  %s%5d  %s  (%d times%s)\n", percent(share(time_of(i), whole)),
                          stage_text(*order[n].program, p), order[n].number,
                          text_of(*order[n].program, order[n].number), i.issued,
                          stalls_text(i.stalls, time_of(i)));
  }
  return text;
}

/// What the units of graphics did.
std::string units_text(const Prediction& p) {
  const Prediction::Units& u = p.units;
  const MemoryCounts& m = p.memory;
  std::string text = absl::StrFormat(
      "  units: VCD %.1f %%, PTB %.1f %%, FEP %.1f %%, TLB %.1f %%, its loads and stores %.1f %%\n",
      percent(p.unit_share(u.fetch)), percent(p.unit_share(u.binner)), percent(p.unit_share(u.front_end)),
      percent(p.unit_share(u.tlb)), percent(p.unit_share(u.load_store)));
  absl::StrAppendFormat(&text,
                        "  bytes past the L2T: tiles %d loaded, %d stored; lists %d written, %d read\n",
                        m.tile_loaded, m.tile_stored, m.list_written, m.list_read);
  for (const Prediction::ProgramTime& program : p.programs)
    absl::StrAppendFormat(&text, "  %s program at 0x%08x: %d batches, %d instructions, stalled%s\n",
                          program.stage, program.code, program.batches, program.instructions,
                          stalls_text(program.stalls, qpu_clocks(program.instructions, program.stalls)));
  return text;
}

}  // namespace

std::string report(const Prediction& p, const TextOf& text_of, size_t instructions) {
  const uint64_t qpu_clocks = p.clocks * static_cast<uint64_t>(p.qpus);
  const MemoryCounts& m = p.memory;
  std::string text = absl::StrFormat(
      "  bound by %s: QPUs issue %.1f %%, TMUs %.1f %%, L2T %.1f %%, DRAM %.1f %% of %d clocks at %d MHz\n",
      bound_name(p.bound()), percent(p.issue_share()), percent(p.tmu_share()), percent(p.l2_share()),
      percent(p.dram_share()), p.clocks, p.clock_mhz);
  if (p.kind == JobKind::kTransfer) {
    absl::StrAppendFormat(&text, "  bytes: %d read, %d written\n", m.transfer_read, m.transfer_written);
    return text;
  }
  absl::StrAppendFormat(&text, "  QPUs: %.2f threads each; stalled%s  all threads wait %.1f %%\n",
                        share(p.resident, qpu_clocks), stalls_text(p.stalls, qpu_clocks),
                        percent(share(p.waiting, qpu_clocks)));
  absl::StrAppendFormat(
      &text, "  bytes: DRAM %d read, %d written; L2T %d read, %d written; TMU cache %d of %d lines hit\n",
      m.all_read(), m.all_written(), kLineBytes * (m.hits() + m.misses()), kLineBytes * m.l2_writes,
      m.l1_hits, m.l1_hits + m.l1_misses);
  if (p.recorded != p.whole)
    absl::StrAppendFormat(&text, "  sampled: %d of %d %s were recorded, and all figures follow from them\n",
                          p.recorded, p.whole, p.kind == JobKind::kCompute ? "batches" : "tiles");
  if (p.kind != JobKind::kCompute) text += units_text(p);
  if (p.released != 0)
    absl::StrAppendFormat(&text, "  not modelled: barriers that cannot complete on the board, %d times\n",
                          p.released);
  return text + instructions_text(p, text_of, instructions);
}

}  // namespace v3d::timing
