/// A Device is the GPU as the ioctl layer sees it: it runs one job of each kind in an address space and says
/// how it ended.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/base/thread_pool.h"
#include "gpu/chip/profile.h"
#include "gpu/device/surface_job.h"
#include "gpu/mmu/address_space.h"
#include "gpu/perf/counters.h"
#include "gpu/tfu/tfu.h"

namespace v3d::csd {
class UserQpus;
class UserQueue;
}  // namespace v3d::csd
namespace v3d::draw {
struct BinResult;
}
namespace v3d::qpu {
class Compiler;
class ProgramCache;
class Watch;
}  // namespace v3d::qpu
namespace v3d::timing {
struct Parameters;
struct Prediction;
struct Sampling;
}  // namespace v3d::timing

namespace v3d::device {

/// Mappings of the host that compiled programs may be, of all devices together, beside those that jobs under
/// way keep. Who limits the others (vm.max_map_count) leaves so many.
inline constexpr uint64_t kMostCodeMappings = 18432;

/// GPU addresses of SUBMIT_CL (drm-abi.md 2.6).
struct ClJob {
  uint32_t bcl_start = 0, bcl_end = 0, rcl_start = 0, rcl_end = 0;
  uint32_t qma = 0, qms = 0, qts = 0;
  /// Of VideoCore IV: the frame, in place of a rendering list and of what follows it.
  std::shared_ptr<const SurfaceJob> surfaces = nullptr;
};

struct CsdJob {
  std::array<uint32_t, 7> cfg{};
  bool indirect =
      false;  ///< came through CPU_INDIRECT_CSD: one supergroup at a time (compute-and-timing.md 6)
};

/// Register values of SUBMIT_TFU (texture.md 10.1).
using TfuJob = tfu::Registers;

struct JobResult {
  enum class End : uint8_t {
    kDone,       ///< all work executed
    kError,      ///< unknown packet, bad record: stopped with a message, signals with an error
    kHang,       ///< no progress: reset, as the kernel would
    kCancelled,  ///< by its JobControl
  } end = End::kDone;
  std::string message;  ///< of kError and kHang
  mmu::Faults faults;
  std::string fault_place = {};  ///< of the first fault: program and instruction; empty: of no program
  perf::Counts counts;
  /// Of a strict watch (qpu::WatchOptions): rules that QPU programs broke.
  std::vector<std::string> broken_rules = {};
  /// What the job would take on the board, where Device::set_timing() asks for it: of jobs that are done.
  /// Null: there is none.
  std::shared_ptr<const timing::Prediction> prediction = nullptr;
  std::string no_prediction = {};  ///< why, if it was asked for
  /// Of Device::set_timing_variants(): nanoseconds without the submit, of each.
  std::vector<uint64_t> variants = {};
  /// Of a job that ran with Predict::kLater: what predict() does. It needs the device, but not the context.
  std::function<void(JobResult&)> later = {};
  uint64_t recorded_bytes = 0;  ///< that `later` holds

  /// Makes the prediction that is still to be made, if there is one: adds to `counts`, and sets `prediction`
  /// or `no_prediction`. On any thread.
  void predict() {
    if (later) std::exchange(later, {})(*this);
  }
  const char* end_name() const;
  /// Why there is no prediction although it was asked for; empty: there is one.
  std::string why_not_predicted() const;
};

/// What jobs of one client share: address space and decoded programs. Jobs of one Context on different queues
/// may run at the same time, except that compute excludes bin and render (TIDX must stay unique, qpu.md 6).
class Context {
 public:
  /// @param compiler  of QPU programs, which outlives the context; null: they are interpreted
  static absl::StatusOr<std::unique_ptr<Context>> create(const chip::Profile& profile,
                                                         qpu::Compiler* compiler = nullptr);
  ~Context();
  mmu::AddressSpace& space();
  qpu::ProgramCache& programs();

 private:
  friend class Device;
  Context();
  struct State;
  struct UserPrograms;
  std::unique_ptr<State> state_;
};

class Device {
 public:
  /// @param pool  shared by all jobs; outlives the device
  /// @param patience  seconds of GPU time without progress after which a job hangs; the kernel's is 1
  Device(const chip::Profile& profile, ThreadPool& pool, double patience = 1);
  ~Device();

  const chip::Profile& profile() const;

  /// Shows the QPU threads of all jobs to `watch`; jobs count from 1 in the order of their start. Before the
  /// first job only; null: nobody watches.
  void set_watch(std::unique_ptr<qpu::Watch> watch);
  /// Lets go of what is kept for jobs to come that they can do without. Any thread, while jobs run.
  void give_memory_back();
  /// Whether a job ends with its prediction made, or to be made by JobResult::predict().
  enum class Predict : uint8_t { kWithTheJob, kLater };
  /// Predicts the times of jobs, and fills the counters that follow from it. Vertices and dispatches then run
  /// on one worker, and what is recorded is interpreted. While no job runs.
  /// @param sampling  how much of a job is recorded
  void set_timing(const timing::Sampling& sampling, Predict when = Predict::kWithTheJob);
  /// Other constants than the board's. Before the first job only.
  void set_timing_parameters(const timing::Parameters& parameters);
  /// Whether the first job of a context takes Parameters::first_submit more outside of the GPU: what the
  /// kernel does for a process once. Before the first job only.
  void set_first_submit(bool counts);
  /// Whether somebody compares the memory of a context after jobs, scratch of programs included. Before the
  /// first job only.
  void set_compares_memory(bool compares);
  /// What a job takes is also told for each of these, from one run. Before the first job only.
  void set_timing_variants(std::vector<timing::Parameters> variants);

  /// The bin half of a CL job. *result is for run_render of the same submission; also set on errors (what was
  /// binned so far). bcl_start == bcl_end must not be passed.
  JobResult run_bin(Context& context, const ClJob& job, JobControl& control,
                    std::shared_ptr<const draw::BinResult>* result);
  /// The render half. @param bin  of run_bin, or null when the submission had no bin job
  JobResult run_render(Context& context, const ClJob& job, JobControl& control,
                       const std::shared_ptr<const draw::BinResult>& bin);
  JobResult run_csd(Context& context, const CsdJob& job, JobControl& control);
  /// csd::is_brief().
  bool is_brief(const Context& context, const CsdJob& job) const;
  JobResult run_tfu(Context& context, const TfuJob& job, JobControl& control);
  /// csd::UserQpus::run() on VideoCore IV. Jobs of one UserQpus come one after the other, in one context.
  JobResult run_user_programs(Context& context, csd::UserQpus& qpus, csd::UserQueue& queue, bool alone,
                              JobControl& control);

 private:
  friend class Context;  // which keeps a Recording
  struct JobThreads;
  struct Recording;
  template <typename Work, typename Take>
  JobResult run_job(Context& context, const JobThreads& threads, const Work& work, const Take& take);
  template <typename Take>
  void predict(Recording& recording, const Take& take, uint64_t first_submit_ns, JobResult* result) const;

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace v3d::device
