/// A failure page says in text why a job of a capture does not end well: what failed where, what its thread
/// did before, which memory it wanted and what lies around that, and which jobs came before and after.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "gpu/qpu/run/compiled.h"

namespace v3d::inspect {

struct FailurePages {
  uint32_t jobs = 0;      ///< of the capture
  uint32_t failed = 0;    ///< of these, that hang, are wrong, or access memory that is not mapped
  std::string text = {};  ///< a page for each of the first kMostFailurePages of them
};
inline constexpr uint32_t kMostFailurePages = 4;

/// @param compiler  as for CapturedPosition
absl::StatusOr<FailurePages> explain_failures(const std::string& path, qpu::Compiler* compiler);

}  // namespace v3d::inspect
