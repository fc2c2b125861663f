#include "gpu/qpu/check/hazard_facts.h"

namespace v3d::qpu {
namespace {

bool is_tmu(uint8_t waddr) {
  return (waddr >= kWaddrTmul && waddr <= kWaddrTmuau) || (waddr >= kWaddrTmuc && waddr <= kWaddrTmuhslod);
}

bool is_terminator(uint8_t waddr) {
  return waddr == kWaddrTmua || waddr == kWaddrTmuau || waddr == kWaddrTmus ||
         (waddr >= kWaddrTmuscm && waddr <= kWaddrTmuslod);
}

class Collector {
 public:
  Collector(int version, uint64_t word, const Instruction& i) : version_(version), i_(i) {
    half(i.add);
    half(i.mul);
    signals();
    operations();
    if (version != 42) immediates(word);
    peripherals();
  }
  const HazardFacts& facts() const { return f_; }

 private:
  void uniform() {
    f_.second_uniform = f_.main_uniforms;
    f_.main_uniforms = true;
  }

  void read(const Operand& o, uint64_t& registers, uint8_t& accumulators) const {
    if (o.kind == Operand::Kind::kRegister) registers |= uint64_t{1} << o.index;
    if (o.kind == Operand::Kind::kAccumulator) accumulators |= static_cast<uint8_t>(1u << o.index);
  }

  void half(const AluHalf& h) {
    for (const Operand* o : {&h.a, &h.b}) {
      read(*o, f_.reads, f_.acc_reads);
      if ((i_.signals & kRotate) && &h == &i_.mul) read(*o, f_.rotate_reads, f_.rotate_acc_reads);
    }
    if (info(h.op).has_destination) write(h.magic, h.waddr, f_.alu_writes);
  }

  void write(bool magic, uint8_t waddr, uint64_t& registers) {
    if (!magic) {
      registers |= uint64_t{1} << waddr;
      return;
    }
    const bool replicates = waddr == kWaddrR5 || waddr == kWaddrRep;
    if (version_ == 42 && (waddr < kWaddrR5 || replicates))
      f_.acc_writes |= static_cast<uint8_t>(1u << (replicates ? 5 : waddr));
    if (version_ != 42 && replicates) f_.replicated = true;
    if (waddr == kWaddrTlbu || waddr == kWaddrTmuau || waddr == kWaddrVpmu || waddr == kWaddrSyncu) uniform();
    if (waddr == kWaddrTlb || waddr == kWaddrTlbu) f_.tlb_write = true;
    if (waddr == kWaddrUnifa) f_.writes_unifa = true;
    if (waddr >= kWaddrSync && waddr <= kWaddrSyncb) f_.tsy = true;
    if (waddr == kWaddrSyncb) f_.syncb = true;
    if (waddr == kWaddrVpm || waddr == kWaddrVpmu) f_.vpm_write = true;
    if (version_ == 42 && waddr >= kWaddrRecip && waddr <= kWaddrRsqrt2) f_.magic_sfu = true;
    if (!is_tmu(waddr)) return;
    ++f_.tmu_writes;
    if (waddr == kWaddrTmud) ++f_.tmu_data;
    if (waddr == kWaddrTmuc) f_.tmu_config = true;
    if (is_terminator(waddr)) f_.tmu_terminator = true;
    if (waddr != kWaddrTmuc) f_.tmu_sequence = true;
  }

  void signals() {
    const uint16_t s = i_.signals;
    f_.thrsw = s & kThrsw;
    f_.ldvary = s & kLdvary;
    f_.ldtmu = s & kLdtmu;
    f_.wrtmuc = s & kWrtmuc;
    f_.tlb_read = s & (kLdtlb | kLdtlbu);
    f_.loads_unifa = s & (kLdunifa | kLdunifarf);
    f_.implicit = s & (kLdunif | kLdunifa);
    f_.rotate_signal = s & kRotate;
    for (const uint16_t consumer : {kLdunif, kLdunifrf, kLdtlbu, kWrtmuc})
      if (s & consumer) uniform();
    if (s & kSignalsWithAddress) write(i_.signal_magic, i_.signal_waddr, f_.signal_writes);
    if (version_ == 42 && f_.implicit) f_.acc_writes |= 1u << 5;
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
    f_.rotates_elsewhere =
        f_.rotates && add.magic && (add.waddr == kWaddrR5 || add.waddr == kWaddrRep || is_tmu(add.waddr));
    if (!(info(add.op).traits & kVpm)) return;
    (info(add.op).has_destination ? f_.vpm_read : f_.vpm_write) = true;
  }

  void immediates(uint64_t word) {
    const uint8_t which = signal_codes(version_)[word >> 53 & 31].immediates;
    f_.idle_immediate = ((which & 3) && i_.add.op == Op::kNop) || ((which & 12) && i_.mul.op == Op::kNop);
  }

  // Source: Mesa qpu_schedule.c, qpu_peripherals and qpu_compatible_peripheral_access.
  void peripherals() {
    const bool sfu = f_.sfu || f_.magic_sfu;
    const bool tmu_pair = f_.wrtmuc && f_.tmu_writes == 1 && !f_.tmu_config;  // allowed together
    int count = f_.tmu_writes + f_.wrtmuc - tmu_pair + f_.tsy + sfu + f_.vpm_read + f_.vpm_write;
    if (version_ == 42) {
      const bool tmu_and_vpm = f_.ldtmu && (f_.vpm_read || f_.vpm_write);
      count += f_.tlb_read + f_.tlb_write + f_.ldtmu - tmu_and_vpm + f_.vpm_wait + f_.tmu_wait;
    } else {
      count += f_.tlb_read;
      if (f_.tlb_read && f_.tlb_write) ++count;
    }
    f_.peripherals = static_cast<uint8_t>(count);
  }

  const int version_;
  const Instruction& i_;
  HazardFacts f_;
};

}  // namespace

HazardFacts facts_of(int version, uint64_t word, const Instruction& instruction) {
  return Collector(version, word, instruction).facts();
}

}  // namespace v3d::qpu
