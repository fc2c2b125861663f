#include "gpu/perf/timing/vertex_feed.h"

#include <algorithm>

namespace v3d::timing {

void VertexFeed::launch(uint64_t clock, size_t used, size_t needed) {
  while (ended_.size() < batches_.size()) {
    const size_t number = ended_.size();
    const bool in_vpm = number < used + p_.vcd_batches || number < needed;
    const Batch& batch = *batches_[number];
    if (!in_vpm || number >= shaded() + p_.vcd_batches) {
      if (full_ == 0) full_ = std::max<uint64_t>({clock, free_, 1});
      return;
    }
    if (full_ != 0) units_.fetch_stalled += std::max(clock, full_) - full_;
    full_ = 0;
    if (!qpus_.has_room(batch)) return;
    ended_.push_back(0);
    qpus_.start(batch, fetch(batch, clock), tag(number));
  }
}

/// Fetches go on while earlier ones wait for the memory. @return when the attributes are there
uint64_t VertexFeed::fetch(const Batch& batch, uint64_t clock) {
  const uint64_t start = std::max(free_, clock);
  const uint64_t cost = batch.fetched_words * p_.vcd_word;  // of 4 times 4 vertices, in quarters of a clock
  free_ = start + cost;
  units_.fetch += cost;
  uint64_t there = free_;
  for (const uint32_t line : batch.fetched) there = std::max(there, memory_.fetch(line, start));
  return there;
}

void VertexFeed::end(size_t number, uint64_t clock) {
  ended_[number] = std::max<uint64_t>(clock, 1);
  while (ready_.size() < ended_.size() && ended_[ready_.size()] != 0)
    ready_.push_back(std::max(ended_[ready_.size()], ready(ready_.size())));
}

}  // namespace v3d::timing
