/// The MemorySystem is the caches, MMU and DRAM of the timing model (compute-and-timing.md 18.3 to 18.5): it
/// tells when data is there.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gpu/perf/timing/cache.h"
#include "gpu/perf/timing/memory_counts.h"
#include "gpu/perf/timing/parameters.h"

namespace v3d::timing {

/// Addresses are in lines of 64 bytes, times in clocks. Requests may come a little out of the order of their
/// times: they are served as they come.
class MemorySystem {
 public:
  MemorySystem(const Parameters& parameters, int slices, int clock_mhz);

  /// A load through the cache of a TMU, by its number among all of them. @param clock  moves on when the
  /// request has to wait
  uint64_t load(int tmu, uint32_t line, uint64_t* clock);
  /// A store: goes to the L2T. @return when that has it
  uint64_t store(int tmu, uint32_t line, uint64_t clock);
  /// Read and written in the L2T.
  uint64_t atomic(int tmu, uint32_t line, uint64_t clock);
  uint64_t code(int slice, uint32_t line, uint64_t clock);
  uint64_t uniforms(int slice, uint32_t line, uint64_t clock);
  /// A line of vertex buffers, by the VCD.
  uint64_t fetch(uint32_t line, uint64_t clock) {
    return p_.vcd_past_l2 ? move_line(false, line, clock) : l2_read(Client::kVcd, line, clock);
  }
  /// Past the L2, to memory or from it, on VideoCore IV. @return when it is done
  uint64_t move_line(bool stores, uint32_t line, uint64_t clock);
  /// Past the L2T: the TLB's loads and stores, tile lists of the PTB and the PSE, the TFU.
  /// @param bytes  any number  @return when it is done
  uint64_t load_tile(uint64_t bytes, uint64_t clock);
  uint64_t store_tile(uint64_t colors, uint64_t depth, uint64_t clock);
  uint64_t read_list(uint64_t bytes, uint64_t clock);
  uint64_t write_list(uint64_t bytes, uint64_t clock);
  uint64_t transfer(uint64_t read, uint64_t written, uint64_t clock);
  /// Writes what the L2T has. @return when all is in memory
  uint64_t clean(uint64_t clock);

  const MemoryCounts& counts() const { return counts_; }
  /// Clocks in which the memory was busy.
  uint64_t dram_busy() const { return dram_busy_ / kMicro; }
  uint64_t clocks_of_ns(uint64_t ns) const { return (ns * mhz_ + 999) / 1000; }

 private:
  static constexpr uint64_t kMicro = 1'000'000;  // the memory's times are in millionths of a clock

  uint64_t slice_read(Cache& cache, uint32_t line, uint64_t clock, uint64_t* hits, uint64_t* misses);
  uint64_t l2_start(uint64_t clock);
  uint64_t l2_read(Client client, uint32_t line, uint64_t clock);
  uint64_t l2_write(uint32_t line, uint64_t clock);
  Cache::Line& l2_place(uint32_t wide, uint64_t clock);
  uint64_t write_back(Cache::Line& line, uint64_t clock);
  uint64_t translate(uint32_t line, uint64_t clock);
  Cache::Line& system_place(uint32_t line, uint64_t clock);
  bool goes_through_system(uint32_t line) const;
  uint64_t read_line(uint32_t line, uint64_t clock);
  uint64_t dram(uint64_t bytes, uint64_t ps_per_byte, uint64_t latency, uint64_t clock, uint64_t* port);

  const Parameters p_;
  const uint64_t mhz_;
  const uint32_t sectors_;              // of a line of the L2
  std::vector<Cache> l1_;               // by TMU
  std::vector<Cache> code_, uniforms_;  // by slice
  std::vector<InFlight> l1_misses_;
  Cache l2_, walks_;
  std::optional<Cache> system_;  // between the V3D and the memory
  InFlight l2_misses_;
  uint64_t l2_free_ = 0, read_port_ = 0, write_port_ = 0;
  uint64_t dram_free_ = 0, dram_busy_ = 0;
  MemoryCounts counts_;
  Waits reads_, writes_, queued_, full_, filling_, data_;
};

}  // namespace v3d::timing
