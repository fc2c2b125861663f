/// A PoisonedThread has values that show where the hardware leaves any: in registers at its start, and where
/// it breaks a rule whose row in hazard.def says so.
#pragma once

#include <cstdint>
#include <string_view>

#include "gpu/chip/generation.h"
#include "gpu/qpu/check/hazard.h"
#include "gpu/qpu/isa/register_set.h"
#include "gpu/qpu/run/thread.h"

namespace v3d::qpu {

/// No number as a float and as each of two halves, and as an address one at which drivers map nothing.
inline constexpr uint32_t kPoison = 0xffdeffde;

/// Registers in which a stage finds something at its start (qpu.md 6).
RegisterSet payload_of(chip::Generation generation, std::string_view stage);

class PoisonedThread {
 public:
  /// Spoils all registers but the payload. @param thread  before its first instruction; outlives the object
  PoisonedThread(chip::Generation generation, std::string_view stage, Thread& thread);

  /// An instruction is about to execute. @return  Hazard::kUnwritten, or nothing
  HazardSet before(const HazardFacts& facts);
  /// It was executed. @param broken  rules that it broke
  void after(const HazardFacts& facts, HazardSet broken);

 private:
  void spoil(RegisterSet registers);

  const chip::Generation generation_;
  Thread& thread_;
  RegisterSet written_;  // or found at the start
  RegisterSet spoiled_;  // as soon as what is under way has landed
};

}  // namespace v3d::qpu
