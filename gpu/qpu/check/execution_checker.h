/// An ExecutionChecker looks at the rules that only execution shows: what a thread does with the TMU, the
/// tile buffer, varyings and the VPM depends on uniforms and on what it is given.
#pragma once

#include "gpu/qpu/check/hazard.h"
#include "gpu/qpu/run/thread.h"

namespace v3d::qpu {

/// Follows one thread from its start, with a HazardChecker beside it. Instructions of which asks() is false
/// may be left out.
class ExecutionChecker {
 public:
  explicit ExecutionChecker(const HazardChecker::Setting& setting) : setting_(setting) {}

  /// What takes effect after an instruction.
  enum class Behind : uint8_t { kNothing, kSwitch, kEnd };
  static bool asks(const HazardFacts& facts, Behind behind);

  void before(const Thread& thread, const Instruction& instruction, const HazardFacts& facts);
  /// The thread comes from where it was not followed.
  void resume() { stored_rows_ = 0; }
  /// The same instruction was executed.
  HazardSet after(const Thread& thread, const HazardFacts& facts, Behind behind);

 private:
  HazardSet tlb_rules(const Thread& thread, const HazardFacts& facts, Behind behind);
  HazardSet tmu_rules(const Thread& thread, Behind behind) const;
  HazardSet row_rules(const HazardFacts& facts);

  HazardChecker::Setting setting_;
  bool z_written_ = false, mask_told_ = false, stage_told_ = false, varyings_told_ = false;
  uint64_t stored_rows_ = 0;  // of the VPM
  // Of the thread before the instruction.
  uint32_t outstanding_ = 0, next_varying_ = 0;
  uint32_t vpm_row_ = 0;           // of LDVPMV_IN and STVPMV, in lane 0
  bool inexact_half_sum_ = false;  // a sum of halves that rounds, or sees or gives a denormal, in a live lane
};

}  // namespace v3d::qpu
