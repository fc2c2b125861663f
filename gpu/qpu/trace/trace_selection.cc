#include "gpu/qpu/trace/trace_selection.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace v3d::qpu {
namespace {

using Range = TraceSelection::Range;
using Values = TraceSelection::Values;

bool read_number(std::string_view text, uint64_t& number) {
  const bool hexadecimal = text.starts_with("0x");
  if (hexadecimal) text.remove_prefix(2);
  const auto [stop, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, hexadecimal ? 16 : 10);
  return error == std::errc() && stop == text.data() + text.size();
}

// "3", "3-5" or "all".
bool read_range(std::string_view text, Range& range) {
  range = {};
  if (text == "all") return true;
  const size_t dash = text.find('-');
  if (!read_number(text.substr(0, dash), range.first)) return false;
  range.last = range.first;
  return dash == text.npos || (read_number(text.substr(dash + 1), range.last) && range.last >= range.first);
}

// Exactly N numbers of 32 bits, divided by colons.
template <size_t N>
bool read_list(std::string_view text, std::optional<std::array<uint32_t, N>>& list) {
  list.emplace();
  for (size_t i = 0; i < N; ++i) {
    const size_t colon = text.find(':');
    uint64_t number = 0;
    if ((colon == text.npos) != (i + 1 == N) || !read_number(text.substr(0, colon), number) ||
        number > 0xffffffff)
      return false;
    (*list)[i] = static_cast<uint32_t>(number);
    text.remove_prefix(std::min(text.size(), colon) + (i + 1 < N));
  }
  return true;
}

bool read_word(std::string_view text, std::optional<uint32_t>& word) {
  std::optional<std::array<uint32_t, 1>> list;
  if (!read_list(text, list)) return false;
  word = (*list)[0];
  return true;
}

bool read_stage(std::string_view text, std::string& stage) {
  static constexpr std::pair<const char*, const char*> kStages[] = {{"coordinate", "cs"}, {"vertex", "vs"},
                                                                    {"geometry", "gs"},   {"fragment", "fs"},
                                                                    {"compute", "csd"},   {"user", "user"}};
  for (const auto& [name, abbreviation] : kStages) {
    if (text != name && text != abbreviation) continue;
    stage = name;
    return true;
  }
  return false;
}

bool read_values(std::string_view text, Values& values) {
  static constexpr const char* kNames[] = {"auto", "hex", "float", "int", "both"};
  const auto* found = std::find(std::begin(kNames), std::end(kNames), text);
  values = static_cast<Values>(found - std::begin(kNames));
  return found != std::end(kNames);
}

// False if the value is none that the key takes.
bool read_field(std::string_view key, std::string_view value, TraceSelection& s, bool& batches_given) {
  if (key == "job") return read_range(value, s.jobs);
  if (key == "stage") return read_stage(value, s.stage);
  if (key == "program") return read_word(value, s.program);
  if (key == "workgroup") return read_list(value, s.workgroup);
  if (key == "pixel") return read_list(value, s.pixel);
  if (key == "tidx") return read_word(value, s.tidx);
  if (key == "values") return read_values(value, s.values);
  if (key == "lanes") return read_range(value, s.lanes) && s.lanes.last < 16;
  if (key == "batch") {
    batches_given = true;
    return read_range(value, s.batches);
  }
  if (key == "instructions") {
    // "50" means the first 50.
    if (!read_range(value, s.instructions)) return false;
    if (value.find('-') == value.npos && value != "all") s.instructions.first = 0, s.instructions.last -= 1;
    return true;
  }
  return false;
}

}  // namespace

const char* const TraceSelection::kHelp =
    "Comma-separated: job=N|N-M|all (from 1), stage=coordinate|vertex|geometry|fragment|compute|user, "
    "program=ADDRESS, "
    "batch=N|N-M|all (threads of a program in the order of their start; default 0), workgroup=X:Y:Z, "
    "pixel=X:Y, "
    "tidx=N, instructions=COUNT|FROM-TO (default 1000), lanes=N-M, values=auto|hex|float|int|both";

std::optional<TraceSelection> TraceSelection::parse(std::string_view text, std::string* error) {
  TraceSelection selection;
  bool batches_given = false;
  for (const absl::string_view part :
       absl::StrSplit(absl::string_view(text.data(), text.size()), ',', absl::SkipEmpty())) {
    const std::string_view field(part.data(), part.size());
    const size_t equals = field.find('=');
    if (equals == field.npos ||
        !read_field(field.substr(0, equals), field.substr(equals + 1), selection, batches_given)) {
      *error = absl::StrFormat("trace selection: \"%s\" is not understood. %s", part, kHelp);
      return {};
    }
  }
  if (!batches_given && (selection.workgroup || selection.pixel || selection.tidx)) selection.batches = {};
  return selection;
}

}  // namespace v3d::qpu
