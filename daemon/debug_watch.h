/// What the debug categories show of QPU threads.
#pragma once

#include <memory>
#include <string_view>

#include "gpu/qpu/trace/watch.h"

namespace v3d::daemon {

/// What the categories "qpu" and "hazard" ask for, with messages to the log; null when neither is on.
/// @param selection  what "qpu" shows (qpu::TraceSelection). One that is not understood is an error on the
/// log, and nothing is traced.
std::unique_ptr<qpu::Watch> debug_watch(int version, std::string_view selection);

}  // namespace v3d::daemon
