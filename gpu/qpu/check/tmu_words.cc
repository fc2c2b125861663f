#include "gpu/qpu/check/tmu_words.h"

#include <algorithm>

namespace v3d::qpu {
namespace {

constexpr uint8_t kMaxReturned = 4;
constexpr uint8_t kConfigs = 4;  // bytes of the configuration word, one for each general lookup

uint8_t sum(uint8_t a, uint8_t b, uint8_t limit) { return static_cast<uint8_t>(std::min(a + b, int{limit})); }

}  // namespace

HazardSet TmuWords::step(const HazardFacts& f, const HazardChecker::Setting& setting, bool ends) {
  HazardsFound found;
  // ldtmu takes its word before the same instruction starts a lookup.
  if (f.ldtmu) {
    found.check(most_ == 0, Hazard::kTmuUnderflow);
    least_ = static_cast<uint8_t>(std::max(least_ - 1, 0));
    most_ = static_cast<uint8_t>(std::max(most_ - 1, 0));
  }
  data_ = data_ || f.tmu_data;
  some_data_ = some_data_ || f.tmu_data;
  some_parameters_ = some_parameters_ || f.tmu_parameters;
  if (f.tmu_config || f.tmu_uniform_config) unknown_ = kConfigs;
  if (f.tmu_terminator) start(returned(f), setting, found);
  found.check(ends && least_ > 0, Hazard::kTmuLeftover);
  return found.set();
}

bool TmuWords::join(const TmuWords& other) {
  const TmuWords before = *this;
  least_ = std::min(least_, other.least_);
  most_ = std::max(most_, other.most_);
  data_ = data_ && other.data_;
  some_data_ = some_data_ || other.some_data_;
  some_parameters_ = some_parameters_ || other.some_parameters_;
  unknown_ = std::max(unknown_, other.unknown_);
  return *this != before;
}

// Configuration 0xff, which threads start with and which comes after the bytes of a word: a load of one
// word, or a store.
TmuWords::Range TmuWords::returned(const HazardFacts& f) {
  if (!f.tmu_general) return {!some_data_, kMaxReturned};
  const bool loads = !some_data_ && !some_parameters_;
  if (unknown_ == 0) return {loads, !data_};
  --unknown_;
  return {loads, data_ ? uint8_t{1} : kMaxReturned};
}

void TmuWords::start(Range words, const HazardChecker::Setting& setting, HazardsFound& found) {
  const uint32_t now = least_ + words.least;
  found.check(exceeds(least_, now, tmu_share(setting)), Hazard::kTmuOverflow);
  found.check(exceeds(least_, now, kTmuQueue), Hazard::kTmuLost);
  least_ = sum(least_, words.least, kMany);
  most_ = sum(most_, words.most, kMany);
  data_ = some_data_ = some_parameters_ = false;
}

}  // namespace v3d::qpu
