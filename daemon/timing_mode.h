/// The timing mode says what the daemon does with the times that the board would take (docs/timing.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace v3d::daemon {

enum class TimingMode : uint8_t {
  kOff,    ///< jobs run as fast as they can
  kCount,  ///< their times are predicted, and counters that follow from that are filled
  kPace,   ///< and they end no earlier than on the board
};

/// "off", "count", "pace".
constexpr const char* timing_mode_name(TimingMode mode) {
  return mode == TimingMode::kOff ? "off" : mode == TimingMode::kCount ? "count" : "pace";
}

/// Nothing for other names. Without a name: off.
constexpr std::optional<TimingMode> find_timing_mode(std::string_view name) {
  if (name.empty()) return TimingMode::kOff;
  for (const TimingMode mode : {TimingMode::kOff, TimingMode::kCount, TimingMode::kPace})
    if (name == timing_mode_name(mode)) return mode;
  return std::nullopt;
}

}  // namespace v3d::daemon
