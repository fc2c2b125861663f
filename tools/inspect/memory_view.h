/// A MemoryView is a piece of a client's memory as a job finds it, and who changed its first word last.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/inspect/captured_position.h"

namespace v3d::inspect {

struct MemoryView {
  static constexpr uint32_t kWords = 128;

  uint32_t address = 0;                        ///< a multiple of 4
  std::vector<std::optional<uint32_t>> words;  ///< nothing: not mapped
  enum class By : uint8_t {
    kNobody,   ///< it is what the first job of the client found
    kJob,      ///< `job` changed it
    kProgram,  ///< the program did, or what is not captured, after `job` had started
  } by = By::kNobody;
  uint32_t job = 0;
};

/// A change to the value that was there before is none that can be seen.
absl::StatusOr<MemoryView> view_memory(CapturedPosition& position, uint32_t job, uint32_t address);

}  // namespace v3d::inspect
