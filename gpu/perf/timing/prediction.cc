#include "gpu/perf/timing/prediction.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace v3d::timing {

const char* kind_name(JobKind kind) {
  constexpr const char* kNames[] = {"bin", "render", "compute", "tfu"};
  return kNames[static_cast<int>(kind)];
}

const char* stall_name(Stall stall) {
  constexpr const char* kNames[] = {"TMU", "SFU",      "rep", "uniforms", "code",
                                    "TLB", "varyings", "VPM", "sync"};
  return kNames[static_cast<int>(stall)];
}

uint64_t sum(const Stalls& stalls) { return std::accumulate(stalls.begin(), stalls.end(), uint64_t{0}); }

uint64_t qpu_clocks(uint64_t instructions, const Stalls& stalls) { return 4 * instructions + sum(stalls); }

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

const char* bound_name(Bound bound) {
  constexpr const char* kNames[] = {"issue",  "TMU",       "L2T",         "DRAM",   "vertex fetch",
                                    "binner", "front end", "tile buffer", "latency"};
  return kNames[static_cast<int>(bound)];
}

double Prediction::issue_share() const {
  return share(instructions * 4, clocks * static_cast<uint64_t>(qpus));
}
double Prediction::qpu_share() const {
  const uint64_t own = stalls[static_cast<size_t>(Stall::kSfu)] + stalls[static_cast<size_t>(Stall::kRep)];
  return issue_share() + share(own, clocks * static_cast<uint64_t>(qpus));
}
double Prediction::tmu_share() const { return share(tmu_busy, clocks * static_cast<uint64_t>(tmus)); }
double Prediction::l2_share() const { return share(memory.l2_busy, clocks); }
double Prediction::dram_share() const { return share(dram_busy, clocks); }
double Prediction::unit_share(uint64_t busy) const { return share(busy, clocks); }

void scale(Prediction* p, uint64_t whole, uint64_t part) {
  const auto grow = [&](uint64_t& value) { value = scaled(value, whole, part); };
  const auto grow_all = [&](auto&... values) { (grow(values), ...); };
  const auto grow_stalls = [&](Stalls& stalls) { std::for_each(stalls.begin(), stalls.end(), grow); };
  uint64_t clocks = p->clocks - p->clean_clocks;
  grow_all(clocks, p->instructions, p->waiting, p->resident, p->tmu_busy, p->tmu_stalled, p->lookups,
           p->lookup_quads, p->one_line_lookups, p->one_line_busy, p->one_line_stalled, p->uniform_words,
           p->dram_busy);
  p->clocks = clocks + p->clean_clocks;
  grow_stalls(p->stalls);
  grow_all(p->units.fetch, p->units.fetch_stalled, p->units.vpm_loads, p->units.vpm_stores,
           p->units.front_end, p->units.tlb, p->units.load_store);
  MemoryCounts& m = p->memory;
  grow_all(m.l1_hits, m.l1_misses, m.code_hits, m.code_misses, m.uniform_misses, m.l2_writes, m.l2_merges,
           m.l2_writebacks, m.page_misses, m.system_hits, m.system_misses, m.read_bytes, m.write_bytes,
           m.read_wait, m.write_wait, m.l2_queued, m.l2_full, m.l2_fill_waits, m.l2_data_wait, m.l2_busy);
  std::for_each(m.l2_hits.begin(), m.l2_hits.end(), grow);
  std::for_each(m.l2_misses.begin(), m.l2_misses.end(), grow);
  for (Prediction::ProgramTime& program : p->programs) {
    grow_all(program.batches, program.instructions);
    grow_stalls(program.stalls);
    for (Prediction::Instruction& at : program.at) {
      grow(at.issued);
      grow_stalls(at.stalls);
    }
  }
  for (Prediction::DrawTime& draw : p->draws) grow_all(draw.vertex_batches, draw.qpu_clocks);
}

namespace {

void add(const Stalls& more, Stalls* to) {
  for (size_t i = 0; i < to->size(); ++i) (*to)[i] += more[i];
}

void add(const MemoryCounts& more, MemoryCounts* to) {
  constexpr uint64_t MemoryCounts::*kSums[] = {
      &MemoryCounts::l1_hits,          &MemoryCounts::l1_misses,      &MemoryCounts::code_hits,
      &MemoryCounts::code_misses,      &MemoryCounts::uniform_misses, &MemoryCounts::l2_writes,
      &MemoryCounts::l2_merges,        &MemoryCounts::l2_writebacks,  &MemoryCounts::page_misses,
      &MemoryCounts::system_hits,      &MemoryCounts::system_misses,  &MemoryCounts::read_bytes,
      &MemoryCounts::write_bytes,      &MemoryCounts::list_written,   &MemoryCounts::list_read,
      &MemoryCounts::tile_loaded,      &MemoryCounts::tile_stored,    &MemoryCounts::transfer_read,
      &MemoryCounts::transfer_written, &MemoryCounts::read_wait,      &MemoryCounts::write_wait,
      &MemoryCounts::l2_queued,        &MemoryCounts::l2_full,        &MemoryCounts::l2_fill_waits,
      &MemoryCounts::l2_data_wait,     &MemoryCounts::l2_busy};
  for (const auto member : kSums) to->*member += more.*member;
  for (size_t i = 0; i < kNumClients; ++i) {
    to->l2_hits[i] += more.l2_hits[i];
    to->l2_misses[i] += more.l2_misses[i];
  }
  to->most_reads = std::max(to->most_reads, more.most_reads);
}

}  // namespace

/// Draws of both are called by their numbers, and those of the second are what draws are asked for.
void put_before(const Prediction& first, Prediction* second) {
  constexpr uint64_t Prediction::*kSums[] = {
      &Prediction::instructions,     &Prediction::waiting,          &Prediction::resident,
      &Prediction::tmu_busy,         &Prediction::tmu_stalled,      &Prediction::lookups,
      &Prediction::lookup_quads,     &Prediction::one_line_lookups, &Prediction::one_line_busy,
      &Prediction::one_line_stalled, &Prediction::uniform_words,    &Prediction::dram_busy,
      &Prediction::released,         &Prediction::submit_ns};
  for (const auto member : kSums) second->*member += first.*member;
  constexpr uint64_t Prediction::Units::*kUnits[] = {
      &Prediction::Units::fetch,     &Prediction::Units::fetch_stalled, &Prediction::Units::binner,
      &Prediction::Units::front_end, &Prediction::Units::tlb,           &Prediction::Units::load_store};
  for (const auto member : kUnits) second->units.*member += first.units.*member;
  add(first.stalls, &second->stalls);
  add(first.memory, &second->memory);
  for (Prediction::Span& span : second->spans) {
    span.begin += first.clocks;
    span.end += first.clocks;
  }
  second->spans.insert(second->spans.begin(), first.spans.begin(), first.spans.end());
  second->programs.insert(second->programs.begin(), first.programs.begin(), first.programs.end());
  second->clocks += first.clocks;
}

void fit(Prediction* p) {
  const auto limit = [](uint64_t most, auto&... values) { ((values = std::min(values, most)), ...); };
  const uint64_t qpus = p->clocks * static_cast<uint64_t>(p->qpus), issuing = qpu_clocks(p->instructions, {});
  const uint64_t room = qpus - std::min(qpus, issuing), stalled = sum(p->stalls);
  if (stalled > room) {
    const auto shrink = [&](uint64_t& value) { value = scaled(value, room, stalled); };
    std::for_each(p->stalls.begin(), p->stalls.end(), shrink);
    for (Prediction::ProgramTime& program : p->programs)
      std::for_each(program.stalls.begin(), program.stalls.end(), shrink);
  }
  limit(room - sum(p->stalls), p->waiting);
  limit(p->clocks * static_cast<uint64_t>(p->tmus), p->tmu_busy);
  limit(p->tmu_busy, p->tmu_stalled, p->one_line_busy);
  limit(p->tmu_stalled, p->one_line_stalled);
  MemoryCounts& m = p->memory;
  constexpr auto kTmu = static_cast<size_t>(Client::kTmu);
  limit(m.l2_hits[kTmu] + m.l2_misses[kTmu], m.l1_misses);
  limit(p->clocks, m.read_wait, m.write_wait, m.l2_queued, m.l2_full, m.l2_fill_waits, m.l2_data_wait);
  limit(p->clocks, p->units.fetch_stalled);
}

Bound Prediction::bound() const {
  const std::pair<double, Bound> shares[] = {{qpu_share(), Bound::kIssue},
                                             {tmu_share(), Bound::kTmu},
                                             {l2_share(), Bound::kL2},
                                             {dram_share(), Bound::kDram},
                                             {unit_share(units.fetch), Bound::kVertexFetch},
                                             {unit_share(units.binner), Bound::kBinner},
                                             {unit_share(units.front_end), Bound::kFrontEnd},
                                             {unit_share(units.tlb + units.load_store), Bound::kTiles}};
  const auto* const largest = std::max_element(
      std::begin(shares), std::end(shares), [](const auto& a, const auto& b) { return a.first < b.first; });
  return largest->first > kBusy ? largest->second : Bound::kLatency;
}

}  // namespace v3d::timing
