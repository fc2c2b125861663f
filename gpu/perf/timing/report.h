/// A prediction as text.
#pragma once

#include <functional>
#include <string>

#include "gpu/perf/timing/replayer.h"

namespace v3d::timing {

/// Some lines, indented by two: what bounds the dispatch, what QPUs and units did, bytes, and the
/// instructions that took longest with their stalls. The same on every host.
/// @param text_of  an instruction by its number
std::string report(const Prediction& prediction, const std::function<std::string(uint32_t)>& text_of,
                   size_t instructions = 8);

}  // namespace v3d::timing
