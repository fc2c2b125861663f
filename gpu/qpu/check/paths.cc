#include "gpu/qpu/check/paths.h"

namespace v3d::qpu {
namespace {

using Behind = ExecutionChecker::Behind;

Behind behind(const HazardChecker& checker) {
  if (checker.ended()) return Behind::kEnd;
  return checker.switches() ? Behind::kSwitch : Behind::kNothing;
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
  return place.get();
}

}  // namespace v3d::qpu
