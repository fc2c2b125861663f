/// A CapturedPosition stands before one job of a capture, with memory as that job found it, and runs the job
/// as often as is wanted.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/capture.h"
#include "gpu/base/job_context.h"
#include "gpu/base/thread_pool.h"
#include "gpu/base/work_watch.h"
#include "gpu/cle/surfaces.h"
#include "gpu/draw/bin_result.h"
#include "gpu/qpu/run/program_cache.h"
#include "gpu/vpm/vertex_shading.h"

namespace v3d::inspect {

/// How a job is run.
struct RunWith {
  bool alone = false;                   ///< on one worker, so that threads come in the same order every time
  bool interpreted = false;             ///< programs are not compiled
  qpu::ThreadWatch* threads = nullptr;  ///< who watches the QPU threads
  WorkWatch* units = nullptr;
  JobControl* control = nullptr;                   ///< by which a watch ends the job early; null: none does
  std::optional<uint64_t> instruction_limit = {};  ///< of a thread, after which it hangs; nothing: as ever
};

/// An instruction that is to be another one.
struct PatchedWord {
  uint32_t address = 0;
  uint64_t word = 0;
  bool operator==(const PatchedWord&) const = default;
};

struct Ran {
  bool done = false;
  std::string message;  ///< why not
};

class CapturedPosition {
 public:
  /// @param compiler  of QPU programs, which outlives the object; null: they are interpreted
  static absl::StatusOr<std::unique_ptr<CapturedPosition>> open(const std::string& path,
                                                                qpu::Compiler* compiler);

  /// Of the board; does not change, as little as jobs() and summaries(), while others ask.
  const chip::Profile& profile() const { return *profile_; }
  /// All jobs. That of number n is at n - 1.
  const std::vector<daemon::CapturedJob>& jobs() const { return jobs_; }
  /// What each of them is, in a few words.
  const std::vector<std::string>& summaries() const { return summaries_; }

  /// Jobs find these words where they are mapped. @return  whether others were there before
  bool set_patches(std::vector<PatchedWord> patches);
  /// Moves before a job, by its number from 1. A render job has its binning done then.
  absl::Status seek(uint32_t number);
  /// Goes through the jobs from the first one up to this one, and calls see(number) with each in its turn:
  /// found() tells of it, and nothing is run or edited.
  absl::Status scan(uint32_t number, const std::function<void(uint32_t number)>& see);
  const daemon::CapturedJob& job() const { return jobs_[number_ - 1]; }
  mmu::AddressSpace& space() { return reader_->context(job().context).space(); }
  /// The word that the job finds at a multiple of four; nothing: it is not mapped.
  std::optional<uint32_t> found(GpuAddr address);
  /// Of bin jobs what run() makes, of render jobs what their submission has binned; may be null.
  std::shared_ptr<draw::BinResult> bin() const { return bin_; }

  /// Runs the job; memory has what it leaves, until restore().
  Ran run(const RunWith& with);
  /// Runs a vertex stage of the job over a draw; restore() comes after it, too.
  absl::StatusOr<vpm::ShadedVertices> shade(const draw::Draw& draw, vpm::Phase phase);
  /// Memory as the job finds it; faults since then are forgotten.
  void restore();
  /// The context of the job, for gpu/device; restore() comes after it.
  device::Context& context();

 private:
  explicit CapturedPosition(qpu::Compiler* compiler);
  void rewind();
  absl::Status advance();
  void patch();
  Ran execute(const daemon::CapturedJob& job, const RunWith& with);
  Ran in_context(uint32_t client, const RunWith& with, const std::function<void(JobContext&)>& work);

  qpu::Compiler* const compiler_;
  std::unique_ptr<daemon::CaptureReader> reader_;
  const chip::Profile* profile_ = nullptr;
  std::vector<daemon::CapturedJob> jobs_;
  std::vector<std::string> summaries_;
  uint32_t number_ = 0;      // of the job, 0: before the first one
  bool is_written_ = false;  // memory, by the job
  std::vector<PatchedWord> patches_;
  bool is_stale_ = false;  // what was binned: it may be something else with the patches
  std::shared_ptr<draw::BinResult> bin_;
  std::map<uint32_t, cle::ClearValues> clear_values_;  // by context, of the jobs before
  std::map<uint32_t, std::unique_ptr<qpu::ProgramCache>> compiled_, interpreted_;  // by context
  ThreadPool alone_{0}, together_;
};

}  // namespace v3d::inspect
