#include "gpu/qpu/check/paths.h"

#include <utility>

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

const Paths::Visit* Paths::find(const HazardChecker& before, GpuAddr pc, size_t index, uint64_t word,
                                const Instruction& instruction, HazardSet* found) {
  const std::lock_guard lock(mutex_);
  const auto [at, added] = places_.try_emplace(Key{pc, word, before});
  if (added) count_.add(1);
  std::unique_ptr<Visit>& place = at->second;
  if (!place) {
    const HazardFacts facts = facts_of(generation_, word, instruction);
    HazardChecker checker = before;
    *found = checker.step(index, word, instruction, facts);
    const Behind then = behind(checker);
    place.reset(new Visit{pc, word, facts, *found, checker, then, ExecutionChecker::asks(facts, then)});
    if (places_.size() >= kLimit) full_ = true;
    threads_ = 0;
    quiet_ = 0;
  }
  note(before, *place, instruction);
  return place.get();
}

void Paths::note(const HazardChecker& before, const Visit& place, const Instruction& instruction) {
  auto at = checked_.find(place.pc);
  if (at != checked_.end() && at->second.word != place.word) {  // another program is here now
    checked_.clear();
    branch_to_.clear();
    at = checked_.end();
  }
  if (at == checked_.end()) {
    checked_.emplace(place.pc, Checked{place.word, before, &place});
    ++changes_;
  } else {  // the later way: what stays, as in a loop, has come by then
    at->second.before = before;
    at->second.place = &place;
  }
  if (instruction.is_branch)
    if (const auto target = target_of(instruction.branch, place.pc)) branch_to_[*target] = place.pc;
}

std::optional<HazardChecker> Paths::before(GpuAddr pc, uint64_t word, bool* known) const {
  const std::lock_guard lock(mutex_);
  const auto same = checked_.find(pc);
  *known = same != checked_.end() && same->second.word == word;
  if (*known) return same->second.before;
  const auto behind = [this](GpuAddr address) {
    const auto found = checked_.find(address);
    return found == checked_.end() ? nullptr : &found->second;
  };
  const auto branch = branch_to_.find(pc);
  const Checked* const jumped =
      branch == branch_to_.end() ? nullptr : behind(branch->second + 8 * kDelaySlots);
  const Checked* const fell = behind(pc - 8);
  if ((jumped != nullptr) == (fell != nullptr)) return std::nullopt;  // from neither, or who knows from which
  return (jumped ? jumped : fell)->place->checker;
}

/// Takes what has come. False: it is being made.
bool Paths::receive() {
  if (!coming_) return true;
  if (coming_.use_count() > 1) return false;
  const std::shared_ptr<Coming> come = std::move(coming_);
  const std::lock_guard lock(come->mutex);
  if (come->code)
    code_ = std::move(come->code);
  else
    again_at_ = quiet() + kPatience;
  return true;
}

/// The compiler works without the lock, which threads of all clients take that run such a program.
std::shared_ptr<const HostProgram> Paths::code(PartCompiler& compiler, const Program& program,
                                               const Thread& thread) {
  PartCompiler::Words words;
  std::shared_ptr<Coming> coming;
  {
    const std::lock_guard lock(mutex_);
    if (!receive()) return code_;
    if (made_at_ == changes_ && !(again_at_ && quiet() >= *again_at_)) return code_;
    made_at_ = changes_;
    again_at_.reset();
    words.reserve(checked_.size());
    for (const auto& [address, checked] : checked_) words.emplace_back(address, checked.word);
    coming_ = coming = std::make_shared<Coming>();
  }
  auto code = compiler.compile_part(program, thread.final_section, std::move(words),
                                    [coming](std::shared_ptr<const HostProgram> made) {
                                      const std::lock_guard lock(coming->mutex);
                                      coming->code = std::move(made);
                                    });
  const std::lock_guard lock(mutex_);
  if (code) {
    code_ = std::move(code);
    coming_.reset();
  }
  return code_;
}

}  // namespace v3d::qpu
