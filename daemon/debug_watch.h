/// The debug categories "qpu", "hazard" and "strict" show what QPU threads do.
#pragma once

#include <memory>
#include <string>

#include "gpu/chip/generation.h"
#include "gpu/qpu/trace/watch.h"

namespace v3d::daemon {

/// What the categories show. A text that is not understood is an error on the log, and nothing is shown.
struct WatchSelection {
  std::string trace;    ///< of "qpu": qpu::TraceSelection
  std::string hazards;  ///< of "hazard" and "strict": kinds (qpu::parse_hazard_kinds)
};

/// What these categories ask for, with messages to the log; null when none is on.
/// @param compiler  @see qpu::WatchOptions
std::unique_ptr<qpu::Watch> debug_watch(chip::Generation generation, const WatchSelection& selection,
                                        qpu::PartCompiler* compiler = nullptr);

}  // namespace v3d::daemon
