/// The debug categories "qpu" and "hazard" show what QPU threads do.
#pragma once

#include <memory>
#include <string>

#include "gpu/chip/generation.h"
#include "gpu/qpu/trace/watch.h"

namespace v3d::daemon {

/// What the two categories show. A text that is not understood is an error on the log, and nothing is shown.
struct WatchSelection {
  std::string trace;    ///< of "qpu": qpu::TraceSelection
  std::string hazards;  ///< of "hazard": kinds (qpu::parse_hazard_kinds)
};

/// What the categories "qpu" and "hazard" ask for, with messages to the log; null when neither is on.
/// @param compiler  @see qpu::WatchOptions
std::unique_ptr<qpu::Watch> debug_watch(chip::Generation generation, const WatchSelection& selection,
                                        qpu::PartCompiler* compiler = nullptr);

}  // namespace v3d::daemon
