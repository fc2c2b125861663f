#include "gpu/base/left_out.h"

#include <algorithm>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace v3d {
namespace {

constexpr struct {
  absl::string_view name;
  Stage stage;
} kStages[] = {{"fragments", Stage::kFragments},
               {"programs", Stage::kPrograms},
               {"lookups", Stage::kLookups},
               {"stores", Stage::kStores}};

}  // namespace

absl::StatusOr<uint32_t> parse_left_out(absl::string_view list) {
  uint32_t mask = 0;
  for (const absl::string_view name : absl::StrSplit(list, ',', absl::SkipEmpty())) {
    const auto* const row = std::find_if(std::begin(kStages), std::end(kStages),
                                         [&](const auto& known) { return known.name == name; });
    if (row == std::end(kStages))
      return absl::InvalidArgumentError(
          absl::StrCat("no stage that can be left out: \"", name, "\"; there are ", stage_names()));
    mask |= static_cast<uint32_t>(row->stage);
  }
  return mask;
}

std::string stage_names() {
  std::string names;
  for (const auto& row : kStages) absl::StrAppend(&names, names.empty() ? "" : ", ", row.name);
  return names;
}

}  // namespace v3d
