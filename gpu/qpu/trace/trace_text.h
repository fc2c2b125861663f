/// A TraceText writes lines of traces: values of lanes in the form that the selection wants.
#pragma once

#include <cstdint>
#include <string>

#include "gpu/base/lanes.h"
#include "gpu/qpu/trace/trace_selection.h"

namespace v3d::qpu {

struct TraceText {
  const TraceSelection& selection;
  std::string& text;

  void line(const char* what, const std::string& rest);
  /// Of unknown type: floats, if all look like ordinary ones.
  void values(const std::string& label, const Lanes& v);
  /// @param valid  lanes that are shown; the others are dots
  void values(const std::string& label, const Lanes& v, LaneMask valid, bool floats);
  std::string scalar(uint32_t bits) const;
  std::string scalar(uint32_t bits, bool floats) const;
};

}  // namespace v3d::qpu
