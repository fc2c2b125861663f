/// V3dState names the registers and flags of a thread of V3D 4.2 or 7.1, and gives what they hold.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gpu/base/lanes.h"
#include "gpu/chip/generation.h"
#include "gpu/qpu/isa/instruction.h"
#include "gpu/qpu/run/thread.h"

namespace v3d::inspect {

struct V3dState {
  static std::vector<std::string> registers(chip::Generation generation) {
    std::vector<std::string> names;
    names.reserve(qpu::kNumRegisters);
    for (int n = 0; n < qpu::kFirstAccumulator; ++n) names.push_back(absl::StrCat("rf", n));
    const bool has_accumulators = qpu::isa(generation).implicit >= qpu::kFirstAccumulator;
    for (int n = 0; has_accumulators && n < qpu::kNumRegisters - qpu::kFirstAccumulator; ++n)
      names.push_back(absl::StrCat("r", n));
    return names;
  }
  static std::vector<std::string> flags() { return {"A", "B", "msf"}; }
  static const Lanes& at(const qpu::Thread& t, size_t n) { return t.at(static_cast<qpu::Register>(n)); }
  static std::vector<LaneMask> flags_of(const qpu::Thread& t) { return {t.flag_a, t.flag_b, nonzero(t.msf)}; }
};

}  // namespace v3d::inspect
