#include "gpu/qpu/check/hazard.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace v3d::qpu {
namespace {

using Found = HazardsFound;

RegisterSet only(Register r) {
  RegisterSet set;
  set.add(r);
  return set;
}

bool between(uint8_t n, uint8_t first, uint8_t last) { return n >= first && n <= last; }

// What the generations forbid where a rule is more than there or not.
struct Particulars {
  HazardSet rules;            ///< those that the generation has
  RegisterSet payload;        ///< registers in which the next thread's payload may arrive while one ends
  bool any_write_at_end;      ///< no rf register may be written then; otherwise none by the ALUs in slot 0
  uint8_t first_ldvary_slot;  ///< of thrsw, which ldvary may not stand in
};
// A row of hazard.def.
struct Row {
  chip::Generations generations;
  HazardKind kind;
  ShownBy shown_by;
  Poison poison;
  const char *tag, *source, *rule;
};
constexpr Row kRows[] = {
#define V3D_QPU_HAZARD(name, generations, kind, shown_by, poison, tag, source, rule) \
  {generations, HazardKind::kind, ShownBy::shown_by, Poison::poison, tag, source, rule},
#include "gpu/qpu/check/hazard.def"
};
const Row& row(Hazard hazard) { return kRows[static_cast<int>(hazard)]; }

template <typename Condition>
constexpr HazardSet hazards_where(const Condition& holds) {
  HazardSet set = 0;
  for (int n = 0; n < kNumHazards; ++n)
    if (holds(kRows[n])) set |= bit(static_cast<Hazard>(n));
  return set;
}
constexpr HazardSet rules_with(chip::Generations generation) {
  return hazards_where([generation](const Row& r) { return (r.generations & generation) != 0; });
}
constexpr Particulars k71Particulars = {rules_with(k71), RegisterSet::of_rf(0xc), false, 2};
constexpr Particulars k42Particulars = {rules_with(k42), RegisterSet::of_rf(7), true, 1};
/// Rules of 2.1 are of its own words.
constexpr Particulars k21Particulars = {rules_with(k21), RegisterSet(), false, 0};
const Particulars& particulars(chip::Generation generation) {
  switch (generation) {
    case chip::Generation::k21:
      return k21Particulars;
    case chip::Generation::k42:
      return k42Particulars;
    case chip::Generation::k71:
      return k71Particulars;
  }
  chip::no_such_generation();
}

}  // namespace

chip::Generations generations(Hazard hazard) { return row(hazard).generations; }
HazardKind kind(Hazard hazard) { return row(hazard).kind; }
ShownBy shown_by(Hazard hazard) { return row(hazard).shown_by; }
Poison poison(Hazard hazard) { return row(hazard).poison; }
const char* tag(Hazard hazard) { return row(hazard).tag; }
const char* source(Hazard hazard) { return row(hazard).source; }
const char* rule(Hazard hazard) { return row(hazard).rule; }

const char* name(HazardKind kind) {
  static constexpr const char* kNames[kNumHazardKinds] = {"undefined", "hardly-meant", "never-emitted",
                                                          "assumed"};
  return kNames[static_cast<int>(kind)];
}

std::optional<HazardKinds> parse_hazard_kinds(std::string_view text, std::string* error) {
  if (text.empty() || text == "all") return kAllHazardKinds;
  HazardKinds kinds = 0;
  for (const absl::string_view wanted : absl::StrSplit(absl::string_view(text.data(), text.size()), ',')) {
    HazardKinds found = 0;
    for (int n = 0; n < kNumHazardKinds; ++n)
      if (wanted == name(static_cast<HazardKind>(n))) found = bit(static_cast<HazardKind>(n));
    if (!found) {
      *error = absl::StrFormat(
          "\"%s\" is no kind of hazard; the kinds are undefined, hardly-meant, never-emitted, assumed",
          wanted);
      return {};
    }
    kinds |= found;
  }
  return kinds;
}

HazardSet hazards_of(HazardKinds kinds) {
  return hazards_where([kinds](const Row& r) { return (bit(r.kind) & kinds) != 0; });
}

HazardSet rules_of(chip::Generation generation, HazardSet set) { return set & particulars(generation).rules; }

HazardSet HazardChecker::step(size_t index, uint64_t word, const Instruction& i, const HazardFacts& f) {
  age();
  if (i.is_branch) {
    const HazardSet found = branch_rules(f) | early_c_rules({}, index, word);
    update({});
    since_branch_ = 0;
    return rules_of(setting_.generation, found | section_rules());
  }
  HazardSet found = f.thrsw ? thrsw_rules() : 0;
  found |= latency_rules(f, i) | word_rules(f) | slot_rules(f) | end_rules(f) | state_rules(f);
  found |= assumptions(i) | rf0_rules(f) | early_c_rules(f, index, word);
  update(f);
  return rules_of(setting_.generation, found | section_rules());
}

// What is assumed stands at the operations (alu.h) and at FlagClass (isa.h).
HazardSet HazardChecker::assumptions(const Instruction& i) {
  Found found;
  const bool dot = i.mul.op == Op::kV8dot;
  if (sets_nn_mode(i.add.op)) {
    const NnMode mode = nn_mode_of(i.add.op);
    found.check(dot && nn_mode_ != mode, Hazard::kNnModePair);
    found.check(i.add.cond != Cond::kNone || i.add.flags != FlagWrite::kNone, Hazard::kNnModeCond);
    nn_mode_ = mode;
  }
  found.check(dot && !nn_mode_ && !nn_start_told_, Hazard::kNnModeStart);
  nn_start_told_ = nn_start_told_ || (dot && !nn_mode_);
  for (const AluHalf* half : {&i.add, &i.mul}) {
    found.check(half->flags != FlagWrite::kNone && is_of_halves(info(half->op).flags), Hazard::kHalfFlags);
    const Unpack unpack = half->a.unpack;
    found.check(unpack == Unpack::kU5 || unpack == Unpack::kU6 || unpack == Unpack::kU7, Hazard::kHalfUnpack);
  }
  return found.set();
}

void HazardChecker::age() {
  for (uint8_t* since : {&since_sfu_, &since_unifa_, &since_setmsf_, &since_thrsw_, &since_branch_})
    *since = std::min<uint8_t>(static_cast<uint8_t>(*since + 1), kLong);
  vary_ = static_cast<uint8_t>(vary_ << 1 & 7);
  if (since_thrsw_ == 3) {  // the switch took effect
    lost_ = isa().has_accumulators ? RegisterSet::accumulators() : RegisterSet();
    rtop_lost_ = rtop_lost_ || rtop_valid_;
    rtop_valid_ = false;
    implicit_next_ = rf0_conflict_ = false;
  }
  if (vary_ & 4) written(only(isa().implicit));  // C has arrived
}

void HazardChecker::written(RegisterSet registers) {
  lost_ -= registers;
  lost_told_ -= registers;
}

HazardSet HazardChecker::branch_rules(const HazardFacts& f) const {
  Found found;
  found.check(between(since_branch_, 1, 3) || between(since_thrsw_, 1, 2), Hazard::kBranchInSlot);
  found.check(between(since_unifa_, 1, 3), Hazard::kBranchAfterUnifa);
  found.check(since_setmsf_ == 1 && f.branch_by_msf, Hazard::kSetmsfBranch);
  return found.set();
}

HazardSet HazardChecker::thrsw_rules() {
  Found found;
  found.check(between(since_branch_, 1, 3), Hazard::kThrswInSlot);
  if (previous_thrsw_) {
    found.check(in_last_section(), Hazard::kTwoLast);
    last_section_ = true;
    return found.set();
  }
  found.check(since_thrsw_ == 2, Hazard::kThrswClose);
  several_thrsw_ = any_thrsw_;
  any_thrsw_ = true;
  ending_ = in_last_section();
  since_thrsw_ = 0;
  return found.set();
}

HazardSet HazardChecker::latency_rules(const HazardFacts& f, const Instruction& i) const {
  Found found;
  const bool behind_vary = vary_ & 2;
  found.check(behind_vary && (f.alu_writes | f.signal_writes | f.magic_writes).has(isa().implicit),
              Hazard::kLdvaryCClash);
  found.check(behind_vary && f.implicit, Hazard::kLdunifAfterLdvary);
  found.check(since_sfu_ == 1 && ((f.reads | f.magic_writes).has(kSfuResult) || f.magic_sfu), Hazard::kSfuR4);
  found.check(f.loads_unifa && since_unifa_ < 4, Hazard::kUnifaEarly);
  if (f.rotate_signal) {
    const RegisterSet early = f.rotate_reads & previous_writes_;
    found.check(!(early - previous_loads_).empty(), Hazard::kRotEarly);
    found.check(!(early & previous_loads_).empty(), Hazard::kRotLoaded);
    found.check(i.rotate == 0 && previous_writes_.has(accumulator(5)), Hazard::kRotCount);
  }
  return found.set();
}

HazardSet HazardChecker::word_rules(const HazardFacts& f) const {
  Found found;
  found.check(f.sfu_elsewhere, Hazard::kSfuDst);
  found.check(f.peripherals > 1, Hazard::kPeriph);
  found.check(f.tmu_write_and_load, Hazard::kTmuWriteLoad);
  found.check(f.unknown_address, Hazard::kNoAddress);
  found.check(f.second_uniform || (f.main_uniforms && f.loads_unifa), Hazard::kTwoUnif);
  found.check(setting_.four_threads && (f.reads | f.alu_writes | f.signal_writes).rf() >> 32,
              Hazard::kRfRange);
  found.check(f.rotates_elsewhere || (f.rotates && f.tmu_writes), Hazard::kRotDst);
  found.check(f.idle_immediate, Hazard::kSmimm);
  return found.set();
}

HazardSet HazardChecker::slot_rules(const HazardFacts& f) const {
  Found found;
  const bool in_thrsw_slot = between(since_thrsw_, 1, 2);
  found.check(f.main_uniforms && between(since_branch_, 1, 3), Hazard::kUnifInSlot);
  const Particulars& p = particulars(setting_.generation);
  found.check(in_thrsw_slot && f.magic_sfu, Hazard::kSfuInSlot);
  found.check(in_thrsw_slot && f.sfu, Hazard::kSfuOpInSlot);
  found.check(f.ldvary && between(since_thrsw_, p.first_ldvary_slot, 2) && !ending_, Hazard::kLdvaryInSlot);
  return found.set();
}

// With the thrsw that ends the thread (slot 0) and in its delay slots.
HazardSet HazardChecker::end_rules(const HazardFacts& f) const {
  if (!ending_ || since_thrsw_ > 2) return 0;
  Found found;
  const Particulars& p = particulars(setting_.generation);
  const RegisterSet writes = f.alu_writes | f.signal_writes;
  found.check(p.any_write_at_end
                  ? !writes.empty()
                  : (since_thrsw_ == 0 && !f.alu_writes.empty()) || !(writes & p.payload).empty(),
              Hazard::kRfAtEnd);
  found.check(!(f.reads & p.payload).empty(), Hazard::kRfReadAtEnd);
  found.check(since_thrsw_ > 0 && f.main_uniforms, Hazard::kUnifAtEnd);
  found.check(f.ldvary, Hazard::kTlbzAtEnd);
  found.check(since_thrsw_ == 2 && f.tmu_wait, Hazard::kTmuwtAtEnd);
  found.check(f.vpm_wait, Hazard::kVpmwtAtEnd);
  return found.set();
}

HazardSet HazardChecker::state_rules(const HazardFacts& f) {
  Found found;
  const RegisterSet lost = (f.reads & lost_) - lost_told_;
  found.check(!lost.empty(), Hazard::kAccAfterThrsw);
  lost_told_ |= lost;
  found.check(f.umul24 && rtop_lost_, Hazard::kRtopAfterThrsw);
  const bool early = (f.tlb_read || f.tlb_write) && !locked_ && !setting_.final_section;
  found.check(early && !unlocked_told_, Hazard::kTlbEarly);
  unlocked_told_ = unlocked_told_ || early;
  found.check(f.setmsf && sequence_ != 0, Hazard::kMsfTmu);  // configuration may wait there
  found.check(f.tmu_writes && !f.tmu_config && sequence_ == tmu_share(setting_), Hazard::kTmuInFifo);
  found.check(f.tmu_data && data_ == 4, Hazard::kTmuData);
  found.check(f.wrtmuc && config_ == 3, Hazard::kTmuConfig);
  return found.set();
}

// A read right after ldvary is no fault by itself: Mesa reads a value there that came before. It is one if
// that value had been read already and then nothing reads C when it is there. Reads that are early again, of
// the next ldvary, do not count: in a chain of them each gets the C of the one before.
HazardSet HazardChecker::early_c_rules(const HazardFacts& f, size_t index, uint64_t word) {
  const bool lands = vary_ & 4, early = (vary_ & 2) && !lands;
  const bool reads = f.reads.has(isa().implicit), writes = all_writes(f).has(isa().implicit);
  bool broken = c_missed_ && c_unread_ && lands;
  if (lands) c_fresh_ = c_unread_ = true;
  if (reads && early && !c_fresh_ && !c_missed_ && !broken) {
    c_missed_ = true;
    early_index_ = index;
    early_word_ = word;
  } else if (reads && !early && c_unread_ && !broken) {
    c_missed_ = false;
  }
  if (reads) c_fresh_ = c_unread_ = false;
  broken = broken || (c_missed_ && c_unread_ && writes) || (c_missed_ && ending_ && since_thrsw_ == 2);
  if (writes) {
    c_fresh_ = true;
    c_unread_ = false;
  }
  if (broken) c_missed_ = false;
  return broken ? bit(Hazard::kLdvaryCEarly) : 0;
}

// 7.1: rf0 as an implicit destination. Source: Mesa qpu_schedule.c, update_scoreboard_for_rf0_flops.
HazardSet HazardChecker::rf0_rules(const HazardFacts& f) {
  if (!(generations(Hazard::kRf0Flops) & set_of(setting_.generation))) return 0;
  if ((f.alu_writes | f.signal_writes | f.magic_writes).has(0)) implicit_next_ = rf0_conflict_ = false;
  if (f.implicit || implicit_next_) rf0_conflict_ = !f.signal_writes.empty();
  implicit_next_ = f.ldvary;
  Found found;
  found.check(since_thrsw_ == 2 && !f.signal_writes.empty() && rf0_conflict_, Hazard::kRf0Flops);
  return found.set();
}

void HazardChecker::update(const HazardFacts& f) {
  if (f.ldvary) vary_ |= 1;
  if (f.magic_sfu) since_sfu_ = 0;
  if (f.writes_unifa) since_unifa_ = 0;
  if (f.setmsf) since_setmsf_ = 0;
  previous_writes_ = all_writes(f);
  previous_loads_ = f.loads;
  written(previous_writes_);
  if (f.magic_sfu) written(only(kSfuResult));
  if (f.multop) rtop_valid_ = true;
  if (f.umul24 || f.multop) rtop_lost_ = false;
  if (f.umul24) rtop_valid_ = false;
  previous_thrsw_ = f.thrsw;
  if (f.vpm_write) vpm_unwaited_ = true;
  if (f.vpm_wait) vpm_unwaited_ = false;
  if (f.syncb) syncb_ = true;
  if (f.tmu_sequence) {
    sequence_ = static_cast<uint8_t>(std::min(sequence_ + f.tmu_writes - f.tmu_config, int{kLong}));
    data_ = static_cast<uint8_t>(std::min(data_ + f.tmu_data, 5));
    config_ = static_cast<uint8_t>(std::min(config_ + f.wrtmuc, 4));
    sequence_open_ = true;
  }
  if (f.tmu_terminator) {
    sequence_ = data_ = config_ = 0;
    sequence_open_ = false;
  }
}

// After an instruction: what takes effect there.
HazardSet HazardChecker::section_rules() {
  Found found;
  found.check(switches() && since_unifa_ <= 2, Hazard::kUnifaSwitch);
  found.check(since_branch_ == 3 && since_unifa_ <= 2, Hazard::kUnifaJump);
  if (!switches()) return found.set();
  found.check(sequence_open_, ending_ ? Hazard::kTmuLeftover : Hazard::kTmuOpen);
  found.check(ending_ && vpm_unwaited_, Hazard::kNoVpmwt);
  found.check(ending_ && syncb_, Hazard::kTsyNoThrsw);
  locked_ = true;
  syncb_ = false;
  return found.set();
}

HazardSet HazardChecker::ran_off() const {
  return bit(several_thrsw_ && !in_last_section() ? Hazard::kNoLast : Hazard::kRunOff);
}

std::string to_string(chip::Generation generation, const HazardReport& report, uint64_t word) {
  std::string text = disassemble(generation, word);
  text.erase(std::unique(text.begin(), text.end(), [](char a, char b) { return a == ' ' && b == ' '; }),
             text.end());
  return absl::StrFormat("%s: %s: instruction %d, \"%s\": %s", name(kind(report.hazard)), tag(report.hazard),
                         report.index, text, rule(report.hazard));
}

}  // namespace v3d::qpu
