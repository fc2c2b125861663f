/// A Thread is the state of one QPU thread, with the ports through which it reaches the fixed-function
/// blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "gpu/base/lanes.h"
#include "gpu/base/memory.h"
#include "gpu/qpu/isa/isa.h"
#include "gpu/tmu/lookup/unit.h"

namespace v3d::qpu {

struct Thread;
class Observer;

/// What ldvary delivers for one varying component of a batch (qpu.md 5).
struct Varying {
  AlignedLanes vp;  ///< float A*dx + B*dy
  AlignedLanes c;   ///< raw bits
};
/// They stand after the components, and are 0: reads beyond those get the last one. (C of a component is
/// read when one more may have been asked for.)
inline constexpr uint32_t kVaryingsBehind = 2;

/// TLB access specifier, decoded (qpu.md 4.5).
struct TlbSpec {
  enum class Kind : uint8_t { kColorF16, kColor32, kDepth, kUnknown } kind;
  uint8_t render_target;  ///< 0..7
  bool per_sample;        ///< words of sample 0, then 1, 2, 3
  bool invariant_depth;   ///< Z of the rasteriser; the written value is ignored
  uint8_t words;          ///< of one sample, 1..4
};

/// Ways through a TlbPort that compiled code may take for as long as the draw lasts.
struct TlbBinding {
  /// write_color() of thread.pending.tlb_words with the specifier 0xff: render target 0, four halves a pixel.
  /// Null: there is no such way.
  void (*write_halves)(Thread& thread, LaneMask exec) = nullptr;
  /// write_depth() of the rasteriser's depth. Null: there is no such way.
  void (*write_depth)(Thread& thread, LaneMask exec) = nullptr;
  bool drops_depth = false;  ///< write_depth() does nothing
  /// Where all pixels of TlbBlock are live and no condition holds back a lane, write_depth() does nothing but
  /// add 1 to TlbBlock::tested.
  bool counts_depth = false;
};

/// The pixels of a batch, for the ways of TlbBinding; and what went there since the draw began.
struct TlbBlock {
  /// In render target 0, the four pixels of each quad, where programs replace them as rgba8. The first is
  /// null: they do not. Those of quads without live pixels may be anywhere in the target.
  std::array<uint32_t*, 4> quads{};
  LaneMask live = 0;         ///< pixels that have coverage; 0 in multisampled frames
  uint64_t tested = 0;       ///< batches; @see TlbBinding::counts_depth
  uint64_t whole = 0;        ///< batches of which all pixels were replaced
  uint64_t some_quads = 0;   ///< of other batches, quads of which pixels were replaced
  uint64_t split_quads = 0;  ///< of those, the ones of which not all were
};

/// The tile buffer as a fragment program sees it; implemented by gpu/tlb. One call per complete access
/// sequence.
class TlbPort {
 public:
  virtual ~TlbPort() = default;
  /// @param words  spec.words words, or 4 * spec.words when per_sample, in program order
  /// @param exec   lanes whose conditions held for every word of the sequence
  virtual void write_color(Thread& thread, const TlbSpec& spec, const Lanes* words, LaneMask exec) = 0;
  /// Tests depth and stencil late, updates them, and narrows thread.msf to the samples that passed.
  virtual void write_depth(Thread& thread, const TlbSpec& spec, Lanes z, LaneMask exec) = 0;
  /// Fills the words of the sequence.
  virtual void read_color(Thread& thread, const TlbSpec& spec, Lanes* words) = 0;
  virtual TlbBinding binding() const { return {}; }
};

/// Return words of the TMU that a thread can leave waiting. The hardware has 16 / threads; more is an error.
inline constexpr uint32_t kTmuFifo = 64;
/// After them: for compiled code, which writes the words of a lookup one after the other.
inline constexpr uint32_t kTmuFifoRoom = 3;

/// The caller fills the inputs and calls reset() first; run() does the rest.
struct Thread {
  // Registers
  AlignedLanes rf[64];
  AlignedLanes acc[kNumRegisters - kFirstAccumulator];  ///< 4.2 only
  AlignedLanes rtop;
  AlignedLanes msf;  ///< sample mask per lane: 1 or 4 coverage bits; 0 = helper or dead lane
  // What restart() sets stands together, here and in Pending: each batch of fragments begins with it.
  LaneMask flag_a, flag_b;
  NnMode nn_mode;       ///< of V8DOT; no driver relies on the one at thread start: kUu, assumed
  bool stop_at_switch;  ///< return Stop::kSwitch at every thread switch
  bool stop_at_block;   ///< compiled code ends the budget where a block begins, after one block at least
  uint32_t link;

  // Streams
  GpuAddr unifa;
  uint32_t tmu_config;  ///< general access configuration, all ones at start
  uint32_t tlb_config;  ///< all ones at start

  // Control
  uint64_t budget;        ///< instructions left before run() gives up with Stop::kBudget
  uint64_t instructions;  ///< executed so far
  Observer* observer;     ///< null, or who sees every instruction (observer.h)

  GpuAddr pc;
  GpuAddr uniforms;

  // Inputs of the stage
  Memory memory;
  tmu::Unit* tmu;
  uint32_t tidx;
  bool four_threads;   ///< threading bit of the record
  bool final_section;  ///< "start in final thread section" / single segment
  /// Vertex input: word r of the lane's vertex is vpm_in[r]. Rows at and beyond the count read 0.
  const AlignedLanes* vpm_in;
  uint32_t vpm_in_rows;
  /// Geometry input: word r of vertex v of the lane's primitive is gs_in[v * gs_in_rows + r].
  const AlignedLanes* gs_in;
  uint32_t gs_in_rows, gs_in_vertices;
  AlignedLanes gs_invocation;
  /// Output segment. Writes beyond the count are dropped.
  AlignedLanes* vpm_out;
  uint32_t vpm_out_rows;
  /// Fragment: components in ldvary order; reads beyond them give 0. @see set_varyings
  const Varying* varyings;
  uint32_t last_varying;             ///< bytes from there to the last of kVaryingsBehind
  AlignedLanes pixel_x, pixel_y;     ///< XCD, YCD
  AlignedLanesF sample_x, sample_y;  ///< FXCD, FYCD
  AlignedLanes sample_id;
  LaneMask back_facing;  ///< REVF
  TlbPort* tlb;
  TlbBinding tlb_binding;  ///< of tlb
  TlbBlock tlb_block;
  /// Compute: main-stream uniform reads inside [snapshot_address, + snapshot_bytes) come from here.
  const uint8_t* snapshot;
  GpuAddr snapshot_address;
  uint32_t snapshot_bytes;

  const char* hang;  ///< with Stop::kHang: why it cannot go on

  /// With Stop::kMeeting: so many threads of the core, this one among them, wait for each other at a
  /// synchronisation object.
  struct Meeting {
    uint32_t threads;  ///< 2 or more
    uint8_t object;    ///< 0..63
  } meeting;

  /// State of the interpreter that outlives a stop; opaque to callers. "In n": after n more instructions.
  struct Pending {
    // What is under way. Zero when nothing is, which lets the interpreter take its fast path.
    struct Events {
      uint8_t switch_in, end_in, branch_in;
      uint8_t vary;  // bit n: a C coefficient lands before the n-th next instruction
      uint8_t sfu;   // the same for r4 of 4.2
      bool previous_was_thrsw;
      bool operator==(const Events&) const = default;
    } events;
    bool last_section;
    enum class Sync : uint8_t { kNone, kBarrier, kMeeting } sync;  // at the next thread switch
    // ldvary, and special functions, of which two results may be under way
    uint32_t next_varying;  // bytes from Thread::varyings
    uint8_t sfu_oldest;
    uint8_t num_config;  // words of the TMU sequence being written; texture has what stands for the others
    bool tlb_reading;
    uint32_t fifo_head, fifo_tail;  // of words that ldtmu has not taken yet, free running
    // TLB sequence
    uint8_t tlb_have, tlb_need;
    LaneMask tlb_exec;
    bool tlb_halves;  // the sequence may go through TlbBinding::write_halves
    TlbSpec tlb_spec;
    // Branch
    bool branch_moves_uniforms;
    GpuAddr branch_target, branch_uniforms;
    AlignedLanes sfu_result[2];
    tmu::TextureLookup texture;
    AlignedLanes fifo[kTmuFifo + kTmuFifoRoom];
    AlignedLanes tlb_words[16];

    void forget_config() {
      num_config = 0;
      texture.p1 = tmu::kDefaultP1;
      texture.p2 = tmu::kDefaultP2;
    }
  } pending;

  /// All registers and streams as at thread start (qpu.md 6), no inputs, an unlimited budget.
  void reset();
  /// The same for a thread of the same stage after another one: inputs, and registers, whose contents
  /// programs may not rely on, keep their values; pc, uniforms and msf are the caller's. There is no
  /// observer.
  void restart() {
    flag_a = flag_b = 0;
    nn_mode = NnMode::kUu;
    stop_at_switch = stop_at_block = false;
    link = 0;
    unifa = 0;
    tmu_config = tlb_config = ~0u;
    budget = UINT64_MAX;
    instructions = 0;
    observer = nullptr;
    tlb_block.quads[0] = nullptr;
    tlb_block.live = 0;
    // What counts and marks lead to needs no initial value.
    Pending& p = pending;
    p.events = {};
    p.last_section = false;
    p.sync = Pending::Sync::kNone;
    p.next_varying = 0;
    p.sfu_oldest = 0;
    p.forget_config();
    p.tlb_reading = false;
    p.fifo_head = p.fifo_tail = 0;
    p.tlb_have = p.tlb_need = 0;
    p.tlb_exec = kAllLanes;
    p.tlb_halves = false;
    p.texture.written = p.texture.num_data = 0;
  }

  /// @param components  and kVaryingsBehind more
  void set_varyings(const Varying* components, uint32_t count) {
    varyings = components;
    last_varying = (count + kVaryingsBehind - 1) * static_cast<uint32_t>(sizeof(Varying));
  }
  uint32_t num_varyings() const {
    return last_varying / static_cast<uint32_t>(sizeof(Varying)) + 1 - kVaryingsBehind;
  }
  /// C of a component that ldvary took: the last one, 0, or the one before, 1.
  const Lanes& varying_c(uint32_t before) const {
    return varyings[pending.next_varying / sizeof(Varying) - 1 - before].c;
  }

  /// rf and acc stand one after the other, in front of all else.
  Lanes& at(Register r) { return reinterpret_cast<Lanes*>(this)[r]; }
  const Lanes& at(Register r) const { return reinterpret_cast<const Lanes*>(this)[r]; }
};
static_assert(offsetof(Thread, rf) == 0 && offsetof(Thread, acc) == sizeof(Thread::rf));

enum class Stop : uint8_t {
  kEnd,      ///< the program ended
  kSwitch,   ///< thread switch, only with stop_at_switch
  kBarrier,  ///< waits at a compute barrier; call run() again when all threads of the supergroup arrived
  kMeeting,  ///< waits for thread.meeting; call run() again when all have arrived. Only without TLB and VPM
             ///< output
  kBudget,   ///< thread.budget is used up; run() may be called again
  kHang,     ///< ran off its code, popped an empty TMU queue, or met an invalid instruction; cannot go on
};

}  // namespace v3d::qpu
