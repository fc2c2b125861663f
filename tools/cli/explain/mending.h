/// nops_that_mend() finds out how many instructions are missing where a program breaks a rule.
#pragma once

#include <cstdint>
#include <span>

#include "gpu/chip/generation.h"
#include "gpu/qpu/check/hazard.h"

namespace v3d::tools::explain {

/// The least number of NOPs in front of the instruction with which it keeps the rule; 0: more than four, or
/// none of them helps. Relative branches lead where they did.
int nops_that_mend(chip::Generation generation, bool four_threads, std::span<const uint64_t> words,
                   const qpu::HazardReport& report);

}  // namespace v3d::tools::explain
