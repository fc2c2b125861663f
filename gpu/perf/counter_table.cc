/// @file The counters. Names, categories and descriptions are part of the kernel's interface (Linux
/// v3d_performance_counters.h, DRM_IOCTL_V3D_PERFMON_GET_COUNTER); Mesa's list of the same name differs in
/// one word of counter 79.
#include "gpu/perf/counter_table.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gpu/chip/generation.h"

namespace v3d::perf {
namespace {

// NOLINTNEXTLINE(readability-identifier-naming): names as narrow as the column that they fill
constexpr Class E = Class::kExact, M = Class::kModelled, N = Class::kNotCounted, K = Class::kConstant;

constexpr CounterInfo kTable71[] = {
    // 0
    {M, "cycle-count", "CORE", "[CORE] Cycle counter"},
    {M, "core-active", "CORE", "[CORE] Bin/Render/Compute active cycles"},
    {M, "CLE-bin-thread-active-cycles", "CLE", "[CLE] Bin thread active cycles"},
    {M, "CLE-render-thread-active-cycles", "CLE", "[CLE] Render thread active cycles"},
    {M, "compute-active-cycles", "CORE", "[CORE] Compute active cycles"},
    {E, "FEP-valid-primitives-no-rendered-pixels", "FEP",
     "[FEP] Valid primitives that result in no rendered pixels, for all rendered tiles"},
    {E, "FEP-valid-primitives-rendered-pixels", "FEP",
     "[FEP] Valid primitives for all rendered tiles (primitives may be counted in more than one tile)"},
    {E, "FEP-clipped-quads", "FEP", "[FEP] Early-Z/Near/Far clipped quads"},
    {E, "FEP-valid-quads", "FEP", "[FEP] Valid quads"},
    {E, "TLB-quads-not-passing-stencil-test", "TLB", "[TLB] Quads with no pixels passing the stencil test"},
    // 10
    {E, "TLB-quads-not-passing-z-and-stencil-test", "TLB",
     "[TLB] Quads with no pixels passing the Z and stencil tests"},
    {E, "TLB-quads-passing-z-and-stencil-test", "TLB",
     "[TLB] Quads with any pixels passing the Z and stencil tests"},
    {E, "TLB-quads-written-to-color-buffer", "TLB", "[TLB] Quads with valid pixels written to colour buffer"},
    {E, "TLB-partial-quads-written-to-color-buffer", "TLB",
     "[TLB] Partial quads written to the colour buffer"},
    {E, "PTB-primitives-need-clipping", "PTB", "[PTB] Primitives that need clipping"},
    {E, "PTB-primitives-discarded-outside-viewport", "PTB",
     "[PTB] Primitives discarded by being outside the viewport"},
    {E, "PTB-primitives-binned", "PTB", "[PTB] Total primitives binned"},
    {E, "PTB-primitives-discarded-reversed", "PTB",
     "[PTB] Primitives that are discarded because they are reversed"},
    {M, "QPU-total-instr-cache-hit", "QPU", "[QPU] Total instruction cache hits for all slices"},
    {M, "QPU-total-instr-cache-miss", "QPU", "[QPU] Total instruction cache misses for all slices"},
    // 20
    {M, "QPU-total-uniform-cache-hit", "QPU", "[QPU] Total uniforms cache hits for all slices"},
    {M, "QPU-total-uniform-cache-miss", "QPU", "[QPU] Total uniforms cache misses for all slices"},
    {M, "TMU-active-cycles", "TMU", "[TMU] Active cycles"},
    {M, "TMU-stalled-cycles", "TMU", "[TMU] Stalled cycles"},
    {M, "TMU-total-text-quads-access", "TMU", "[TMU] Total texture cache accesses"},
    {M, "TMU-cache-x4-active-cycles", "TMU", "[TMU] Cache active cycles for x4 access"},
    {M, "TMU-cache-x4-stalled-cycles", "TMU", "[TMU] Cache stalled cycles for x4 access"},
    {M, "TMU-total-text-quads-x4-access", "TMU", "[TMU] Total texture cache x4 access"},
    {M, "L2T-total-cache-hit", "L2T", "[L2T] Total Level 2 cache hits"},
    {M, "L2T-total-cache-miss", "L2T", "[L2T] Total Level 2 cache misses"},
    // 30
    {K, "L2T-local", "L2T", "[L2T] Local mode access"},
    {M, "L2T-writeback", "L2T", "[L2T] Writeback"},
    {K, "L2T-zero", "L2T", "[L2T] Zero"},
    {M, "L2T-merge", "L2T", "[L2T] Merge"},
    {M, "L2T-fill", "L2T", "[L2T] Fill"},
    {N, "L2T-stalls-no-wid", "L2T", "[L2T] Stalls because no WID available"},
    {M, "L2T-stalls-no-rid", "L2T", "[L2T] Stalls because no RID available"},
    {M, "L2T-stalls-queue-full", "L2T", "[L2T] Stalls because internal queue full"},
    {N, "L2T-stalls-wrightback", "L2T", "[L2T] Stalls because writeback in flight"},
    {N, "L2T-stalls-mem", "L2T", "[L2T] Stalls because AXI blocks read"},
    // 40
    {M, "L2T-stalls-fill", "L2T", "[L2T] Stalls because fill pending for victim cache-line"},
    {M, "L2T-hitq", "L2T", "[L2T] Sent request via hit queue"},
    {N, "L2T-hitq-full", "L2T", "[L2T] Sent request via main queue because hit queue is full"},
    {M, "L2T-stalls-read-data", "L2T", "[L2T] Stalls because waiting for data from SDRAM"},
    {M, "L2T-TMU-read-hits", "L2T", "[L2T] TMU read hits"},
    {M, "L2T-TMU-read-miss", "L2T", "[L2T] TMU read misses"},
    {M, "L2T-VCD-read-hits", "L2T", "[L2T] VCD read hits"},
    {M, "L2T-VCD-read-miss", "L2T", "[L2T] VCD read misses"},
    {M, "L2T-SLC-read-hits", "L2T", "[L2T] SLC read hits (all slices)"},
    {M, "L2T-SLC-read-miss", "L2T", "[L2T] SLC read misses (all slices)"},
    // 50
    {K, "AXI-writes-seen-watch-0", "AXI", "[AXI] Writes seen by watch 0"},
    {K, "AXI-reads-seen-watch-0", "AXI", "[AXI] Reads seen by watch 0"},
    {K, "AXI-writes-stalled-seen-watch-0", "AXI", "[AXI] Write stalls seen by watch 0"},
    {K, "AXI-reads-stalled-seen-watch-0", "AXI", "[AXI] Read stalls seen by watch 0"},
    {K, "AXI-write-bytes-seen-watch-0", "AXI", "[AXI] Total bytes written seen by watch 0"},
    {K, "AXI-read-bytes-seen-watch-0", "AXI", "[AXI] Total bytes read seen by watch 0"},
    {K, "AXI-writes-seen-watch-1", "AXI", "[AXI] Writes seen by watch 1"},
    {K, "AXI-reads-seen-watch-1", "AXI", "[AXI] Reads seen by watch 1"},
    {K, "AXI-writes-stalled-seen-watch-1", "AXI", "[AXI] Write stalls seen by watch 1"},
    {K, "AXI-reads-stalled-seen-watch-1", "AXI", "[AXI] Read stalls seen by watch 1"},
    // 60
    {K, "AXI-write-bytes-seen-watch-1", "AXI", "[AXI] Total bytes written seen by watch 1"},
    {K, "AXI-read-bytes-seen-watch-1", "AXI", "[AXI] Total bytes read seen by watch 1"},
    {M, "core-memory-writes", "CORE", "[CORE] Total memory writes"},
    {M, "L2T-memory-writes", "L2T", "[L2T] Total memory writes"},
    {M, "PTB-memory-writes", "PTB", "[PTB] Total memory writes"},
    {M, "TLB-memory-writes", "TLB", "[TLB] Total memory writes"},
    {M, "core-memory-reads", "CORE", "[CORE] Total memory reads"},
    {M, "L2T-memory-reads", "L2T", "[L2T] Total memory reads"},
    {N, "PTB-memory-reads", "PTB", "[PTB] Total memory reads"},
    {M, "PSE-memory-reads", "PSE", "[PSE] Total memory reads"},
    // 70
    {M, "TLB-memory-reads", "TLB", "[TLB] Total memory reads"},
    {E, "PTB-memory-words-writes", "PTB", "[PTB] Total memory words written"},
    {E, "TLB-memory-words-writes", "TLB", "[TLB] Total memory words written"},
    {E, "PSE-memory-words-reads", "PSE", "[PSE] Total memory words read"},
    {E, "TLB-memory-words-reads", "TLB", "[TLB] Total memory words read"},
    {M, "AXI-read-trans", "AXI", "[AXI] Read transaction count"},
    {M, "AXI-write-trans", "AXI", "[AXI] Write transaction count"},
    {M, "AXI-read-wait-cycles", "AXI", "[AXI] Read total wait cycles"},
    {M, "AXI-write-wait-cycles", "AXI", "[AXI] Write total wait cycles"},
    {M, "AXI-max-outstanding-reads", "AXI", "[AXI] Maximum outstanding read transactions"},
    // 80
    {N, "AXI-max-outstanding-writes", "AXI", "[AXI] Maximum outstanding write transactions"},
    {M, "QPU-wait-bubble", "QPU", "[QPU] Pipeline bubble in qcycles due all threads waiting"},
    {M, "QPU-ic-miss-bubble", "QPU", "[QPU] Pipeline bubble in qcycles due instruction-cache miss"},
    {E, "QPU-active", "QPU", "[QPU] Executed shader instruction"},
    {E, "QPU-total-active-clk-cycles-fragment-shading", "QPU",
     "[QPU] Total active clock cycles for all QPUs doing fragment shading (counts only when QPU is not "
     "stalled)"},
    {M, "QPU-stalls", "QPU", "[QPU] Stalled qcycles executing shader instruction"},
    {M, "QPU-total-clk-cycles-waiting-fragment-shading", "QPU",
     "[QPU] Total stalled clock cycles for all QPUs doing fragment shading"},
    {M, "QPU-stalls-TMU", "QPU", "[QPU] Stalled qcycles waiting for TMU"},
    {M, "QPU-stalls-TLB", "QPU", "[QPU] Stalled qcycles waiting for TLB"},
    {N, "QPU-stalls-VPM", "QPU", "[QPU] Stalled qcycles waiting for VPM"},
    // 90
    {M, "QPU-stalls-uniforms", "QPU", "[QPU] Stalled qcycles waiting for uniforms"},
    {M, "QPU-stalls-SFU", "QPU", "[QPU] Stalled qcycles waiting for SFU"},
    {M, "QPU-stalls-other", "QPU", "[QPU] Stalled qcycles waiting for any other reason (vary/W/Z)"},
};
static_assert(std::size(kTable71) == kMaxCounters);

/// Most of 4.2's counters exist on 7.1 under another number.
constexpr CounterInfo kTable42[] = {
    // 0
    kTable71[5],
    kTable71[6],
    kTable71[7],
    kTable71[8],
    kTable71[9],
    kTable71[10],
    kTable71[11],
    {N, "TLB-quads-with-zero-coverage", "TLB", "[TLB] Quads with all pixels having zero coverage"},
    {N, "TLB-quads-with-non-zero-coverage", "TLB", "[TLB] Quads with any pixels having non-zero coverage"},
    kTable71[12],
    // 10
    kTable71[15],
    kTable71[14],
    kTable71[17],
    {M, "QPU-total-idle-clk-cycles", "QPU", "[QPU] Total idle clock cycles for all QPUs"},
    {E, "QPU-total-active-clk-cycles-vertex-coord-shading", "QPU",
     "[QPU] Total active clock cycles for all QPUs doing vertex/coordinate/user shading (counts only when "
     "QPU is not stalled)"},
    kTable71[84],
    {E, "QPU-total-clk-cycles-executing-valid-instr", "QPU",
     "[QPU] Total clock cycles for all QPUs executing valid instructions"},
    {M, "QPU-total-clk-cycles-waiting-TMU", "QPU",
     "[QPU] Total clock cycles for all QPUs stalled waiting for TMUs only (counter won't increment if QPU "
     "also stalling for another reason)"},
    {M, "QPU-total-clk-cycles-waiting-scoreboard", "QPU",
     "[QPU] Total clock cycles for all QPUs stalled waiting for Scoreboard only (counter won't increment if "
     "QPU also stalling for another reason)"},
    {N, "QPU-total-clk-cycles-waiting-varyings", "QPU",
     "[QPU] Total clock cycles for all QPUs stalled waiting for Varyings only (counter won't increment if "
     "QPU also stalling for another reason)"},
    // 20
    kTable71[18],
    kTable71[19],
    kTable71[20],
    kTable71[21],
    kTable71[24],
    {M, "TMU-total-text-cache-miss", "TMU",
     "[TMU] Total texture cache misses (number of fetches from memory/L2cache)"},
    {K, "VPM-total-clk-cycles-VDW-stalled", "VPM",
     "[VPM] Total clock cycles VDW is stalled waiting for VPM access"},
    {N, "VPM-total-clk-cycles-VCD-stalled", "VPM",
     "[VPM] Total clock cycles VCD is stalled waiting for VPM access"},
    kTable71[2],
    kTable71[3],
    // 30
    kTable71[28],
    kTable71[29],
    kTable71[0],
    {M, "QPU-total-clk-cycles-waiting-vertex-coord-shading", "QPU",
     "[QPU] Total stalled clock cycles for all QPUs doing vertex/coordinate/user shading"},
    kTable71[86],
    kTable71[16],
    kTable71[50],
    kTable71[51],
    kTable71[52],
    kTable71[53],
    // 40
    kTable71[54],
    kTable71[55],
    kTable71[56],
    kTable71[57],
    kTable71[58],
    kTable71[59],
    kTable71[60],
    kTable71[61],
    kTable71[13],
    {N, "TMU-total-config-access", "TMU", "[TMU] Total config accesses"},
    // 50
    {N, "L2T-no-id-stalled", "L2T", "[L2T] No ID stall"},
    {N, "L2T-command-queue-stalled", "L2T", "[L2T] Command queue full stall"},
    {M, "L2T-TMU-writes", "L2T", "[L2T] TMU write accesses"},
    kTable71[22],
    kTable71[23],
    {M, "CLE-thread-active-cycles", "CLE", "[CLE] Bin or render thread active cycles"},
    {M, "L2T-TMU-reads", "L2T", "[L2T] TMU read accesses"},
    {N, "L2T-CLE-reads", "L2T", "[L2T] CLE read accesses"},
    {M, "L2T-VCD-reads", "L2T", "[L2T] VCD read accesses"},
    {N, "L2T-TMU-config-reads", "L2T", "[L2T] TMU CFG read accesses"},
    // 60
    {N, "L2T-SLC0-reads", "L2T", "[L2T] SLC0 read accesses"},
    {N, "L2T-SLC1-reads", "L2T", "[L2T] SLC1 read accesses"},
    {K, "L2T-SLC2-reads", "L2T", "[L2T] SLC2 read accesses"},
    {M, "L2T-TMU-write-miss", "L2T", "[L2T] TMU write misses"},
    kTable71[45],
    {N, "L2T-CLE-read-miss", "L2T", "[L2T] CLE read misses"},
    kTable71[47],
    {N, "L2T-TMU-config-read-miss", "L2T", "[L2T] TMU CFG read misses"},
    {N, "L2T-SLC0-read-miss", "L2T", "[L2T] SLC0 read misses"},
    {N, "L2T-SLC1-read-miss", "L2T", "[L2T] SLC1 read misses"},
    // 70
    {K, "L2T-SLC2-read-miss", "L2T", "[L2T] SLC2 read misses"},
    kTable71[62],
    kTable71[63],
    kTable71[64],
    kTable71[65],
    kTable71[66],
    kTable71[67],
    kTable71[68],
    kTable71[69],
    kTable71[70],
    // 80
    {K, "GMP-memory-reads", "GMP", "[GMP] Total memory reads"},
    kTable71[71],
    kTable71[72],
    kTable71[73],
    kTable71[74],
    {N, "TMU-MRU-hits", "TMU", "[TMU] Total MRU hits"},
    kTable71[4],
};
static_assert(std::size(kTable42) == 87);

/// Names are Mesa's (vc4_query.c): the kernel has numbers alone (vc4-abi.md 6.4).
constexpr CounterInfo kTable21[] = {
    // 0
    kTable71[5],
    kTable71[6],
    kTable71[7],
    kTable71[8],
    kTable71[9],
    kTable71[10],
    kTable71[11],
    {E, kTable42[7].name, "TLB", kTable42[7].description},
    {E, kTable42[8].name, "TLB", kTable42[8].description},
    kTable71[12],
    // 10
    kTable71[15],
    kTable71[14],
    kTable71[17],
    {M, "QPU-total-idle-clk-cycles", "QPU", "[QPU] Total idle clock cycles for all QPUs"},
    {E, "QPU-total-clk-cycles-vertex-coord-shading", "QPU",
     "[QPU] Total clock cycles for all QPUs doing vertex/coordinate shading"},
    {E, "QPU-total-clk-cycles-fragment-shading", "QPU",
     "[QPU] Total clock cycles for all QPUs doing fragment shading"},
    kTable42[16],
    {M, "QPU-total-clk-cycles-waiting-TMU", "QPU",
     "[QPU] Total clock cycles for all QPUs stalled waiting for TMUs"},
    {M, "QPU-total-clk-cycles-waiting-scoreboard", "QPU",
     "[QPU] Total clock cycles for all QPUs stalled waiting for Scoreboard"},
    {M, "QPU-total-clk-cycles-waiting-varyings", "QPU",
     "[QPU] Total clock cycles for all QPUs stalled waiting for Varyings"},
    // 20
    {M, "QPU-total-instr-cache-hit", "QPU", "[QPU] Total instruction cache hits for all slices"},
    {M, "QPU-total-instr-cache-miss", "QPU", "[QPU] Total instruction cache misses for all slices"},
    {M, "QPU-total-uniform-cache-hit", "QPU", "[QPU] Total uniforms cache hits for all slices"},
    {M, "QPU-total-uniform-cache-miss", "QPU", "[QPU] Total uniforms cache misses for all slices"},
    {M, "TMU-total-text-quads-processed", "TMU", "[TMU] Total texture quads processed"},
    {M, "TMU-total-text-cache-miss", "TMU", "[TMU] Total texture cache misses"},
    {N, "VPM-total-clk-cycles-VDW-stalled", "VPM", "[VPM] Total clock cycles VDW is stalled"},
    {M, "VPM-total-clk-cycles-VCD-stalled", "VPM", "[VPM] Total clock cycles VCD is stalled"},
    {M, "L2C-total-cache-hit", "L2C", "[L2C] Total Level 2 cache hits"},
    {M, "L2C-total-cache-miss", "L2C", "[L2C] Total Level 2 cache misses"},
};
static_assert(std::size(kTable21) == 30);

constexpr ClassInfo kClasses[] = {
    {E, "exact", "counted while jobs run, in every build"},
    {M, "modelled", "by the timing model (v3demu run --timing, replay --time, profile); without it 0"},
    {N, "not counted", "0: nothing counts it yet"},
    {K, "always 0", "nothing programs or uses what it watches"},
};

/// Counters that 7.1 does not have, or not so, and that somebody counts.
struct OwnCounter {
  int number;
  Counter index;
};
constexpr OwnCounter kOwnOf42[] = {
    {13, kQpuIdleClocks}, {14, kQpuOtherClocks},      {16, kQpuClocks},  {17, kQpuTmuClocks},
    {18, kQpuTlbClocks},  {33, kQpuOtherStallClocks}, {25, kTmuMisses},  {52, kL2Writes},
    {55, kCleClocks},     {56, kL2TmuReads},          {58, kL2VcdReads}, {63, kL2WriteMisses},
};

/// Those of caches have other names on 7.1.
constexpr OwnCounter kOwnOf21[] = {
    {7, kTlbQuadsNoCoverage}, {8, kTlbQuadsCoverage}, {13, kQpuIdleClocks},  {14, kQpuVertexTime},
    {15, kQpuFragmentTime},   {16, kQpuClocks},       {17, kQpuTmuClocks},   {18, kQpuTlbClocks},
    {19, kQpuVaryingClocks},  {20, kCodeFetches},     {22, kUniformFetches}, {24, Counter{24}},
    {25, kTmuMisses},         {27, kVcdClocks},       {28, Counter{28}},     {29, Counter{29}},
};

/// factor * counter `left` == or >= the sum of the parts.
struct Relation {
  int factor, left;
  bool equal;
  std::vector<int> parts;
};

const std::vector<Relation>& relations() {
  static const std::vector<Relation> kRelations = {
      {1, kFepPrimitivesPixels, false, {kFepPrimitivesNoPixels}},
      {1, kTlbQuadsZStencilFail, false, {kTlbQuadsStencilFail}},
      {1, kTlbQuadsWritten, false, {kTlbPartialQuadsWritten}},
      {1, 22, false, {23}},         // clocks of the TMUs: stalled ones are among the active
      {1, 22, false, {25}},         // ... those of x4 accesses, too
      {1, 23, false, {26}},         // ... and of these the stalled ones
      {1, 24, false, {27}},         // an x4 access is one at least
      {1, 28, true, {44, 46, 48}},  // hits of the L2T and its clients
      {1, 29, true, {45, 47, 49}},  // misses
      {1, 28, true, {41}},          // hits go through the hit queue
      {1, 29, true, {34}},          // each miss is filled
      {1, 34, true, {67}},          // ... from memory
      {1, 31, true, {63}},          // and what is written back goes there
      {1, kL2Writes, true, {33, kL2WriteMisses}},
      {1, kL2TmuReads, true, {44, 45}},
      {1, kL2VcdReads, true, {46, 47}},
      {1, kL2TmuReads, false, {kTmuMisses}},  // atomics read there, too
      {1, kQpuActive, false, {18, 19}},       // a line of code is entered for an instruction at least
      {4, kQpuActive, false, {20, 21}},       // which takes four words at most
      {1, 62, true, {63, 64, 65}},            // memory writes of the core and its parts
      {1, 62, true, {76}},
      {1, 66, true, {67, 68, 69, 70}},  // memory reads
      {1, 66, true, {75}},
      {1, 75, false, {79}},                          // no more are under way than there are
      {4, kQpuActive, false, {kQpuFragmentClocks}},  // an instruction takes 4 clocks
      {1, 85, true, {87, 88, 89, 90, 91, 92}},       // QPU stalls and their causes
      {4, 85, false, {86}},                          // those of fragments are among them
      {4, 85, false, {kQpuTmuClocks, kQpuTlbClocks, kQpuVaryingClocks}},  // and on 4.2 and 2.1
      {1, kCodeFetches, false, {19}},     // misses are counted among what is fetched
      {1, kUniformFetches, false, {21}},  // ... and these again
      {4, 85, true, {86, kQpuOtherStallClocks}},
      {1, 0, false, {1}},  // no unit works longer than the job takes
      {1, 1, true, {2, 3, 4}},
      {1, 1, true, {kCleClocks, 4}},
  };
  return kRelations;
}

/// Clocks in which units work or wait: of all of them together no more than the job has, or qcycles of four.
struct Limit {
  enum class Of : uint8_t { kClock, kTmuClock, kQpuClock, kQpuCycle } of;
  std::vector<int> parts;
};

const std::vector<Limit>& limits() {
  using Of = Limit::Of;
  static const std::vector<Limit> kLimits = {
      {Of::kTmuClock, {22}},
      {Of::kClock, {28, 29}},  // requests of which the L2T takes no more than one in a clock
      {Of::kClock, {36}},      // there is one L2T
      {Of::kClock, {37}},
      {Of::kClock, {40}},
      {Of::kClock, {43}},
      {Of::kClock, {77}},  // and one port for each direction
      {Of::kClock, {78}},
      {Of::kQpuCycle, {81, 82, 83, 85}},  // all that a QPU does at a time
      {Of::kQpuClock, {kQpuIdleClocks, kQpuClocks, 86, kQpuOtherStallClocks}},
      {Of::kQpuClock, {kQpuIdleClocks, kQpuVertexTime, kQpuFragmentTime}},
      {Of::kQpuClock, {kQpuTmuClocks, kQpuTlbClocks, kQpuVaryingClocks}},
      {Of::kClock, {kVcdClocks}},  // there is one VCD
  };
  return kLimits;
}

uint64_t clocks_of(Limit::Of of, uint64_t clocks, const Units& units) {
  switch (of) {
    case Limit::Of::kClock:
      return clocks;
    case Limit::Of::kTmuClock:
      return clocks * units.tmus;
    case Limit::Of::kQpuClock:
      return clocks * units.qpus;
    case Limit::Of::kQpuCycle:
      return clocks * units.qpus / 4;
  }
  return 0;
}

std::string numbers(const std::vector<int>& parts) {
  return absl::StrCat("[", absl::StrJoin(parts, "] + ["), "]");
}

const char* name_of(int index) { return index < kMaxCounters ? kTable71[index].name : "of 4.2 or 2.1"; }

}  // namespace

std::span<const ClassInfo> counter_classes() { return kClasses; }

const char* class_name(Class counts) {
  for (const ClassInfo& c : kClasses)
    if (c.counts == counts) return c.name;
  return "";
}

std::span<const CounterInfo> counter_table(chip::Generation generation) {
  switch (generation) {
    case chip::Generation::k21:
      return kTable21;
    case chip::Generation::k42:
      return kTable42;
    case chip::Generation::k71:
      return kTable71;
  }
  chip::no_such_generation();
}

namespace {

/// Of a chip whose counters are those of 7.1 by their names, but for its own.
int index_by_name(const CounterInfo& counter) {
  for (int i = 0; i < kMaxCounters; ++i)
    if (std::strcmp(kTable71[i].name, counter.name) == 0) return i;
  return -1;
}

int index_of(std::span<const CounterInfo> table, std::span<const OwnCounter> own, int counter) {
  for (const OwnCounter& o : own)
    if (o.number == counter) return o.index;
  return index_by_name(table[static_cast<size_t>(counter)]);
}

}  // namespace

int index_in_counts(chip::Generation generation, int counter) {
  switch (generation) {
    case chip::Generation::k21:
      return kTable21[counter].counts == Class::kNotCounted ? -1 : index_of(kTable21, kOwnOf21, counter);
    case chip::Generation::k42:
      return index_of(kTable42, kOwnOf42, counter);
    case chip::Generation::k71:
      return counter;
  }
  chip::no_such_generation();
}

std::vector<std::string> inconsistencies(const Counts& counts, const Units& units) {
  const auto value = [&](int i) { return counts.values[static_cast<size_t>(i)]; };
  const auto sum = [&](const std::vector<int>& parts) {
    uint64_t total = 0;
    for (const int i : parts) total += value(i);
    return total;
  };
  std::vector<std::string> broken;
  for (const Relation& r : relations()) {
    const uint64_t left = static_cast<uint64_t>(r.factor) * value(r.left), parts = sum(r.parts);
    if (r.equal ? left == parts : left >= parts) continue;
    broken.push_back(absl::StrFormat("%d * [%d] %s is %d; %s make %d", r.factor, r.left, name_of(r.left),
                                     left, numbers(r.parts), parts));
  }
  for (const Limit& limit : limits()) {
    const uint64_t most = clocks_of(limit.of, value(0), units), parts = sum(limit.parts);
    if (parts <= most) continue;
    broken.push_back(absl::StrFormat("%s (%s) make %d, of %d that there are", numbers(limit.parts),
                                     name_of(limit.parts[0]), parts, most));
  }
  for (int i = 0; i < kMaxCounters; ++i) {
    if (kTable71[i].counts == Class::kConstant && value(i) != 0)
      broken.push_back(absl::StrFormat("[%d] %s is constant 0 but counts %d", i, kTable71[i].name, value(i)));
  }
  return broken;
}

bool has_rule(int index) {
  const auto names = [index](const std::vector<int>& parts) {
    return std::find(parts.begin(), parts.end(), index) != parts.end();
  };
  return std::any_of(relations().begin(), relations().end(),
                     [&](const Relation& r) { return r.left == index || names(r.parts); }) ||
         std::any_of(limits().begin(), limits().end(), [&](const Limit& l) { return names(l.parts); });
}

}  // namespace v3d::perf
