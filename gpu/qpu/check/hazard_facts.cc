#include "gpu/qpu/check/hazard_facts.h"

namespace v3d::qpu {
namespace {

class Collector {
 public:
  Collector(chip::Generation generation, uint64_t word, const Instruction& i)
      : generation_(generation), i_(i) {
    half(i.add);
    half(i.mul);
    signals();
    operations();
    immediates(word);
    peripherals();
  }
  const HazardFacts& facts() const { return f_; }

 private:
  void uniform() {
    f_.second_uniform = f_.main_uniforms;
    f_.main_uniforms = true;
  }

  void half(const AluHalf& h) {
    for (const Operand* o : {&h.a, &h.b}) {
      f_.reads.add(o->reg());
      if ((i_.signals & kRotate) && &h == &i_.mul) f_.rotate_reads.add(o->reg());
    }
    if (info(h.op).has_destination) write(h.magic, h.waddr, f_.alu_writes);
  }

  void write(bool magic, uint8_t waddr, RegisterSet& registers) {
    if (!magic) {
      registers.add(waddr);
      return;
    }
    const WaddrInfo& w = waddr_info(generation_, waddr);
    if (w.takes_uniform) uniform();
    if (w.effect == Effect::kUnknown) {
      f_.unknown_address = true;
      return;
    }
    if (starts_sfu(w.effect))
      f_.magic_sfu = true;
    else
      f_.magic_writes.add(w.reg);
    if (w.effect == Effect::kUnifa) f_.writes_unifa = true;
    if (w.effect == Effect::kBarrier) f_.syncb = true;
    if (w.unit == Unit::kTlb) f_.tlb_write = true;
    if (w.unit == Unit::kTsy) f_.tsy = true;
    if (w.unit == Unit::kVpm) f_.vpm_write = true;
    if (w.unit != Unit::kTmu) return;
    ++f_.tmu_writes;
    if (w.effect == Effect::kTmuData) ++f_.tmu_data;
    if (w.effect == Effect::kTmuDref || w.effect == Effect::kTmuOff) ++f_.tmu_parameters;
    if (starts_lookup(w.effect)) f_.tmu_terminator = true;
    if (w.effect == Effect::kGeneral) f_.tmu_general = true;
    if (w.effect == Effect::kGeneral && w.takes_uniform) f_.tmu_uniform_config = true;
    (w.effect == Effect::kTmuConfig ? f_.tmu_config : f_.tmu_sequence) = true;
  }

  void signals() {
    const uint16_t s = i_.signals;
    f_.thrsw = s & kThrsw;
    f_.ldvary = s & kLdvary;
    f_.ldtmu = s & kLdtmu;
    f_.wrtmuc = s & kWrtmuc;
    f_.tlb_read = s & (kLdtlb | kLdtlbu);
    f_.implicit = s & kSignalsImplicit;
    f_.rotate_signal = s & kRotate;
    for (const SignalInfo& signal : kSignalInfo) {
      if (!(s & signal.signal)) continue;
      if (signal.stream == Stream::kMain) uniform();
      if (signal.stream == Stream::kUnifa) f_.loads_unifa = true;
    }
    if (f_.implicit) f_.loads.add(isa(generation_).implicit);
    if (s & kSignalsWithAddress) {
      write(i_.signal_magic, i_.signal_waddr, f_.signal_writes);
      f_.loads.add(i_.signal_magic ? waddr_info(generation_, i_.signal_waddr).reg : i_.signal_waddr);
    }
    if (f_.wrtmuc) f_.tmu_sequence = true;
  }

  void operations() {
    const AluHalf& add = i_.add;
    f_.sfu = info(add.op).traits & kSfu;
    f_.sfu_elsewhere = f_.sfu && add.magic && add.waddr != kWaddrNop;
    f_.setmsf = add.op == Op::kSetmsf;
    f_.msf = add.op == Op::kMsf;
    f_.tmu_wait = add.op == Op::kTmuwt;
    f_.vpm_wait = add.op == Op::kVpmwt;
    f_.multop = i_.mul.op == Op::kMultop;
    f_.umul24 = i_.mul.op == Op::kUmul24;
    f_.rotates = add.op == Op::kRot || add.op == Op::kRotq;
    const bool sum = add.op == Op::kVfadd || add.op == Op::kVfsub || add.op == Op::kVfcmp;
    f_.sums_halves = sum && (!add.magic || add.waddr != kWaddrNop);
    f_.stores_row = add.op == Op::kStvpmv;
    f_.loads_row = add.op == Op::kLdvpmvIn;
    const WaddrInfo& to = waddr_info(generation_, add.waddr);
    f_.rotates_elsewhere = f_.rotates && add.magic && (to.reg != kNoRegister || to.unit == Unit::kTmu);
    if (!(info(add.op).traits & kVpm)) return;
    (info(add.op).has_destination ? f_.vpm_read : f_.vpm_write) = true;
  }

  void immediates(uint64_t word) {
    const uint8_t which = signal_codes(generation_)[word >> 53 & 31].immediates;
    f_.idle_immediate = ((which & 3) && i_.add.op == Op::kNop) || ((which & 12) && i_.mul.op == Op::kNop);
  }

  // Source: Mesa qpu_schedule.c, qpu_peripherals and qpu_compatible_peripheral_access.
  void peripherals() {
    const bool sfu = f_.sfu || f_.magic_sfu;
    const bool tmu_pair = f_.wrtmuc && f_.tmu_writes == 1 && !f_.tmu_config;  // allowed together
    int count = f_.tmu_writes + f_.wrtmuc - tmu_pair + f_.tsy + sfu + f_.vpm_read + f_.vpm_write;
    if (isa(generation_).reads_and_waits_count) {
      f_.tmu_write_and_load = f_.ldtmu && f_.tmu_writes > 0;
      const bool load_counts = f_.ldtmu && !f_.tmu_write_and_load && !f_.vpm_read && !f_.vpm_write;
      count += f_.tlb_read + f_.tlb_write + load_counts + f_.vpm_wait + f_.tmu_wait;
    } else {
      count += f_.tlb_read;
      if (f_.tlb_read && f_.tlb_write) ++count;
    }
    f_.peripherals = static_cast<uint8_t>(count);
  }

  const chip::Generation generation_;
  const Instruction& i_;
  HazardFacts f_;
};

}  // namespace

HazardFacts facts_of(chip::Generation generation, uint64_t word, const Instruction& instruction) {
  if (instruction.is_branch) {
    const Branch& b = instruction.branch;
    HazardFacts facts;
    facts.branch_by_msf = b.msfign != Msfign::kNone && b.cond != BranchCond::kAlways &&
                          b.cond != BranchCond::kA0 && b.cond != BranchCond::kNa0;
    return facts;
  }
  return Collector(generation, word, instruction).facts();
}

RegisterSet writes_of(chip::Generation generation, const HazardFacts& f) {
  RegisterSet writes = f.alu_writes | f.signal_writes | f.magic_writes;
  if (f.implicit) writes.add(isa(generation).implicit);
  return writes;
}

}  // namespace v3d::qpu
