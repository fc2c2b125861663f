#include "gpu/perf/timing/parameters.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "gpu/chip/profile.h"

namespace v3d::timing {
namespace {

/// Columns of parameters.def.
enum Board { kPi5, kPi5Of16, kPi4 };

/// Boards that differ in what the model does not know of share a column.
Board board_of(const chip::Profile& profile) {
  if (!profile.csd_fills_in_order()) return kPi4;
  return profile.slices > 3 ? kPi5Of16 : kPi5;
}

/// Names of the columns of vc4_parameters.def; a board of another name has the first one's.
constexpr std::array<std::string_view, 4> kVc4Boards = {"rpi3", "rpi2", "rpi1", "rpi0"};

size_t vc4_board_of(const chip::Profile& profile) {
  const auto* const found = std::find(kVc4Boards.begin(), kVc4Boards.end(), std::string_view(profile.name));
  return found == kVc4Boards.end() ? 0 : static_cast<size_t>(found - kVc4Boards.begin());
}

/// What vc4_parameters.def says of a row of parameters.def.
struct Vc4Row {
  std::string_view name;
  std::array<uint64_t, kVc4Boards.size()> values;
  Origin origin;
  const char* source;
};
constexpr Vc4Row kVc4Rows[] = {
#define V3D_TIMING_VC4(name, rpi3, rpi2, rpi1, rpi0, origin, source) \
  {#name, {rpi3, rpi2, rpi1, rpi0}, Origin::origin, source},
#include "gpu/perf/timing/vc4_parameters.def"
};
constexpr std::string_view kNames[] = {
#define V3D_TIMING(name, unit, rpi5, rpi5_16, rpi4, origin, source) #name,
#include "gpu/perf/timing/parameters.def"
};
static_assert(std::ranges::equal(kVc4Rows, kNames, {}, &Vc4Row::name), "rows in the same order");

/// What is neither time nor a share of it is a size, a limit or a rate by which something is divided.
bool may_be_none(const ParameterRow& row) {
  constexpr std::string_view kTimes[] = {"clk",  "clk/4",  "ns",    "us",     "ps",
                                         "ps/B", "1/1000", "reads", "B or 0", "0 or 1"};
  return row.member != &Parameters::instruction &&
         std::find(std::begin(kTimes), std::end(kTimes), row.unit) != std::end(kTimes);
}

}  // namespace

const char* origin_name(Origin origin) {
  constexpr const char* kOrigins[] = {"measured", "published", "fitted", "inferred", "none"};
  return kOrigins[static_cast<int>(origin)];
}

const std::vector<ParameterRow>& parameter_rows() {
  static const std::vector<ParameterRow> rows = {
#define V3D_TIMING(name, unit, rpi5, rpi5_16, rpi4, origin, source) \
  {#name, unit, &Parameters::name, Origin::origin, source},
#include "gpu/perf/timing/parameters.def"
  };
  return rows;
}

std::vector<ParameterRow> parameter_rows(const chip::Profile& profile) {
  std::vector<ParameterRow> rows = parameter_rows();
  if (!profile.pipeline().has_compute_jobs)
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i].origin = kVc4Rows[i].origin;
      rows[i].source = kVc4Rows[i].source;
    }
  std::erase_if(rows, [](const ParameterRow& row) { return row.origin == Origin::kNone; });
  return rows;
}

std::string set_parameter(std::string_view assignment, Parameters* parameters) {
  constexpr uint64_t kMost = 1u << 24;
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) return "a constant is set by NAME=VALUE";
  const std::string_view name = assignment.substr(0, equals);
  const auto& rows = parameter_rows();
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const ParameterRow& r) { return name == r.name; });
  if (row == rows.end()) return absl::StrFormat("the timing model has no constant \"%s\"", name);
  const uint64_t least = may_be_none(*row) ? 0 : 1;
  uint64_t value = 0;
  if (!absl::SimpleAtoi(std::string(assignment.substr(equals + 1)), &value) || value < least || value > kMost)
    return absl::StrFormat("%s is a whole number from %d to %d", name, least, kMost);
  parameters->*row->member = value;
  return {};
}

Parameters parameters_of(const chip::Profile& profile) {
  Parameters p;
  if (!profile.pipeline().has_compute_jobs) {
    for (size_t i = 0; i < std::size(kVc4Rows); ++i)
      p.*parameter_rows()[i].member = kVc4Rows[i].values[vc4_board_of(profile)];
    return p;
  }
  const Board board = board_of(profile);
#define V3D_TIMING(name, unit, rpi5, rpi5_16, rpi4, origin, source) \
  p.name = std::array<uint64_t, 3>{rpi5, rpi5_16, rpi4}[board];
#include "gpu/perf/timing/parameters.def"
  return p;
}

}  // namespace v3d::timing
