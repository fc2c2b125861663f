#include "gpu/qpu/check/paths.h"

namespace v3d::qpu {
namespace {

using Behind = ExecutionChecker::Behind;

Behind behind(const HazardChecker& checker) {
  if (checker.ended()) return Behind::kEnd;
  return checker.switches() ? Behind::kSwitch : Behind::kNothing;
}

constexpr GpuAddr kDelaySlots = 3;

std::optional<GpuAddr> target_of(const Branch& branch, GpuAddr pc) {
  if (branch.target == BranchTarget::kAbsolute) return branch.offset & ~7u;
  if (branch.target == BranchTarget::kRelative) return (pc + 8 * (1 + kDelaySlots) + branch.offset) & ~7u;
  return {};
}

}  // namespace

const Paths::Place* Paths::find(const HazardChecker& before, GpuAddr pc, size_t index, uint64_t word,
                                const Instruction& instruction, HazardSet* found) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Place>& place = places_[{pc, word, before}];
  if (place) return place.get();
  const HazardFacts facts = facts_of(version_, word, instruction);
  HazardChecker checker = before;
  *found = checker.step(index, word, instruction, facts);
  const Behind then = behind(checker);
  place.reset(new Place{pc, word, facts, checker, then, ExecutionChecker::asks(facts, then)});
  if (places_.size() >= kLimit) full_ = true;
  threads_ = 0;
  quiet_ = 0;
  const auto at = checked_.find(pc);
  if (at == checked_.end() || at->second.word != word) {
    checked_.insert_or_assign(pc, Checked{word, before, place.get()});
    ++changes_;
  }
  if (instruction.is_branch)
    if (const auto target = target_of(instruction.branch, pc)) branch_to_[*target] = pc;
  return place.get();
}

std::optional<HazardChecker> Paths::before(GpuAddr pc, uint64_t word, bool* known) const {
  const std::lock_guard lock(mutex_);
  const auto behind = [this](GpuAddr address) -> std::optional<HazardChecker> {
    const auto found = checked_.find(address);
    return found == checked_.end() ? std::nullopt : std::optional(found->second.place->checker);
  };
  const auto same = checked_.find(pc);
  *known = same != checked_.end() && same->second.word == word;
  if (*known) return same->second.before;
  if (const auto branch = branch_to_.find(pc); branch != branch_to_.end())
    if (auto checker = behind(branch->second + 8 * kDelaySlots)) return checker;
  return behind(pc - 8);
}

std::shared_ptr<const HostProgram> Paths::code(PartCompiler& compiler, const Program& program,
                                               const Thread& thread) {
  const std::lock_guard lock(mutex_);
  if (made_at_ != changes_) {
    made_at_ = changes_;
    code_ = compiler.compile_part(program, thread.memory, thread.final_section,
                                  [this](GpuAddr address, uint64_t word) {
                                    const auto found = checked_.find(address);
                                    return found != checked_.end() && found->second.word == word;
                                  });
  }
  return code_;
}

}  // namespace v3d::qpu
