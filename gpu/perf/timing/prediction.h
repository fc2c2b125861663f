/// A Prediction is what a job would take on a board, and what its units did meanwhile.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/perf/counters.h"
#include "gpu/perf/timing/memory_counts.h"

namespace v3d::timing {

enum class JobKind : uint8_t { kBin, kRender, kCompute, kTransfer };
const char* kind_name(JobKind kind);  ///< of its queue

/// Why a thread that is current does not issue.
/// The last three are VideoCore IV's; the very last are semaphores and the mutex.
enum class Stall : uint8_t { kTmu, kSfu, kRep, kUniforms, kCode, kTlb, kVaryings, kVpm, kSync };
inline constexpr int kNumStalls = 9;
using Stalls = std::array<uint64_t, kNumStalls>;  ///< clocks of each
const char* stall_name(Stall stall);
uint64_t sum(const Stalls& stalls);
/// Clocks of a QPU that instructions took: four each, and what they waited for their operands.
uint64_t qpu_clocks(uint64_t instructions, const Stalls& stalls);
/// 0 of nothing.
double share(uint64_t part, uint64_t whole);

/// What limits a job.
enum class Bound : uint8_t { kIssue, kTmu, kL2, kDram, kVertexFetch, kBinner, kFrontEnd, kTiles, kLatency };
const char* bound_name(Bound bound);

struct Prediction {
  struct Instruction {
    uint64_t issued = 0;
    Stalls stalls{};
  };
  struct ProgramTime {
    const char* stage = "";  ///< a literal
    uint32_t code = 0;       ///< address of instruction 0
    uint64_t batches = 0, instructions = 0;
    Stalls stalls{};
    std::vector<Instruction> at;  ///< by number
  };
  /// Of bin and render jobs, by number of the draw in them; draws that were split have several.
  struct DrawTime {
    uint32_t vertices = 0, primitives = 0;
    uint64_t vertex_batches = 0, fragment_batches = 0;
    uint64_t quads = 0;
    uint64_t qpu_clocks = 0;  ///< issuing and stalled
  };
  /// A part of the job.
  struct Span {
    const char* track;  ///< a literal
    std::string name;
    uint64_t begin = 0, end = 0;  ///< clocks from the start of the job
  };
  /// Clocks in which a unit of its own has work.
  struct Units {
    uint64_t fetch = 0;                      ///< VCD
    uint64_t fetch_stalled = 0;              ///< it waits for room in the VPM; of VideoCore IV
    uint64_t binner = 0;                     ///< PTB
    uint64_t front_end = 0;                  ///< FEP
    uint64_t tlb = 0;                        ///< tests and writes
    uint64_t load_store = 0;                 ///< TLB and memory
    uint64_t vpm_loads = 0, vpm_stores = 0;  ///< transfers of user programs of VideoCore IV
  };

  JobKind kind = JobKind::kCompute;
  uint64_t clocks = 0;        ///< from the launch of the first batch to the last write to memory
  uint64_t clean_clocks = 0;  ///< of those, the last ones, in which the L2T is written back
  uint64_t submit_ns = 0;     ///< outside of the GPU
  int clock_mhz = 0, tmus = 0, qpus = 0;
  /// Of the tiles that draw, or of the batches of a dispatch: so many were recorded of so many, and the
  /// figures below are theirs times what all have to do. Equal: of all of them.
  uint64_t recorded = 0, whole = 0;
  uint64_t instructions = 0;
  Stalls stalls{};                         ///< all QPUs
  uint64_t waiting = 0;                    ///< clocks in which QPUs have threads, of which none can go on
  uint64_t resident = 0;                   ///< sum over threads of the clocks from launch to end
  uint64_t tmu_busy = 0, tmu_stalled = 0;  ///< clocks, all TMUs
  uint64_t lookups = 0, lookup_quads = 0, one_line_lookups = 0;
  uint64_t one_line_busy = 0, one_line_stalled = 0;  ///< clocks of tmu_busy and tmu_stalled
  uint64_t uniform_words = 0;
  uint64_t dram_busy = 0;  ///< clocks
  uint64_t released = 0;   ///< times that barriers let go since nobody else could come
  Units units;
  MemoryCounts memory;
  std::vector<ProgramTime> programs;
  std::vector<DrawTime> draws;
  std::vector<Span> spans;

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
  double unit_share(uint64_t busy) const;  ///< of one of Units
  /// The unit with the largest share, if that is more than kBusy.
  static constexpr double kBusy = 0.75;
  Bound bound() const;
};

/// value * whole / part, rounded down; the product may have 128 bits. @param part  not 0
constexpr uint64_t scaled(uint64_t value, uint64_t whole, uint64_t part) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(value) * whole / part);
}
/// Makes the figures those of a whole of which they are a part: of jobs, but not what tiles move, nor the
/// spans.
/// @param part  not 0
void scale(Prediction* prediction, uint64_t whole, uint64_t part);

/// Makes of two jobs of one device one, the first of which comes before the other, whose kind it has.
void put_before(const Prediction& first, Prediction* second);

/// What takes clocks takes no more of them than there are in the job, which is told from a part: another
/// measure than the figures. Also where requests are under way that nobody waits for when the job is done.
void fit(Prediction* prediction);

/// Counters of classes A and T, by their number on 7.1 (compute-and-timing.md 15.1).
perf::Counts counters_of(const Prediction& prediction);

}  // namespace v3d::timing
