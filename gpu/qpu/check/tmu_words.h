/// TmuWords says how many words of the TMU a thread has not taken yet, as far as its code tells.
#pragma once

#include <cstdint>

#include "gpu/qpu/check/hazard.h"

namespace v3d::qpu {

/// Follows a program on all ways at once.
///
/// What a lookup returns often stands in a uniform, and how often a loop runs too: then no more is known than
/// the least and the most, and only what is certain on every way is reported. Lookups without data return a
/// word at least.
class TmuWords {
 public:
  /// @param ends  the thread ends after the instruction
  HazardSet step(const HazardFacts& facts, const HazardChecker::Setting& setting, bool ends);
  /// Another way comes to the same place. True if it changed.
  bool join(const TmuWords& other);
  bool operator==(const TmuWords&) const = default;

 private:
  struct Range {
    uint8_t least, most;
  };
  Range returned(const HazardFacts& facts);
  void start(Range words, const HazardChecker::Setting& setting, HazardsFound& found);

  static constexpr uint8_t kMany = 32;  // counts stop there
  uint8_t least_ = 0, most_ = 0;        // words outstanding
  // Data words since the last lookup: on every way, on some; and parameters that general lookups take for
  // data.
  bool data_ = false, some_data_ = false, some_parameters_ = false;
  uint8_t unknown_ = 0;  // general lookups, from the next on, whose configuration is not known
};

}  // namespace v3d::qpu
