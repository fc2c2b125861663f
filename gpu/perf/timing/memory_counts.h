/// MemoryCounts say what caches and memory of the timing model did.
#pragma once

#include <array>
#include <cstdint>

namespace v3d::timing {

/// Who asks the L2T.
enum class Client : uint8_t { kTmu, kSlice, kVcd };
inline constexpr int kNumClients = 3;

struct MemoryCounts {
  uint64_t l1_hits = 0, l1_misses = 0;
  uint64_t code_hits = 0, code_misses = 0;
  uint64_t uniform_misses = 0;
  std::array<uint64_t, kNumClients> l2_hits{}, l2_misses{};  ///< reads, by Client
  uint64_t l2_writes = 0, l2_merges = 0, l2_writebacks = 0;
  uint64_t page_misses = 0;
  uint64_t system_hits = 0, system_misses = 0;       ///< of the cache in front of the memory, if there is one
  uint64_t read_bytes = 0, write_bytes = 0;          ///< of DRAM, by the L2T
  uint64_t list_written = 0, list_read = 0;          ///< bytes of tile lists: PTB, PSE
  uint64_t tile_loaded = 0, tile_stored = 0;         ///< bytes, by the TLB
  uint64_t transfer_read = 0, transfer_written = 0;  ///< bytes, by the TFU
  // Clocks in which at least one request waits:
  uint64_t read_wait = 0, write_wait = 0;  ///< for the memory, of all units
  uint64_t l2_queued = 0;                  ///< for the L2T
  uint64_t l2_full = 0;                    ///< for one of its reads to be done
  uint64_t l2_fill_waits = 0;              ///< for a line that was still being filled
  uint64_t l2_data_wait = 0;               ///< for data of the L2T, which serves nobody meanwhile
  uint64_t most_reads = 0;                 ///< under way at once
  uint64_t l2_busy = 0;                    ///< clocks

  uint64_t hits() const { return l2_hits[0] + l2_hits[1] + l2_hits[2]; }
  /// Each is filled.
  uint64_t misses() const { return l2_misses[0] + l2_misses[1] + l2_misses[2]; }
  /// Bytes of DRAM, by all units.
  uint64_t all_read() const { return read_bytes + list_read + tile_loaded + transfer_read; }
  uint64_t all_written() const { return write_bytes + list_written + tile_stored + transfer_written; }
};

}  // namespace v3d::timing
