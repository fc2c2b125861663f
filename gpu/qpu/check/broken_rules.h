/// broken_rules() finds the rules that a program breaks, whatever chip it is for: those of hazard.def, or of
/// vc4_hazard.def.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gpu/chip/generation.h"
#include "gpu/qpu/check/hazard.h"

namespace v3d::qpu {

struct BrokenRule {
  size_t index;  ///< of the instruction
  HazardKind kind;
  std::string text;  ///< "kind: tag: instruction 5, "text": rule"
};

/// In the order of instructions.
/// @param four_threads  share a QPU, not two; 2.1 has no such programs
/// @param wanted  what is reported
std::vector<BrokenRule> broken_rules(chip::Generation generation, bool four_threads,
                                     std::span<const uint64_t> words, HazardKinds wanted = kAllHazardKinds);

}  // namespace v3d::qpu
