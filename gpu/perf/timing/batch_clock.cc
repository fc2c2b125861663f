#include "gpu/perf/timing/batch_clock.h"

#include <algorithm>

#include "gpu/chip/profile.h"
#include "gpu/perf/timing/tile_work.h"

namespace v3d::timing {
namespace {

using Kind = Event::Kind;

constexpr uint64_t kInstruction = 4;  // clocks, without a model

/// @return  whether it was there
bool touch(Cache* cache, uint32_t address) {
  if (cache->find(address)) return true;
  Cache::Line& place = cache->replace(address);
  place.address = address;
  place.used = true;
  return false;
}

}  // namespace

Latencies::Latencies(const chip::Profile& profile, const Parameters& parameters)
    : p_(parameters),
      mhz_(static_cast<uint64_t>(profile.clock_mhz)),
      qpus_per_slice_(static_cast<uint32_t>(profile.qpus_per_slice)),
      sectors_(static_cast<uint32_t>(std::clamp<uint64_t>(p_.l2_sectors, 1, kSectors))),
      l1_(static_cast<size_t>(profile.slices), Cache(p_.l1_bytes / kLineBytes, p_.l1_ways)),
      l2_(p_.l2_bytes / (kLineBytes * sectors_), p_.l2_ways),
      walks_(p_.mmu_lines, p_.mmu_lines) {}

uint64_t Latencies::of_line(Cache* l1, uint32_t line) {
  if (l1 && touch(l1, line)) return 0;
  if (touch(&l2_, line / sectors_)) return p_.l2_latency;
  const uint64_t walk = touch(&walks_, line / kWalkLines) ? 0 : p_.page_walk;
  return p_.l2_latency + clocks_of_ns(p_.dram_latency + walk);
}

uint64_t Latencies::of_lookup(uint32_t tidx, const Shape& shape, std::span<const uint32_t> lines) {
  const bool stores = shape.access == Shape::Access::kStore;
  const size_t slice = std::min<size_t>((tidx >> 2) / qpus_per_slice_, l1_.size() - 1);
  Cache* const l1 = shape.access == Shape::Access::kLoad ? &l1_[slice] : nullptr;
  uint64_t delay = 0;
  for (const uint32_t line : lines) {
    const uint64_t there = of_line(l1, line);
    if (!stores) delay = std::max(delay, there);
  }
  return p_.tmu_request + lookup_clocks(p_, shape) + (stores ? 0 : p_.tmu_return) + delay;
}

uint64_t BatchClock::of(uint64_t instructions) const {
  return instructions * (latencies_ ? latencies_->parameters().instruction : kInstruction);
}

void BatchClock::event(Kind kind, uint32_t tidx, const Shape& shape, std::span<const uint32_t> lines) {
  if (!latencies_) return;
  const Parameters& p = latencies_->parameters();
  switch (kind) {
    case Kind::kLookup: {
      const uint64_t done = now_ + latencies_->of_lookup(tidx, shape, lines);
      if (shape.results == 0) stores_done_ = std::max(stores_done_, done);
      results_.insert(results_.end(), shape.results, done);
      break;
    }
    case Kind::kRead:
      if (results_.empty()) break;
      now_ = std::max(now_, results_.front());
      results_.pop_front();
      break;
    case Kind::kWait:
      now_ = std::max(now_, stores_done_);
      break;
    case Kind::kSfu:
      now_ += p.sfu_stall;
      break;
    case Kind::kRep:
      now_ += p.rep_stall;
      break;
    case Kind::kSwitch:
      now_ += p.thread_switch;
      if (!results_.empty()) now_ = std::max(now_, results_.front());
      break;
    case Kind::kIssue:
    case Kind::kUniforms:
    case Kind::kBarrier:
    case Kind::kTlb:
    case Kind::kEnd:
    case Kind::kVarying:
    case Kind::kTransfer:
    case Kind::kVpmWait:
    case Kind::kMutex:
    case Kind::kSemaphore:
      break;
  }
}

}  // namespace v3d::timing
