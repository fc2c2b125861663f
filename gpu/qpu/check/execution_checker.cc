#include "gpu/qpu/check/execution_checker.h"

#include <cmath>

#include "gpu/base/float16.h"
#include "gpu/qpu/run/alu.h"

namespace v3d::qpu {
namespace {

uint32_t outstanding(const Thread& t) { return t.pending.fifo_tail - t.pending.fifo_head; }

Lanes source(const Thread& t, const Operand& o) {
  if (o.kind == Operand::Kind::kRegister) return t.rf[o.index];
  return splat(o.kind == Operand::Kind::kImmediate ? small_immediate(o.index) : 0);
}

bool is_inexact_sum(uint16_t a, uint16_t b, bool negate) {
  const auto denormal = [](uint16_t half) { return (half & 0x7c00) == 0 && (half & 0x3ff) != 0; };
  const double x = half_to_float(a), y = half_to_float(b), sum = negate ? x - y : x + y;  // exact in double
  const uint16_t half = float_to_half(static_cast<float>(sum));
  return denormal(a) || denormal(b) || denormal(half) || (std::isfinite(sum) && half_to_float(half) != sum);
}

bool has_inexact_sum(const Thread& t, const AluHalf& half) {
  const Lanes a = unpack_halves(half.a.unpack, source(t, half.a)), b = source(t, half.b);
  const LaneMask lanes = nonzero(t.msf) & lanes_of(half.cond, t);
  for (int n = 0; n < kLanes; ++n)
    for (int shift = 0; shift < 32; shift += 16)
      if ((lanes >> n & 1) && is_inexact_sum(static_cast<uint16_t>(a[n] >> shift),
                                             static_cast<uint16_t>(b[n] >> shift), half.op != Op::kVfadd))
        return true;
  return false;
}

uint32_t row_of(const Thread& t, const Operand& row) {
  if (row.kind == Operand::Kind::kImmediate) return small_immediate(row.index);
  return row.reg() < kNumRegisters ? uint32_t{t.at(row.reg())[0]} : 0;
}

bool uses_tlb(const HazardFacts& f) { return f.tlb_read || f.tlb_write; }
bool uses_mask(const HazardFacts& f) { return f.msf || f.setmsf || f.branch_by_msf; }
bool moves_row(const HazardFacts& f) { return f.stores_row || f.loads_row; }

}  // namespace

bool ExecutionChecker::asks(const HazardFacts& f, Behind behind) {
  return behind != Behind::kNothing || f.sums_halves || f.tmu_terminator || f.ldtmu || f.ldvary ||
         uses_tlb(f) || uses_mask(f) || moves_row(f);
}

void ExecutionChecker::before(const Thread& t, const Instruction& i, const HazardFacts& f) {
  outstanding_ = outstanding(t);
  next_varying_ = t.pending.next_varying / sizeof(Varying);
  inexact_half_sum_ = f.sums_halves && has_inexact_sum(t, i.add);
  if (moves_row(f)) vpm_row_ = row_of(t, i.add.a);
}

HazardSet ExecutionChecker::after(const Thread& t, const HazardFacts& f, Behind behind) {
  HazardsFound found;
  found.check(inexact_half_sum_, Hazard::kHalfSums);
  const bool beyond = f.ldvary && t.tlb && next_varying_ >= t.num_varyings();
  found.check(beyond && !varyings_told_, Hazard::kVaryCount);
  varyings_told_ = varyings_told_ || beyond;
  found.check(f.ldtmu && outstanding_ == 0, Hazard::kTmuUnderflow);
  const HazardSet all = found.set() | tlb_rules(t, f, behind) | tmu_rules(t, behind) | row_rules(f);
  return rules_of(setting_.generation, all);
}

HazardSet ExecutionChecker::tlb_rules(const Thread& t, const HazardFacts& f, Behind behind) {
  HazardsFound found;
  const bool masks_late = z_written_ && uses_mask(f);
  found.check(masks_late && !mask_told_, Hazard::kMsfAfterZ);
  mask_told_ = mask_told_ || masks_late;
  if (!uses_tlb(f)) return found.set();
  const bool writes_z = f.tlb_write && t.pending.tlb_spec.kind == TlbSpec::Kind::kDepth;
  z_written_ = z_written_ || writes_z;
  found.check(writes_z && behind == Behind::kEnd, Hazard::kTlbzAtEnd);
  found.check(!t.tlb && !stage_told_, Hazard::kTlbStage);
  stage_told_ = stage_told_ || !t.tlb;
  return found.set();
}

HazardSet ExecutionChecker::tmu_rules(const Thread& t, Behind behind) const {
  HazardsFound found;
  const uint32_t now = outstanding(t);
  found.check(exceeds(outstanding_, now, tmu_share(setting_)), Hazard::kTmuOverflow);
  found.check(exceeds(outstanding_, now, kTmuQueue), Hazard::kTmuLost);
  found.check(behind == Behind::kEnd && now != 0, Hazard::kTmuLeftover);
  const bool waits = behind == Behind::kSwitch && t.pending.sync != Thread::Pending::Sync::kNone;
  found.check(waits && now != 0, Hazard::kTsyTmu);
  return found.set();
}

HazardSet ExecutionChecker::row_rules(const HazardFacts& f) {
  if (!moves_row(f) || vpm_row_ >= 64) return 0;
  const uint64_t row = uint64_t{1} << vpm_row_;
  if (f.stores_row) stored_rows_ |= row;
  if (!f.loads_row || !(stored_rows_ & row)) return 0;
  stored_rows_ &= ~row;
  return bit(Hazard::kVpmOrder);
}

}  // namespace v3d::qpu
