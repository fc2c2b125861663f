/// Parameters are the constants of the timing model: parameters.def and vc4_parameters.def, as values for a
/// board and as rows to print.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace v3d::chip {
struct Profile;
}

namespace v3d::timing {

enum class Origin : uint8_t {
  kMeasured,   ///< on a board
  kPublished,  ///< by its makers, or in drivers
  kFitted,     ///< to measured times of programs (tools/calibrate)
  kInferred,   ///< from other facts, or assumed
  kNone,       ///< the chip has nothing of the kind
};
const char* origin_name(Origin origin);

/// In the units of parameters.def. Sizes, limits and tmu_quad_words are 1 or more; what is time may be 0.
struct Parameters {
#define V3D_TIMING(name, unit, rpi5, rpi5_16, rpi4, origin, source) uint64_t name = rpi5;
#include "gpu/perf/timing/parameters.def"
};

struct ParameterRow {
  const char *name, *unit;
  uint64_t Parameters::*member;
  Origin origin;
  const char* source;
};

/// All of them, whatever chip they are of.
const std::vector<ParameterRow>& parameter_rows();
/// Those that a board has, with where its values come from.
std::vector<ParameterRow> parameter_rows(const chip::Profile& profile);
/// Sets one by its name. @param assignment  NAME=VALUE; values are 1 to 2^24, of those that may be none also
/// 0
/// @return  why it cannot be; empty: it is set
std::string set_parameter(std::string_view assignment, Parameters* parameters);
Parameters parameters_of(const chip::Profile& profile);

}  // namespace v3d::timing
