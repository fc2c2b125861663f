/// A TraceSelection says which threads a trace shows, and how.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gpu/base/memory.h"

namespace v3d::qpu {

struct TraceSelection {
  /// A closed interval.
  struct Range {
    uint64_t first = 0, last = ~uint64_t{0};
    bool contains(uint64_t n) const { return n >= first && n <= last; }
  };
  enum class Values : uint8_t {
    kAuto,  ///< hexadecimal, and decimal below it for operations on floats
    kHex,
    kFloat,
    kInt,       ///< signed
    kHexFloat,  ///< hexadecimal and float
  };

  Range jobs;                      ///< from 1
  std::string stage;               ///< empty: all
  std::optional<GpuAddr> program;  ///< address of its first instruction
  Range batches = {0, 0};          ///< threads of one job and program, in the order of their start
  std::optional<std::array<uint32_t, 3>> workgroup;
  std::optional<std::array<uint32_t, 2>> pixel;
  std::optional<uint32_t> tidx;
  Range instructions = {0, 999};  ///< of a thread, in the order of execution
  Range lanes = {0, 15};
  Values values = Values::kAuto;

  /// Keys and values such as "job=3,stage=fragment,pixel=12:40,lanes=0-3", as kHelp says. An empty text
  /// selects the first batch of every program of every job.
  /// @return nothing, with the reason in *error, when it is not understood
  static std::optional<TraceSelection> parse(std::string_view text, std::string* error);
  static const char* const kHelp;
};

}  // namespace v3d::qpu
