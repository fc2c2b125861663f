/// A report is a prediction as text.
#pragma once

#include <functional>
#include <string>

#include "gpu/perf/timing/prediction.h"

namespace v3d::timing {

/// An instruction of a program by its number.
using TextOf = std::function<std::string(const Prediction::ProgramTime& program, uint32_t number)>;

/// Some lines, indented by two: what bounds the job, what QPUs and units did, bytes, and the instructions
/// that took longest with their stalls. The same on every host.
std::string report(const Prediction& prediction, const TextOf& text_of, size_t instructions = 8);

}  // namespace v3d::timing
