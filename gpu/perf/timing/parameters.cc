#include "gpu/perf/timing/parameters.h"

#include <array>

#include "gpu/chip/profile.h"

namespace v3d::timing {
namespace {

/// Columns of the table.
enum Board { kPi5, kPi5Of16, kPi4 };

/// Boards that differ in what the model does not know of share a column.
Board board_of(const chip::Profile& profile) {
  if (!profile.csd_fills_in_order()) return kPi4;
  return profile.slices > 3 ? kPi5Of16 : kPi5;
}

}  // namespace

const char* origin_name(Origin origin) {
  constexpr const char* kNames[] = {"measured", "published", "fitted", "inferred"};
  return kNames[static_cast<int>(origin)];
}

const std::vector<ParameterRow>& parameter_rows() {
  static const std::vector<ParameterRow> rows = {
#define V3D_TIMING(name, unit, rpi5, rpi5_16, rpi4, origin, source) \
  {#name, unit, &Parameters::name, Origin::origin, source},
#include "gpu/perf/timing/parameters.def"
  };
  return rows;
}

Parameters parameters_of(const chip::Profile& profile) {
  const Board board = board_of(profile);
  Parameters p;
#define V3D_TIMING(name, unit, rpi5, rpi5_16, rpi4, origin, source) \
  p.name = std::array<uint64_t, 3>{rpi5, rpi5_16, rpi4}[board];
#include "gpu/perf/timing/parameters.def"
  return p;
}

}  // namespace v3d::timing
