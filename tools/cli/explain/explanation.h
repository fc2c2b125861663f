/// An Explanation says what a QPU program costs and needs, as far as its words tell without a run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gpu/chip/profile.h"
#include "gpu/perf/timing/prediction.h"

namespace v3d::tools::explain {

struct ExplainedInstruction {
  std::string text;
  bool on_path = false;  ///< of the way whose times are predicted
  /// Clocks of a QPU for 16 lanes each time that it issues: alone on the QPU, and with all threads. Stalled:
  /// of those, without the four in which it issues.
  double alone_stalled = 0, stalled = 0;
  std::vector<std::string> notes;  ///< rules that it breaks and what would mend it, why it stalls
};

struct Explanation {
  std::vector<ExplainedInstruction> instructions;
  uint32_t threads_per_qpu = 2, qpus = 0;
  uint32_t path_instructions = 0;  ///< on the way that is predicted
  /// Of a QPU for one batch: alone on it, and with all threads, which hide each other's waiting.
  double alone_clocks = 0, clocks = 0;
  timing::Bound bound = timing::Bound::kIssue;
  uint32_t registers_used = 0;   ///< the highest rf that it names, and one
  uint32_t registers_alive = 0;  ///< most that hold a value at one time
  uint32_t lookups = 0, words = 0, uniforms = 0, switches = 0;
  uint32_t idle_halves = 0;  ///< ALUs of its instructions that do nothing
  uint32_t branches = 0, lane_branches = 0, led_around = 0, loops = 0;
  uint32_t tidx_lookups = 0;  ///< lookups at addresses that come from tidx
  uint32_t vpm_rows = 0;      ///< that it stores to, of 16 lanes
  uint32_t vpm_bytes = 0;     ///< of the chip
  std::vector<std::string> advice;
};

/// An error for a chip whose programs are of another kind, and for too many words.
absl::StatusOr<Explanation> explain(const chip::Profile& profile, std::span<const uint64_t> words,
                                    bool four_threads);

/// Lines on all of it, without its instructions.
std::string summary(const chip::Profile& profile, const Explanation& explanation);
std::string to_text(const chip::Profile& profile, const Explanation& explanation);

}  // namespace v3d::tools::explain
