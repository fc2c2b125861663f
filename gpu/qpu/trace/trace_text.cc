#include "gpu/qpu/trace/trace_text.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_format.h"

namespace v3d::qpu {
namespace {

using Values = TraceSelection::Values;

constexpr int kLanesPerRow = 8;

// Words of unknown type count as floats if they would be ordinary ones.
bool looks_float(uint32_t bits) {
  const uint32_t exponent = bits >> 23 & 255;
  return exponent > 67 && exponent < 187;
}
bool look_float(const Lanes& v) {
  bool any = false;
  for (int n = 0; n < kLanes; ++n) {
    if (v[n] != 0 && !looks_float(v[n])) return false;
    any = any || v[n] != 0;
  }
  return any;
}

struct Row {
  std::string label;
  int first, last;
  bool as_decimal, floats;
};

// Lanes outside `valid` are dots.
void append_row(const Row& row, const Lanes& v, LaneMask valid, std::string* text) {
  absl::StrAppendFormat(text, "    %-16s %2d..%-2d", row.label, row.first, row.last);
  for (int n = row.first; n <= row.last; ++n) {
    const uint32_t bits = v[n];
    if (!(valid >> n & 1))
      absl::StrAppendFormat(text, "%*s", row.as_decimal ? 11 : 9, ".");
    else if (!row.as_decimal)
      absl::StrAppendFormat(text, " %08x", bits);
    else if (row.floats)
      absl::StrAppendFormat(text, " %10.4g", std::bit_cast<float>(bits));
    else
      absl::StrAppendFormat(text, "%12d", static_cast<int32_t>(bits));
  }
  *text += '\n';
}

}  // namespace

void TraceText::line(const char* what, const std::string& rest) {
  absl::StrAppendFormat(&text, "    %-22s %s\n", what, rest);
}

std::string TraceText::scalar(uint32_t bits) const { return scalar(bits, looks_float(bits)); }
std::string TraceText::scalar(uint32_t bits, bool floats) const {
  const Values v = selection.values;
  if (v == Values::kInt) return absl::StrFormat("%d", static_cast<int32_t>(bits));
  if (v == Values::kFloat) return absl::StrFormat("%g", std::bit_cast<float>(bits));
  if (v == Values::kHex || (v == Values::kAuto && !floats)) return absl::StrFormat("%08x", bits);
  return absl::StrFormat("%08x = %g", bits, std::bit_cast<float>(bits));
}

void TraceText::values(const std::string& label, const Lanes& v) {
  values(label, v, kAllLanes, look_float(v));
}

void TraceText::values(const std::string& label, const Lanes& v, LaneMask valid, bool floats) {
  const int first = static_cast<int>(selection.lanes.first), last = static_cast<int>(selection.lanes.last);
  const auto shown = static_cast<LaneMask>((0xffffu << first) & (0xffffu >> (15 - last)));
  bool same = (valid & shown) == shown;
  for (int n = first; n <= last; ++n) same = same && v[n] == v[first];
  if (same) return line(label.c_str(), "all  " + scalar(v[first], floats));
  if (!(valid & shown)) return line(label.c_str(), "no lane");
  const Values how = selection.values;
  const bool hex = how == Values::kAuto || how == Values::kHex || how == Values::kHexFloat;
  const bool decimal = how == Values::kFloat || how == Values::kInt || how == Values::kHexFloat ||
                       (how == Values::kAuto && floats);
  for (int n = first; n <= last; n += kLanesPerRow) {
    const int end = std::min(n + kLanesPerRow - 1, last);
    const std::string name = n == first ? label : "";
    if (hex) append_row({name, n, end, false, false}, v, valid, &text);
    if (decimal) append_row({hex ? "" : name, n, end, true, how != Values::kInt}, v, valid, &text);
  }
}

}  // namespace v3d::qpu
