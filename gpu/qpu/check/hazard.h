/// The rules of the QPU that no hardware checks: latencies, delay slots, peripherals, thread ends (qpu.md
/// 10). A program that breaks one has no defined meaning, or one that depends on the chip. And what programs
/// depend on that nobody has told: the tags of these assumptions begin with "assumed-".
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpu/qpu/check/hazard_facts.h"
#include "gpu/qpu/isa/instruction.h"
#include "gpu/qpu/run/thread.h"

namespace v3d::qpu {

/// Rows: name, versions that have the rule, tag, rule in words.
#define V3D_QPU_HAZARDS(ROW)                                                                                 \
  ROW(LdvaryCEarly, kBoth, "ldvary-c-early",                                                                 \
      "reads rf0 (4.2: r5) right behind ldvary; C arrives one instruction later")                            \
  ROW(LdvaryCClash, k71, "ldvary-c-clash",                                                                   \
      "writes rf0 right behind ldvary, whose C arrives there at the same time")                              \
  ROW(LdunifAfterLdvary, kBoth, "ldunif-after-ldvary",                                                       \
      "ldunif or ldunifa right behind ldvary; both results arrive in one register at the same time")         \
  ROW(SfuR4, k42, "sfu-r4",                                                                                  \
      "reads or writes r4, or starts the SFU, less than two instructions behind an SFU write")               \
  ROW(SfuDst, k42, "sfu-dst", "the result of an SFU operation goes to rf registers only")                    \
  ROW(Periph, kBoth, "periph", "uses more than one of TMU, SFU, VPM, TSY and TLB in one word")               \
  ROW(TwoUnif, kBoth, "two-unif", "takes two uniforms in one word")                                          \
  ROW(UnifaEarly, kBoth, "unifa-early", "ldunifa less than four instructions behind a write of unifa")       \
  ROW(UnifaSwitch, kBoth, "unifa-switch",                                                                    \
      "a thread switch, the end or a branch takes effect within three instructions behind a write of unifa") \
  ROW(BranchInSlot, kBoth, "branch-in-slot",                                                                 \
      "a branch in the delay slots of a branch or thrsw, or within three instructions behind a write of "    \
      "unifa")                                                                                               \
  ROW(ThrswInSlot, kBoth, "thrsw-in-slot", "thrsw in a delay slot of a branch")                              \
  ROW(ThrswClose, kBoth, "thrsw-close", "thrsw two instructions behind a thrsw")                             \
  ROW(TwoLast, kBoth, "two-last", "a second pair of thrsw: the last section has begun")                      \
  ROW(NoLast, kBoth, "no-last",                                                                              \
      "several thrsw, but no pair that begins the last section: the program does not end")                   \
  ROW(UnifInSlot, kBoth, "unif-in-slot", "takes a uniform in a delay slot of a branch")                      \
  ROW(SfuInSlot, kBoth, "sfu-in-slot", "starts the SFU in a delay slot of thrsw")                            \
  ROW(LdvaryInSlot, kBoth, "ldvary-in-slot", "ldvary in a delay slot of thrsw (7.1: the second)")            \
  ROW(AccAfterThrsw, kBoth, "acc-after-thrsw",                                                               \
      "reads an accumulator or rtop that was not written since the thread switch")                           \
  ROW(RfAtEnd, kBoth, "rf-at-end",                                                                           \
      "writes a register while the thread ends (7.1: by an ALU with the last thrsw, or rf2 or rf3)")         \
  ROW(RfReadAtEnd, kBoth, "rf-read-at-end",                                                                  \
      "reads rf2 or rf3 (4.2: rf0..rf2) while the thread ends; the next thread's payload may be there")      \
  ROW(UnifAtEnd, kBoth, "unif-at-end", "takes a uniform in the delay slots of the thread end")               \
  ROW(TlbzAtEnd, kBoth, "tlbz-at-end", "writes Z in the last instruction, or ldvary while the thread ends")  \
  ROW(TmuwtAtEnd, k42, "tmuwt-at-end", "tmuwt in the last instruction (GFXH-1625)")                          \
  ROW(VpmwtAtEnd, k42, "vpmwt-at-end", "vpmwt while the thread ends")                                        \
  ROW(NoVpmwt, k42, "no-vpmwt", "the thread ends without vpmwt behind its VPM writes (GFXH-1684)")           \
  ROW(Rf0Flops, k71, "rf0-flops",                                                                            \
      "a signal writes a register in the last instruction of a section whose last write of rf0 was by "      \
      "ldunif, "                                                                                             \
      "ldunifa or ldvary together with another signal; rf0 is lost")                                         \
  ROW(MsfAfterZ, kBoth, "msf-after-z", "uses the sample mask after the write of Z")                          \
  ROW(SetmsfBranch, k42, "setmsf-branch", "a branch that looks at the sample mask right behind setmsf")      \
  ROW(TlbEarly, kBoth, "tlb-early", "TLB access before the thread switch that waits for the scoreboard")     \
  ROW(TmuOverflow, kBoth, "tmu-overflow", "more TMU words outstanding than the thread's share of the queue") \
  ROW(TmuLeftover, kBoth, "tmu-leftover",                                                                    \
      "the thread ends with TMU words that it did not take, or a sequence half written")                     \
  ROW(MsfTmu, kBoth, "msf-tmu", "setmsf in the middle of a TMU sequence")                                    \
  ROW(TsyTmu, kBoth, "tsy-tmu", "waits at a barrier with TMU words outstanding")                             \
  ROW(VaryCount, kBoth, "vary-count", "more ldvary than the draw has varyings")                              \
  ROW(RfRange, kBoth, "rf-range", "rf32..rf63 in a program for four threads")                                \
  ROW(RotEarly, k42, "rot-early", "rotates a register, or by r5, that the previous instruction wrote")       \
  ROW(RotDst, k71, "rot-dst", "rotates to rep, quad or the TMU, or beside a TMU write of the mul ALU")       \
  ROW(Smimm, k71, "smimm", "a small immediate for an ALU that does nothing")                                 \
  ROW(VpmOrder, kBoth, "vpm-order",                                                                          \
      "loads a VPM row that the program has stored to; input and output may share it")                       \
  ROW(RunOff, kBoth, "run-off", "execution runs past the end of the program")                                \
  ROW(TmuInFifo, kBoth, "tmu-in-fifo",                                                                       \
      "more TMU writes in one sequence than the thread's share of the queue")                                \
  ROW(TmuData, kBoth, "tmu-data", "more than four data words in one TMU sequence")                           \
  ROW(TmuConfig, kBoth, "tmu-config", "more than three wrtmuc for one texture lookup")                       \
  ROW(TlbStage, kBoth, "tlb-stage", "TLB access in a stage that has no TLB")                                 \
  ROW(TmuOpen, kBoth, "tmu-open", "a thread switch in the middle of a TMU sequence")                         \
  ROW(TsyNoThrsw, kBoth, "tsy-no-thrsw", "syncb without a thrsw behind it does not wait")                    \
  ROW(NnModePair, kBoth, "assumed-nnmode-pair",                                                              \
      "v8dot in the word of a setnnmode that changes the mode; taken: the new mode counts")                  \
  ROW(NnModeStart, kBoth, "assumed-nnmode-start",                                                            \
      "v8dot on a way without setnnmode before it; taken: threads start with both sources unsigned")         \
  ROW(NnModeCond, kBoth, "assumed-nnmode-cond",                                                              \
      "setnnmode with a condition or flag write; taken: it sets the mode if some lane's condition holds")    \
  ROW(HalfSums, kBoth, "assumed-half-sums",                                                                  \
      "a sum of halves that may be rounded or denormal; taken: to nearest even, denormals kept")             \
  ROW(HalfFlags, kBoth, "assumed-half-flags",                                                                \
      "flags of an operation on two halves; taken: those that hold for both halves")                         \
  ROW(HalfUnpack, kBoth, "assumed-half-unpack",                                                              \
      "a conversion of halves without a public name; taken: u5, u6, u7 are sat, nsat, max0")

enum class Hazard : uint8_t {
#define V3D_QPU_HAZARD(name, versions, tag, rule) k##name,
  V3D_QPU_HAZARDS(V3D_QPU_HAZARD)
#undef V3D_QPU_HAZARD
};
inline constexpr int kNumHazards = static_cast<int>(Hazard::kHalfUnpack) + 1;
/// Not a rule that the program breaks: something unknown of the hardware that it depends on.
constexpr bool is_assumption(Hazard hazard) { return hazard >= Hazard::kNnModePair; }
/// k71 and k42 (isa.h).
uint8_t versions(Hazard hazard);
const char* tag(Hazard hazard);
const char* rule(Hazard hazard);

/// A set of hazards.
using HazardSet = uint64_t;
constexpr HazardSet bit(Hazard hazard) { return HazardSet{1} << static_cast<int>(hazard); }

/// Follows one thread from its start and says which rules each instruction breaks. A value: paths of a
/// program fork by copying it.
class HazardChecker {
 public:
  struct Setting {
    int version;
    bool final_section;  ///< the program starts in its last section
    bool four_threads;
    auto operator<=>(const Setting&) const = default;
  };
  explicit HazardChecker(const Setting& setting) : setting_(setting) {}

  /// The next instruction in the order of execution. @param index  of it in the program, for reports
  HazardSet step(size_t index, uint64_t word, const Instruction& instruction);
  /// Hazard::kLdvaryCEarly is not known for one before C is overwritten, or the thread ends: which
  /// instruction the last report of it is about.
  size_t early_index() const { return early_index_; }
  uint64_t early_word() const { return early_word_; }
  /// What of a thread must be known from before an instruction.
  struct Before {
    Before(const Thread& thread, const Instruction& instruction);
    uint32_t outstanding, next_varying;
    uint32_t vpm_row;  ///< of ldvpmv_in and stvpmv, in lane 0
    bool
        inexact_half_sum;  ///< vfadd, vfsub or vfcmp that rounds, or sees or gives a denormal, in a live lane
  };
  /// What only execution shows, behind step(): the same instruction was executed.
  HazardSet executed(const Instruction& instruction, const Before& before, const Thread& after);

  /// A thread switch takes effect behind this instruction; or the end.
  bool ended() const { return ending_ && since_thrsw_ == 2; }
  bool in_last_section() const { return last_section_ || setting_.final_section; }
  /// Execution comes to nowhere.
  HazardSet ran_off() const;

  auto operator<=>(const HazardChecker&) const = default;

 private:
  const IsaProperties& isa() const { return qpu::isa(setting_.version); }
  RegisterSet all_writes(const HazardFacts& f) const;
  void age();
  HazardSet branch_rules(const Branch& branch);
  HazardSet thrsw_rules();
  HazardSet latency_rules(const HazardFacts& f, const Instruction& i) const;
  HazardSet word_rules(const HazardFacts& f) const;
  HazardSet slot_rules(const HazardFacts& f) const;
  HazardSet end_rules(const HazardFacts& f) const;
  HazardSet state_rules(const HazardFacts& f) const;
  HazardSet assumptions(const Instruction& instruction);
  HazardSet rf0_rules(const HazardFacts& f);
  HazardSet early_c_rules(const HazardFacts& f, size_t index, uint64_t word);
  void update(const HazardFacts& f);
  HazardSet section_rules();
  static constexpr uint8_t kLong = 15;  // distances stop counting there

  Setting setting_;
  // Instructions since the last one of its kind; 0 is this one.
  uint8_t since_sfu_ = kLong, since_unifa_ = kLong, since_setmsf_ = kLong, since_thrsw_ = kLong,
          since_branch_ = kLong;
  uint8_t vary_ = 0;  // bit n: ldvary n instructions ago
  bool previous_thrsw_ = false, last_section_ = false, ending_ = false, any_thrsw_ = false,
       several_thrsw_ = false;
  RegisterSet lost_;  // accumulators that were not written since the thread switch
  bool rtop_valid_ = false, rtop_lost_ = false;
  RegisterSet previous_writes_;
  bool implicit_next_ = false, rf0_conflict_ = false;
  // rf0, or r5: not read since it was written; holds a C that was not read; a C was missed by an early read.
  bool c_fresh_ = false, c_unread_ = false, c_missed_ = false;
  size_t early_index_ = 0;
  uint64_t early_word_ = 0;
  uint64_t stored_rows_ = 0;  // of the VPM
  bool locked_ = false, z_written_ = false, vpm_unwaited_ = false;
  uint8_t sequence_ = 0, data_ = 0, config_ = 0;  // TMU writes, tmud, wrtmuc since the last terminator
  bool sequence_open_ = false, syncb_ = false;
  std::optional<NnMode> nn_mode_;  // none before the first setnnmode
};

struct HazardReport {
  size_t index;  ///< of the instruction
  Hazard hazard;
  auto operator<=>(const HazardReport&) const = default;
};

/// Rules that a program breaks on some path through it, and what it may depend on, each once per instruction.
/// Branches to registers, link and absolute addresses are not followed. A program without a pair of thrsw is
/// taken to start in its last section if it has one thrsw only.
std::vector<HazardReport> check_program(int version, bool four_threads, std::span<const uint64_t> words);

/// Whether any of them is more than an assumption.
bool breaks_rules(std::span<const HazardReport> reports);

/// "tag: instruction 5, "text": rule"
std::string to_string(int version, const HazardReport& report, uint64_t word);

}  // namespace v3d::qpu
