/// These are the rules of the QPU of V3D 2.1 that no hardware checks. They stand in vc4_hazard.def.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gpu/qpu/check/hazard.h"

namespace v3d::qpu::vc4 {

enum class Hazard : uint8_t {
#define V3D_VC4_HAZARD(name, kind, tag, mesa, rule) k##name,
#include "gpu/qpu/check/vc4_hazard.def"
};

struct HazardInfo {
  HazardKind kind;
  const char* tag;
  const char* mesa;  ///< as vc4_qpu_validate prints it, or null
  const char* rule;
};
const HazardInfo& info(Hazard hazard);

struct HazardReport {
  size_t index;  ///< of the instruction
  Hazard hazard;
  auto operator<=>(const HazardReport&) const = default;
};

/// What a program breaks, read from its first word to its last, as Mesa reads it: branches are not followed.
/// Those of Mesa come first, in the order in which it finds them.
std::vector<HazardReport> check_program(std::span<const uint64_t> words);

/// "kind: tag: instruction 5, "text": rule"
std::string to_string(const HazardReport& report, uint64_t word);

}  // namespace v3d::qpu::vc4
