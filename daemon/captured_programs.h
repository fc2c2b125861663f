/// Captured programs are a job of user programs of VideoCore IV as words of a capture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gpu/csd/user_programs.h"

namespace v3d::daemon {

/// What waited for QPUs when the job began, which is all that it runs.
struct CapturedPrograms {
  bool alone = false;  ///< UserQpus::run()
  /// The QPUs are as after power-on. If not, they are as the client's jobs before left them.
  bool fresh = true;
  uint32_t reserved_qpus = 0;
  std::vector<csd::UserProgram> programs = {};
};

/// More than the queue of any chip takes.
inline constexpr size_t kMostCapturedPrograms = 64;

/// Flags (1 alone, 2 fresh) and reserved QPUs; then code, uniforms and most instructions (two words) of each.
std::vector<uint32_t> words_of(const CapturedPrograms& job);
/// Null if these are the words of no such job.
std::shared_ptr<const CapturedPrograms> programs_of(std::span<const uint32_t> words);

/// Programs of a queue, and none that comes to it later: that is of the next job.
class FirstPrograms : public csd::UserQueue {
 public:
  FirstPrograms(csd::UserQueue& queue, size_t programs) : queue_(queue), left_(programs) {}

  bool take(csd::UserProgram* program) override;
  void executed(uint64_t instructions) override { queue_.executed(instructions); }
  void end(const csd::UserProgram& program, int qpu, bool interrupts) override {
    queue_.end(program, qpu, interrupts);
  }
  uint32_t reserved_qpus() const override { return queue_.reserved_qpus(); }
  std::vector<csd::UserProgram> queued() const override;

 private:
  csd::UserQueue& queue_;
  size_t left_;
};

}  // namespace v3d::daemon
