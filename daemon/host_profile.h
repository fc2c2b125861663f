/// The host profile says in words what host_time gathered.
#pragma once

#include <string>

#include "gpu/base/host_time.h"

namespace v3d::daemon {

/// Tables of blocks, QPU programs and draws, the longest first, and what was left to the interpreter.
/// @param engine  lines that say what compiled programs and lookups did not do, as Gpu::status() has them
std::string host_profile_text(const host_time::Totals& totals, const std::string& engine);

}  // namespace v3d::daemon
