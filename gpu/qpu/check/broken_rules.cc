#include "gpu/qpu/check/broken_rules.h"

#include <algorithm>

#include "gpu/qpu/check/vc4_hazard.h"

namespace v3d::qpu {

std::vector<BrokenRule> broken_rules(chip::Generation generation, bool four_threads,
                                     std::span<const uint64_t> words, HazardKinds wanted) {
  std::vector<BrokenRule> broken;
  if (isa(generation).has_words) {
    for (const HazardReport& r : check_program(generation, four_threads, words, hazards_of(wanted)))
      broken.push_back({r.index, kind(r.hazard), to_string(generation, r, words[r.index])});
    return broken;
  }
  for (const vc4::HazardReport& r : vc4::check_program(words))
    if (const HazardKind kind = vc4::info(r.hazard).kind; wanted & bit(kind))
      broken.push_back({r.index, kind, vc4::to_string(r, words[r.index])});
  std::stable_sort(broken.begin(), broken.end(),
                   [](const BrokenRule& a, const BrokenRule& b) { return a.index < b.index; });
  return broken;
}

}  // namespace v3d::qpu
