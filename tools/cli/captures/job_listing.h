/// A listing shows a job of a capture as text: control lists, records, programs.
#pragma once

#include <functional>
#include <string_view>

#include "daemon/capture.h"
#include "gpu/chip/profile.h"
#include "gpu/mmu/address_space.h"

namespace v3d::tools {

/// "bin", "render", "compute", "tfu" or "user".
const char* kind_name(const daemon::CapturedJob& job);

/// @param space  as the job finds it  @param line  takes one line, without its end
void list_job(const daemon::CapturedJob& job, mmu::AddressSpace& space, const chip::Profile& profile,
              const std::function<void(std::string_view line)>& line);

}  // namespace v3d::tools
