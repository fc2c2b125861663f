#include "gpu/perf/timing/tile_work.h"

#include <algorithm>

namespace v3d::timing {
namespace {

/// value * numerator / denominator; 0 of nothing.
uint64_t part(uint64_t value, uint64_t numerator, uint64_t denominator) {
  return denominator == 0 ? 0 : value * numerator / denominator;
}

}  // namespace

uint64_t lookup_clocks(const Parameters& p, const Shape& shape) {
  const uint64_t moved = shape.quad_words / p.tmu_quad_words;
  const uint64_t sampled = shape.texels == 0 ? 0 : shape.texels * p.texture_quad + p.texture_lookup;
  return std::max<uint64_t>({moved, sampled, 1});
}

void TileWork::Rate::add(const Rate& other) {
  instructions += other.instructions;
  lookup_clocks += other.lookup_clocks;
  live_quads += other.live_quads;
  tlb_quads += other.tlb_quads;
  primitives += other.primitives;
  vertex_clocks += other.vertex_clocks;
}

TileWork::TileWork(const RenderJob& job, const chip::Profile& profile, const Parameters& parameters)
    : job_(job), profile_(profile), p_(parameters), rates_(job.draws.size()) {
  std::vector<BatchCost> costs;
  costs.reserve(job.trace.paths.size());
  for (const std::vector<Event>& path : job.trace.paths) costs.push_back(cost_of_path(path));
  for (const RenderJob::Tile& tile : job.tiles)
    if (tile.recorded)
      for (const RenderJob::Segment& segment : tile.segments) learn(segment, costs);
  for (const Rate& rate : rates_) all_.add(rate);
}

TileWork::BatchCost TileWork::cost_of_path(const std::vector<Event>& path) const {
  BatchCost cost;
  for (const Event event : path) {
    if (event.kind() == Event::Kind::kIssue) cost.qpu += event.count() * p_.instruction;
    if (event.kind() == Event::Kind::kSfu) cost.qpu += p_.sfu_stall;
    if (event.kind() == Event::Kind::kRep) cost.qpu += p_.rep_stall;
    if (event.kind() == Event::Kind::kLookup) cost.tmu += lookup_clocks(p_, job_.trace.shapes[event.value()]);
  }
  return cost;
}

void TileWork::learn(const RenderJob::Segment& s, const std::vector<BatchCost>& costs) {
  Rate& rate = rates_[s.draw];
  rate.instructions += s.instructions;
  rate.live_quads += s.live_quads;
  rate.primitives += s.primitives;
  for (uint32_t i = 0; i < s.num_batches; ++i) {
    const Batch& batch = job_.trace.batches[s.first_batch + i];
    rate.lookup_clocks += costs[batch.path].tmu;
    rate.tlb_quads += batch.tlb_quads;
  }
  for (const uint32_t batch : s.vertex_batches)
    rate.vertex_clocks += costs[job_.trace.batches[batch].path].qpu;
}

/// Draws of which no tile was recorded are taken for the average.
const TileWork::Rate& TileWork::rate_of(uint32_t draw) const {
  return rates_[draw].primitives == 0 ? all_ : rates_[draw];
}

uint64_t TileWork::clocks_of_bytes(uint64_t bytes, uint64_t ps_per_byte) const {
  return kUnit * bytes * ps_per_byte * static_cast<uint64_t>(profile_.clock_mhz) / 1'000'000;
}

uint64_t TileWork::of(const RenderJob::Tile& tile) const {
  uint64_t qpu = 0, tmu = 0, front_end = 0, launch = 0, tlb = 0;
  for (const RenderJob::Segment& s : tile.segments) {
    const Rate& rate = rate_of(s.draw);
    qpu +=
        kUnit * (s.instructions * p_.instruction + part(s.primitives, rate.vertex_clocks, rate.primitives));
    tmu += kUnit * part(s.instructions, rate.lookup_clocks, rate.instructions);
    front_end += kUnit * (s.primitives * p_.fep_primitive + s.quads * p_.fep_quad / 4);
    launch += kUnit * p_.fragment_launch * (s.live_quads + 3) / 4;
    tlb += kUnit * p_.tlb_quad * part(s.live_quads, rate.tlb_quads, rate.live_quads);
  }
  qpu /= static_cast<uint64_t>(profile_.qpu_count());
  tmu /= static_cast<uint64_t>(profile_.slices) * p_.tmus;
  return std::max({qpu, tmu, front_end, launch, tlb}) + kUnit * p_.tile_start +
         clocks_of_bytes(tile.loaded, p_.dram_read) + clocks_of_bytes(tile.stored, p_.tile_write) +
         clocks_of_bytes(tile.stored_depth, p_.depth_write);
}

}  // namespace v3d::timing
