/// A StageRoom lets tests run any program whatever: it has everything that some stage hands to its threads,
/// at once or alone.
#pragma once

#include <iterator>
#include <span>

#include "gpu/qpu/run/interpreter.h"
#include "gpu/qpu/run/program_cache.h"
#include "gpu/qpu/run/thread.h"

namespace v3d::qpu {

/// Swallows colours and depths; reads give what the caller had.
class NoTlb : public TlbPort {
  void write_color(Thread&, const TlbSpec&, const Lanes*, LaneMask) override {}
  void write_depth(Thread&, const TlbSpec&, Lanes, LaneMask) override {}
  void read_color(Thread&, const TlbSpec&, Lanes*) override {}
};

struct StageRoom {
  NoTlb tlb;
  AlignedLanes vpm_in[8] = {}, vpm_out[8] = {}, gs_in[12] = {};  ///< gs_in: three vertices of four rows
  static constexpr uint32_t kComponents = 5;
  Varying varyings[kComponents + kVaryingsBehind] = {};

  std::span<Varying> components() { return {varyings, kComponents}; }

  void give_to(Thread& t, bool with_tlb) {
    t.tlb = with_tlb ? &tlb : nullptr;
    t.vpm_in = vpm_in;
    t.vpm_in_rows = std::size(vpm_in);
    t.vpm_out = vpm_out;
    t.vpm_out_rows = std::size(vpm_out);
    t.gs_in = gs_in;
    t.gs_in_rows = 4;
    t.gs_in_vertices = 3;
    t.set_varyings(varyings, kComponents);
  }
};

/// Runs on over all switches and barriers, and where accesses that go wrong take from the budget, until as
/// many instructions have been executed as it had.
inline Stop run_through(const Program& program, Thread& t) {
  const uint64_t last = t.instructions + t.budget;
  for (;;) {
    const Stop stop = run(program, t);
    if (stop == Stop::kEnd || stop == Stop::kHang) return stop;
    if (stop != Stop::kBudget) continue;
    if (t.instructions >= last) return stop;
    t.budget = last - t.instructions;
  }
}

}  // namespace v3d::qpu
