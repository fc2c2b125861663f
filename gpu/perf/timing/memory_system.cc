#include "gpu/perf/timing/memory_system.h"

#include <algorithm>
#include <bit>

#include "gpu/perf/timing/events.h"

namespace v3d::timing {
MemorySystem::MemorySystem(const Parameters& parameters, int slices, int clock_mhz)
    : p_(parameters),
      mhz_(static_cast<uint64_t>(clock_mhz)),
      sectors_(static_cast<uint32_t>(std::clamp<uint64_t>(p_.l2_sectors, 1, kSectors))),
      l1_(static_cast<size_t>(slices) * p_.tmus, Cache(p_.l1_bytes / kLineBytes, p_.l1_ways)),
      code_(static_cast<size_t>(slices), Cache(p_.code_bytes / kLineBytes, p_.slice_ways)),
      uniforms_(static_cast<size_t>(slices), Cache(p_.uniform_bytes / kLineBytes, p_.slice_ways)),
      l1_misses_(l1_.size(), InFlight(p_.tmu_misses)),
      l2_(p_.l2_bytes / (kLineBytes * sectors_), p_.l2_ways),
      walks_(p_.mmu_lines, p_.mmu_lines),
      l2_misses_(p_.l2_misses) {
  constexpr uint64_t kSystemWays = 4;  // vc4-timing.md 2.4
  if (p_.system_bytes != 0) system_.emplace(p_.system_bytes / kLineBytes, kSystemWays);
}

uint64_t MemorySystem::load(int tmu, uint32_t line, uint64_t* clock) {
  Cache& cache = l1_[static_cast<size_t>(tmu)];
  if (const Cache::Line* found = cache.find(line)) {
    ++counts_.l1_hits;
    return std::max(*clock, found->ready[0]);
  }
  ++counts_.l1_misses;
  InFlight& misses = l1_misses_[static_cast<size_t>(tmu)];
  const uint64_t start = misses.admit(*clock);
  *clock = start;
  const uint64_t ready = l2_read(Client::kTmu, line, start);
  misses.add(ready);
  Cache::Line& place = cache.replace(line);
  place.address = line;
  place.used = true;
  place.ready[0] = ready;
  return ready;
}

/// What the TMU's cache has of the line is kept up to date; it gets no line for a store.
uint64_t MemorySystem::store(int, uint32_t line, uint64_t clock) { return l2_write(line, clock); }

uint64_t MemorySystem::atomic(int, uint32_t line, uint64_t clock) {
  const uint64_t ready = l2_read(Client::kTmu, line, clock);
  if (Cache::Line* found = l2_.find(line / sectors_))
    found->dirty = static_cast<uint8_t>(found->dirty | 1u << line % sectors_);
  return ready;
}

uint64_t MemorySystem::slice_read(Cache& cache, uint32_t line, uint64_t clock, uint64_t* hits,
                                  uint64_t* misses) {
  if (const Cache::Line* found = cache.find(line)) {
    if (hits) ++*hits;
    return std::max(clock, found->ready[0]);
  }
  ++*misses;
  const uint64_t ready = l2_read(Client::kSlice, line, clock);
  Cache::Line& place = cache.replace(line);
  place.address = line;
  place.used = true;
  place.ready[0] = ready;
  return ready;
}

uint64_t MemorySystem::code(int slice, uint32_t line, uint64_t clock) {
  return slice_read(code_[static_cast<size_t>(slice)], line, clock, &counts_.code_hits, &counts_.code_misses);
}

/// Hits are words, which the recorder counts.
uint64_t MemorySystem::uniforms(int slice, uint32_t line, uint64_t clock) {
  return slice_read(uniforms_[static_cast<size_t>(slice)], line, clock, nullptr, &counts_.uniform_misses);
}

uint64_t MemorySystem::l2_start(uint64_t clock) {
  const uint64_t start = std::max(clock, l2_free_);
  counts_.l2_queued += queued_.add(clock, start);
  l2_free_ = start + p_.l2_interval;
  counts_.l2_busy += p_.l2_interval;
  counts_.l2_data_wait -= std::min(counts_.l2_data_wait, data_.overlap(start, l2_free_));
  return start;
}

uint64_t MemorySystem::l2_read(Client client, uint32_t line, uint64_t clock) {
  const auto who = static_cast<size_t>(client);
  const uint32_t wide = line / sectors_, sector = line % sectors_;
  const uint64_t start = l2_start(clock);
  Cache::Line* found = l2_.find(wide);
  if (found && (found->valid >> sector & 1)) {
    ++counts_.l2_hits[who];
    return std::max(start + p_.l2_latency, found->ready[sector]);
  }
  ++counts_.l2_misses[who];
  const uint64_t admitted = l2_misses_.admit(start);
  counts_.l2_full += full_.add(start, admitted);
  const uint64_t beside = l2_misses_.under_way(admitted);
  counts_.most_reads = std::max(counts_.most_reads, beside + 1);
  const uint64_t asked = translate(line, admitted);
  if (!found) found = &l2_place(wide, asked);
  const uint32_t sectors =
      beside > p_.l2_fill_beside ? 1 : static_cast<uint32_t>(std::clamp<uint64_t>(p_.l2_fill, 1, sectors_));
  for (uint32_t i = 0; i < sectors; ++i) {
    const uint32_t filled = sector ^ i;
    if (found->valid >> filled & 1) continue;
    found->valid = static_cast<uint8_t>(found->valid | 1u << filled);
    found->ready[filled] = read_line(line ^ i, asked) + p_.l2_latency;
  }
  const uint64_t ready = found->ready[sector];
  counts_.l2_data_wait += data_.add(asked, ready - p_.l2_latency);
  l2_misses_.add(ready);
  return ready;
}

/// A sector that is written needs no fill: stores of whole sectors are the rule, and bytes have masks.
uint64_t MemorySystem::l2_write(uint32_t line, uint64_t clock) {
  const uint32_t wide = line / sectors_, sector = line % sectors_;
  const uint64_t start = l2_start(clock);
  ++counts_.l2_writes;
  Cache::Line* found = l2_.find(wide);
  if (found && (found->valid >> sector & 1)) ++counts_.l2_merges;
  if (!found) found = &l2_place(wide, start);
  const auto bit = static_cast<uint8_t>(1u << sector);
  if (!(found->valid & bit)) found->ready[sector] = start;
  found->valid |= bit;
  found->dirty |= bit;
  return start;
}

Cache::Line& MemorySystem::l2_place(uint32_t wide, uint64_t clock) {
  Cache::Line& place = l2_.replace(wide);
  if (place.used && place.dirty) write_back(place, clock);
  const uint64_t filled = place.used ? *std::max_element(place.ready.begin(), place.ready.end()) : 0;
  if (filled > clock) counts_.l2_fill_waits += filling_.add(clock, filled);
  place.address = wide;
  place.used = true;
  place.valid = place.dirty = 0;
  place.ready = {};
  return place;
}

uint64_t MemorySystem::write_back(Cache::Line& line, uint64_t clock) {
  const auto bytes = static_cast<uint64_t>(std::popcount(line.dirty)) * kLineBytes;
  const uint64_t asked = translate(line.address * sectors_, clock);
  const uint64_t done = dram(bytes, p_.dram_write, 0, asked, &write_port_);
  ++counts_.l2_writebacks;
  counts_.write_bytes += bytes;
  line.dirty = 0;
  return done;
}

uint64_t MemorySystem::translate(uint32_t line, uint64_t clock) {
  const uint32_t walk = line / kWalkLines;
  if (const Cache::Line* found = walks_.find(walk)) return std::max(clock, found->ready[0]);
  ++counts_.page_misses;
  Cache::Line& place = walks_.replace(walk);
  place.address = walk;
  place.used = true;
  return place.ready[0] = clock + clocks_of_ns(p_.page_walk);
}

/// Which way the bus takes stands in the two top bits of its addresses; programs that the firmware gives
/// memory choose it (vc4-timing.md 2.4).
bool MemorySystem::goes_through_system(uint32_t line) const {
  constexpr uint32_t kAliasLines = (uint32_t{1} << 30) / kLineBytes, kDirect = 3;
  return system_ && line / kAliasLines != kDirect;
}

/// From the cache in front of the memory, where there is one, or from memory.
uint64_t MemorySystem::read_line(uint32_t line, uint64_t clock) {
  const bool through_system = goes_through_system(line);
  if (through_system) {
    if (const Cache::Line* found = system_->find(line)) {
      ++counts_.system_hits;
      read_port_ = std::max(read_port_, clock) + kLineBytes / p_.axi_bytes;
      return std::max({clock + clocks_of_ns(p_.system_latency), read_port_, found->ready[0]});
    }
    ++counts_.system_misses;
  }
  const uint64_t ready = dram(kLineBytes, p_.dram_read, clocks_of_ns(p_.dram_latency), clock, &read_port_);
  counts_.read_bytes += kLineBytes;
  if (through_system) system_place(line, clock).ready[0] = ready;
  return ready;
}

/// A place in that cache, whose line goes to memory if it was written.
Cache::Line& MemorySystem::system_place(uint32_t line, uint64_t clock) {
  Cache::Line& place = system_->replace(line);
  if (place.used && place.dirty) {
    dram(kLineBytes, p_.dram_write, 0, clock, &write_port_);
    counts_.write_bytes += kLineBytes;
  }
  place = {.address = line, .used = true, .last_use = place.last_use};
  return place;
}

uint64_t MemorySystem::move_line(bool stores, uint32_t line, uint64_t clock) {
  if (!stores) return read_line(line, clock);
  if (!goes_through_system(line)) {
    counts_.write_bytes += kLineBytes;
    return dram(kLineBytes, p_.dram_write, 0, clock, &write_port_);
  }
  Cache::Line* found = system_->find(line);
  (found ? counts_.system_hits : counts_.system_misses) += 1;
  if (!found) {
    found = &system_place(line, clock);
    found->ready[0] = clock;
  }
  found->dirty = 1;
  write_port_ = std::max(write_port_, clock) + kLineBytes / p_.axi_bytes;
  return write_port_;
}

/// Reads and writes share the memory, with what others have there; each direction of the port has a limit of
/// its own.
uint64_t MemorySystem::dram(uint64_t bytes, uint64_t ps_per_byte, uint64_t latency, uint64_t clock,
                            uint64_t* port) {
  const uint64_t busy = bytes * ps_per_byte * mhz_;
  dram_free_ = std::max(dram_free_, clock * kMicro) + busy + busy * p_.dram_others / 1000;
  dram_busy_ += busy;
  *port = std::max(*port, clock) + bytes / p_.axi_bytes;
  const uint64_t done = std::max({(dram_free_ + kMicro - 1) / kMicro, *port, clock + latency});
  if (port == &read_port_)
    counts_.read_wait += reads_.add(clock, done);
  else
    counts_.write_wait += writes_.add(clock, done);
  return done;
}

uint64_t MemorySystem::load_tile(uint64_t bytes, uint64_t clock) {
  counts_.tile_loaded += bytes;
  return dram(bytes, p_.dram_read, clocks_of_ns(p_.dram_latency), clock, &read_port_);
}

uint64_t MemorySystem::store_tile(uint64_t colors, uint64_t depth, uint64_t clock) {
  counts_.tile_stored += colors + depth;
  const uint64_t stored = dram(colors, p_.tile_write, 0, clock, &write_port_);
  return depth == 0 ? stored : dram(depth, p_.depth_write, 0, stored, &write_port_);
}

uint64_t MemorySystem::read_list(uint64_t bytes, uint64_t clock) {
  counts_.list_read += bytes;
  return dram(bytes, p_.dram_read, clocks_of_ns(p_.dram_latency), clock, &read_port_);
}

uint64_t MemorySystem::write_list(uint64_t bytes, uint64_t clock) {
  counts_.list_written += bytes;
  return dram(bytes, p_.dram_write, 0, clock, &write_port_);
}

uint64_t MemorySystem::transfer(uint64_t read, uint64_t written, uint64_t clock) {
  counts_.transfer_read += read;
  counts_.transfer_written += written;
  const uint64_t there = dram(read, p_.dram_read, clocks_of_ns(p_.dram_latency), clock, &read_port_);
  return std::max(there, dram(written, p_.dram_write, 0, clock, &write_port_));
}

uint64_t MemorySystem::clean(uint64_t clock) {
  uint64_t done = clock;
  for (Cache::Line& line : l2_.lines())
    if (line.used && line.dirty) done = std::max(done, write_back(line, clock));
  return done;
}

}  // namespace v3d::timing
