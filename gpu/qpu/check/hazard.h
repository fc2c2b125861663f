/// Hazards are what breaks rules of the QPU that no hardware checks: latencies, delay slots, peripherals,
/// thread ends (qpu.md 10); and what programs depend on that nobody has told. The rules stand in hazard.def.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/chip/generation.h"
#include "gpu/qpu/check/hazard_facts.h"
#include "gpu/qpu/isa/instruction.h"

namespace v3d::qpu {

enum class Hazard : uint8_t {
#define V3D_QPU_HAZARD(name, generations, kind, shown_by, poison, tag, source, rule) k##name,
#include "gpu/qpu/check/hazard.def"
};
// NOLINTBEGIN(bugprone-macro-parentheses): rows are counted by what they add
inline constexpr int kNumHazards = 0
#define V3D_QPU_HAZARD(name, generations, kind, shown_by, poison, tag, source, rule) +1
#include "gpu/qpu/check/hazard.def"
    ;
// NOLINTEND(bugprone-macro-parentheses)

/// What it means that a program breaks a rule.
enum class HazardKind : uint8_t {
  kUndefined,     ///< what the hardware then does has no meaning, or one that depends on the chip
  kHardlyMeant,   ///< defined, but hardly what the program wants
  kNeverEmitted,  ///< Mesa never emits it; boards run it and give right results, or nothing can go wrong
  kAssumed,       ///< no rule: something unknown of the hardware, on whose model the result depends
};
inline constexpr int kNumHazardKinds = static_cast<int>(HazardKind::kAssumed) + 1;
/// "undefined", "hardly-meant", "never-emitted", "assumed"
const char* name(HazardKind kind);
/// Whether a program that breaks such a rule is wrong.
constexpr bool is_wrong(HazardKind kind) {
  return kind == HazardKind::kUndefined || kind == HazardKind::kHardlyMeant;
}

/// What shows that a program breaks a rule.
enum class ShownBy : uint8_t {
  kCode,    ///< its words
  kRun,     ///< what a thread does
  kEither,  ///< its words, where it is certain on every way through them; else what a thread does
};

/// What has a value on which nobody can rely once a rule is broken.
enum class Poison : uint8_t {
  kNothing,    ///< nothing that is read later, or what that is cannot be told
  kResults,    ///< what the instruction writes
  kImplicit,   ///< rf0 (4.2: r5)
  kWords,      ///< words of the TMU that the thread has not taken yet
  kFromStart,  ///< what is read: it had none since the thread began
};

/// A set of kinds.
using HazardKinds = uint8_t;
constexpr HazardKinds bit(HazardKind kind) { return static_cast<HazardKinds>(1u << static_cast<int>(kind)); }
inline constexpr HazardKinds kAllHazardKinds = (1u << kNumHazardKinds) - 1;
inline constexpr HazardKinds kWrongHazardKinds = bit(HazardKind::kUndefined) | bit(HazardKind::kHardlyMeant);
static_assert(is_wrong(HazardKind::kUndefined) && is_wrong(HazardKind::kHardlyMeant));
/// Those that a text names, divided by commas; "all", or nothing, for all.
/// @return nothing, with the reason in *error, when it is not understood
std::optional<HazardKinds> parse_hazard_kinds(std::string_view text, std::string* error);

HazardKind kind(Hazard hazard);
ShownBy shown_by(Hazard hazard);
Poison poison(Hazard hazard);
/// k71 and k42 (isa.h).
chip::Generations generations(Hazard hazard);
const char* tag(Hazard hazard);
/// Where the rule is from (hazard.def); empty: it is a rule of this model.
const char* source(Hazard hazard);
const char* rule(Hazard hazard);

/// A set of hazards.
using HazardSet = uint64_t;
static_assert(kNumHazards <= 64);
constexpr HazardSet bit(Hazard hazard) { return HazardSet{1} << static_cast<int>(hazard); }
inline constexpr HazardSet kAllHazards = ~HazardSet{0} >> (64 - kNumHazards);

/// Collects what is broken.
class HazardsFound {
 public:
  void check(bool broken, Hazard hazard) {
    if (broken) set_ |= bit(hazard);
  }
  HazardSet set() const { return set_; }

 private:
  HazardSet set_ = 0;
};

HazardSet hazards_of(HazardKinds kinds);

/// Follows one thread from its start and says which rules each instruction breaks, by what comes before and
/// after it alone. A value: paths of a program fork by copying it. What only execution shows:
/// execution_checker.h.
class HazardChecker {
 public:
  struct Setting {
    chip::Generation generation;
    bool final_section;  ///< the program starts in its last section
    bool four_threads;
    auto operator<=>(const Setting&) const = default;
  };
  explicit HazardChecker(const Setting& setting) : setting_(setting) {}

  /// The next instruction in the order of execution. What follows from one cause is found where it is seen
  /// first. @param index  of it in the program, for reports
  HazardSet step(size_t index, uint64_t word, const Instruction& instruction, const HazardFacts& facts);
  /// Hazard::kLdvaryCEarly is not known for one before C is overwritten, or the thread ends: which
  /// instruction the last report of it is about.
  size_t early_index() const { return early_index_; }
  uint64_t early_word() const { return early_word_; }

  /// A thread switch takes effect after this instruction; or the end.
  bool switches() const { return since_thrsw_ == 2; }
  bool ended() const { return ending_ && switches(); }
  bool in_last_section() const { return last_section_ || setting_.final_section; }
  /// Execution comes to nowhere.
  HazardSet ran_off() const;

  auto operator<=>(const HazardChecker&) const = default;

 private:
  const IsaProperties& isa() const { return qpu::isa(setting_.generation); }
  RegisterSet all_writes(const HazardFacts& f) const { return writes_of(setting_.generation, f); }
  void age();
  void written(RegisterSet registers);
  HazardSet branch_rules(const HazardFacts& f) const;
  HazardSet thrsw_rules();
  HazardSet latency_rules(const HazardFacts& f, const Instruction& i) const;
  HazardSet word_rules(const HazardFacts& f) const;
  HazardSet slot_rules(const HazardFacts& f) const;
  HazardSet end_rules(const HazardFacts& f) const;
  HazardSet state_rules(const HazardFacts& f);
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
  // Accumulators that were not written since the thread switch; those of them whose loss was told.
  RegisterSet lost_, lost_told_;
  bool rtop_valid_ = false, rtop_lost_ = false;
  RegisterSet previous_writes_, previous_loads_;
  bool implicit_next_ = false, rf0_conflict_ = false;
  // rf0, or r5: not read since it was written; holds a C that was not read; a C was missed by an early read.
  bool c_fresh_ = false, c_unread_ = false, c_missed_ = false;
  size_t early_index_ = 0;
  uint64_t early_word_ = 0;
  bool locked_ = false, unlocked_told_ = false, vpm_unwaited_ = false;
  uint8_t sequence_ = 0, data_ = 0, config_ = 0;  // TMU writes, tmud, wrtmuc since the last terminator
  bool sequence_open_ = false, syncb_ = false;
  std::optional<NnMode> nn_mode_;  // none before the first setnnmode
  bool nn_start_told_ = false;
};

/// Words that the TMU's queues of a QPU hold, and a thread's share. Source: Mesa v3d_compiler.h, 16 /
/// threads.
inline constexpr uint32_t kTmuQueue = 16;
constexpr uint32_t tmu_share(const HazardChecker::Setting& setting) {
  return kTmuQueue / (setting.four_threads ? 4 : 2);
}

/// A count exceeds a limit, and did not before.
constexpr bool exceeds(uint32_t before, uint32_t now, uint32_t limit) {
  return before <= limit && now > limit;
}

struct HazardReport {
  size_t index;  ///< of the instruction
  Hazard hazard;
  auto operator<=>(const HazardReport&) const = default;
};

/// Those of a set that a generation has.
HazardSet rules_of(chip::Generation generation, HazardSet set);

/// Whether a program is taken to start in its last section: it has no pair of thrsw, and no more than one.
bool starts_in_last_section(chip::Generation generation, std::span<const uint64_t> words);

/// Rules that a program breaks on some path through it, and what it may depend on, each once per instruction.
/// Branches to registers, link and absolute addresses are not followed.
/// @param wanted  what is reported
std::vector<HazardReport> check_program(chip::Generation generation, bool four_threads,
                                        std::span<const uint64_t> words, HazardSet wanted = kAllHazards);

/// "kind: tag: instruction 5, "text": rule"
std::string to_string(chip::Generation generation, const HazardReport& report, uint64_t word);

}  // namespace v3d::qpu
