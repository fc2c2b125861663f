/// Predicts what a dispatch would take on a board: its events again, with clocks (compute-and-timing.md 18).
///
/// One QPU after the other goes on by an event, always the one whose time is the earliest; of equals the
/// first. So a dispatch has one prediction, on whatever host.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/perf/counters.h"
#include "gpu/perf/timing/events.h"
#include "gpu/perf/timing/memory_system.h"
#include "gpu/perf/timing/parameters.h"

namespace v3d::timing {

/// Why a thread that is current does not issue.
enum class Stall : uint8_t { kTmu, kSfu, kRep, kUniforms, kCode };
inline constexpr int kNumStalls = 5;
const char* stall_name(Stall stall);

/// What limits a dispatch.
enum class Bound : uint8_t { kIssue, kTmu, kL2, kDram, kLatency };
const char* bound_name(Bound bound);

struct Prediction {
  struct Instruction {
    uint64_t issued = 0;
    std::array<uint64_t, kNumStalls> stalls{};  ///< clocks
  };

  uint64_t clocks = 0;        ///< from the launch of the first batch to the last write to memory
  uint64_t clean_clocks = 0;  ///< of those, the last ones, in which the L2T is written back
  uint64_t submit_ns = 0;     ///< outside of the GPU
  int clock_mhz = 0, slices = 0, qpus = 0;
  uint64_t instructions = 0;
  std::array<uint64_t, kNumStalls> stalls{};  ///< clocks, all QPUs
  uint64_t waiting = 0;                       ///< clocks in which QPUs have threads, of which none can go on
  uint64_t resident = 0;                      ///< sum over threads of the clocks from launch to end
  uint64_t tmu_busy = 0, tmu_stalled = 0;     ///< clocks, all TMUs
  uint64_t lookups = 0, lookup_quads = 0, one_line_lookups = 0, texture_lookups = 0;
  uint64_t uniform_words = 0;
  uint64_t dram_busy = 0;  ///< clocks
  uint64_t released = 0;   ///< times that barriers let go since nobody else could come
  MemorySystem::Counts memory;
  std::vector<Instruction> program;  ///< by number

  uint64_t ns() const {
    return (clocks * 1000 + static_cast<uint64_t>(clock_mhz) - 1) / static_cast<uint64_t>(clock_mhz) +
           submit_ns;
  }
  /// Shares of the clocks in which QPUs issue, TMUs have work, and so on, 0..1 each.
  double issue_share() const;
  double qpu_share() const;  ///< they issue, or wait for their own results
  double tmu_share() const;
  double l2_share() const;
  double dram_share() const;
  /// The unit with the largest share, if that is more than kBusy.
  static constexpr double kBusy = 0.75;
  Bound bound() const;
};

/// @param dispatch  well formed: numbers in range, paths that end with kEnd
Prediction replay(const Dispatch& dispatch, const chip::Profile& profile, const Parameters& parameters);

/// Counters of classes A and T for a compute job, by their number on 7.1 (compute-and-timing.md 15.1).
perf::Counts counters_of(const Prediction& prediction);

}  // namespace v3d::timing
