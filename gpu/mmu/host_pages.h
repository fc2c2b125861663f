/// Pages of the GPU are mappings of the host, whose own pages may not be larger.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace v3d::mmu {

/// FailedPrecondition, in a sentence, where address spaces cannot be.
/// @param bytes  of a page of the host
absl::Status check_host_pages(uint64_t bytes);
/// The same of this host.
absl::Status check_host_pages();

}  // namespace v3d::mmu
