/// A Thread is the state of one QPU thread of V3D 2.1, with the ports through which it reaches the
/// fixed-function blocks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/base/lanes.h"
#include "gpu/base/memory.h"
#include "gpu/qpu/isa/vc4.h"
#include "gpu/qpu/run/thread.h"
#include "gpu/qpu/run/vc4_vpm.h"

namespace v3d::tmu {
class Footprint;
}

namespace v3d::qpu::vc4 {

struct Thread;

/// The tile buffer as a fragment program sees it: vc4-qpu.md 4.9. Samples are counted, and thread.ms_flags
/// looked at, by who implements it.
class Tlb {
 public:
  virtual ~Tlb() = default;
  /// The colour of the next sample, as rgba8.
  virtual Lanes load_color(Thread& thread) = 0;
  /// @param exec  lanes whose condition holds  @param all  all samples of the pixels, not the next one
  virtual void write_color(Thread& thread, const Lanes& color, LaneMask exec, bool all) = 0;
  /// Tests depth and stencil, updates them, and narrows thread.ms_flags to samples that passed. Lanes outside
  /// of exec have lost their flags before.
  virtual void write_z(Thread& thread, const Lanes& z, LaneMask exec) = 0;
  /// @param setup  vc4-qpu.md 4.10
  virtual void set_stencil(Thread& thread, uint32_t setup) = 0;
};

/// What a sequence of writes to a TMU asks for: vc4-qpu.md 4.8.
struct Lookup {
  uint8_t unit = 0;  ///< 0 or 1
  bool has_t = false, has_r = false, has_b = false;
  uint8_t parameters = 0;  ///< that were popped
  uint32_t p[4] = {};      ///< those not popped are 0
  AlignedLanes s = {}, t = {}, r = {}, b = {};
};

/// Texture lookups. Direct reads of memory the thread does by itself.
class Tmu {
 public:
  virtual ~Tmu() = default;
  /// @return  the word that goes to r4
  virtual Lanes texture(Thread& thread, const Lookup& lookup) = 0;
  /// Lookups leave there what they touched. Null: nobody asks.
  virtual void set_footprint(tmu::Footprint* /*footprint*/) {}
};

/// What the threads of all QPUs share: vc4-qpu.md 4.12. Threads of one job run by turns on one host thread.
struct Shared {
  static constexpr uint8_t kHighest = 15;
  uint8_t semaphores[16] = {};
  const Thread* mutex = nullptr;  ///< its owner
};

using qpu::Varying;

class Observer;

/// Result words of a TMU that a thread can leave waiting. The hardware has room for 8.
inline constexpr uint32_t kTmuResults = 16;

/// The caller fills the inputs and calls reset() first; run() does the rest.
struct Thread {
  // ra0..31, rb0..31, r0..r5, then what a word read through its two files, what it converted, and what its
  // halves computed. They stand one after the other.
  AlignedLanes registers[64 + 6 + 2 + 1 + 2];
  static constexpr int kFileB = 32, kAccumulators = 64, kPortA = 70, kPortB = 71, kConverted = 72,
                       kResults = 73;
  AlignedLanes& ra(int n) { return registers[n]; }
  AlignedLanes& rb(int n) { return registers[kFileB + n]; }
  AlignedLanes& r(int n) { return registers[kAccumulators + n]; }
  const AlignedLanes& ra(int n) const { return registers[n]; }
  const AlignedLanes& rb(int n) const { return registers[kFileB + n]; }
  const AlignedLanes& r(int n) const { return registers[kAccumulators + n]; }

  /// Z, N and C; the last one is 0, for halves that never write.
  enum Flag : uint8_t { kZ, kN, kC, kNone };
  LaneMask flags[4];

  // Streams and control
  GpuAddr pc, uniforms;
  /// Instructions left before run() gives up with Stop::kBudget. DMA counts as one for each 16 elements.
  uint64_t budget;
  uint64_t instructions;  ///< executed so far, counted in the same way
  uint64_t moves;         ///< of those, what DMA counts as
  Observer* observer;     ///< null, or who sees every instruction

  // Inputs of the stage
  Memory memory;
  uint8_t qpu_number;
  uint8_t threads_per_qpu;  ///< 1 or 2: what others see of it; it computes the same
  Tlb* tlb;
  Tmu* tmu;
  Shared* shared;
  /// Rows that a vertex program reads its attributes from and writes its results to; of user programs both
  /// are all rows.
  VpmRows vpm_in, vpm_out;
  const Varying* varyings;
  uint32_t num_varyings;
  AlignedLanes pixel_x, pixel_y;
  AlignedLanes ms_flags;  ///< 4 bits a lane; 0: the pixel is not covered
  LaneMask back_facing;

  const char* hang;          ///< with Stop::kHang: why it cannot go on
  uint32_t host_interrupts;  ///< that the program asked for

  /// What outlives a stop; opaque to callers. "In n": after n more instructions.
  struct Pending {
    struct Events {
      uint8_t branch_in, end_in, sfu_in, unused;
    } events;
    GpuAddr branch_target;
    uint32_t next_varying;
    AlignedLanes sfu_result;
    VpmQueue vpm_reads;
    VpmBlock vpm_write;
    VpmDma dma;
    uint32_t dma_elements;   // moved and not charged yet
    uint32_t met_no_memory;  // of host code: its last lookup did
    struct Unit {
      Lookup lookup;
      uint32_t head, tail;  // free running
      AlignedLanes results[kTmuResults];
    } tmu[2];
  } pending;

  /// All registers and streams as at thread start, no inputs, an unlimited budget.
  void reset();
  /// The same for a thread of the same stage after another one: inputs keep their values, and registers,
  /// whose contents programs may not rely on. pc, uniforms and ms_flags are the caller's.
  void restart();
};
static_assert(offsetof(Thread, registers) == 0);

enum class Stop : uint8_t {
  kEnd,     ///< the program ended
  kWait,    ///< for a semaphore or the mutex: run() again when others ran
  kBudget,  ///< thread.budget is used up; run() may be called again
  kHang,    ///< cannot go on: thread.hang
};

/// Who watches a thread execute.
class Observer {
 public:
  /// What follows an instruction.
  enum class Next : uint8_t {
    kContinue,
    kJump,  ///< a branch takes effect; thread.pc is its target
    kEnd,   ///< the program ended
  };

  virtual ~Observer() = default;
  /// The instruction at thread.pc is about to execute.
  virtual void before(const Thread& thread, uint64_t word) = 0;
  /// It was executed; thread.pc still is its address. @param error  null, or why the thread hangs
  virtual void after(const Thread& thread, uint64_t word, const char* error) = 0;
  /// Between these: it looked up the words at the addresses, or texels, or it started a transfer of the VPM,
  /// with the set-up words of thread.pending.dma.
  virtual void direct_lookup(const Thread& /*thread*/, int /*unit*/, const Lanes& /*addresses*/) {}
  virtual void texture_lookup(const Thread& /*thread*/, const Lookup& /*lookup*/) {}
  virtual void transfer(const Thread& /*thread*/, bool /*stores*/, GpuAddr /*address*/) {}
  /// After it, unless the thread hangs; thread.pc is that of the next instruction.
  virtual void finished(const Thread& /*thread*/, Next /*next*/) {}
};

}  // namespace v3d::qpu::vc4
