/// @file The facade over the blocks: one function per kind of job. Each makes the JobContext that the blocks
/// work on, calls the block, and says how the job ended. Queues, dependencies and fences are the caller's.
#include "gpu/device/device.h"

#include <new>
#include <utility>

#include "gpu/base/job_context.h"
#include "gpu/base/log.h"
#include "gpu/cle/executor.h"
#include "gpu/csd/brief.h"
#include "gpu/csd/configuration.h"
#include "gpu/csd/dispatch.h"
#include "gpu/perf/record/recorder.h"
#include "gpu/perf/record/work_recorder.h"
#include "gpu/perf/timing/replayer.h"
#include "gpu/qpu/run/program_cache.h"
#include "gpu/qpu/trace/watch.h"

namespace v3d::device {
namespace {

/// TIDX values of bin jobs: the last ones, so that render jobs have those from 0 and spills of the two, which
/// run at the same time and may share a spill BO, never meet (compute-and-timing.md 12).
constexpr int kBinThreads = 8;

int total_threads(const chip::Profile& profile) { return 4 * profile.qpu_count(); }

}  // namespace

const char* JobResult::end_name() const {
  constexpr const char* kNames[] = {"done", "error", "hang", "cancelled"};
  return kNames[static_cast<size_t>(end)];
}

std::string JobResult::why_not_predicted() const {
  if (prediction) return "";
  if (!no_prediction.empty()) return no_prediction;
  return end == End::kDone ? "not modelled" : "did not end well";
}

struct Context::State {
  State(std::unique_ptr<mmu::AddressSpace> s, int version, qpu::Compiler* compiler)
      : space(std::move(s)), programs(version, compiler) {}

  std::unique_ptr<mmu::AddressSpace> space;
  qpu::ProgramCache programs;
  std::atomic<int> graphics_jobs{0}, compute_jobs{0};  // running now
};

Context::Context() = default;
Context::~Context() = default;

absl::StatusOr<std::unique_ptr<Context>> Context::create(const chip::Profile& profile,
                                                         qpu::Compiler* compiler) {
  absl::StatusOr<std::unique_ptr<mmu::AddressSpace>> space = mmu::AddressSpace::create();
  if (!space.ok()) return space.status();
  auto context = std::unique_ptr<Context>(new Context);
  context->state_ = std::make_unique<State>(*std::move(space), profile.version, compiler);
  return context;
}

mmu::AddressSpace& Context::space() { return *state_->space; }

struct Device::State {
  State(const chip::Profile& p, ThreadPool& s, double seconds)
      : profile(p),
        shared(s),
        patience(seconds),
        bin_pool(limited(s, kBinThreads)),
        render_pool(limited(s, total_threads(p) - kBinThreads)) {}

  /// A worker slot is a TIDX: stages that own fewer values than the shared pool has slots get their own pool.
  static std::unique_ptr<ThreadPool> limited(const ThreadPool& pool, int slots) {
    return pool.concurrency() > slots ? std::make_unique<ThreadPool>(slots - 1) : nullptr;
  }

  const chip::Profile& profile;
  ThreadPool& shared;
  const double patience;
  /// Counts a job; null when nobody watches.
  std::unique_ptr<qpu::ThreadWatch> watch_job() { return watch ? watch->begin_job(++jobs) : nullptr; }

  const std::unique_ptr<ThreadPool> bin_pool, render_pool;  // null: the shared one is small enough
  std::unique_ptr<qpu::Watch> watch;
  std::atomic<uint64_t> jobs{0};
  std::unique_ptr<ThreadPool> timing_pool;  // of one worker; null: no times are wanted
  timing::Parameters parameters = timing::parameters_of(profile);
};

namespace {

/// Counts a running job in, so that a scheduler that lets compute overlap bin or render is found out.
class Running {
 public:
  Running(std::atomic<int>& own, const std::atomic<int>& excluded) : own_(own) {
    own_.fetch_add(
        1);  // before the look at the others: of two that begin at once, one at least finds the other
    alone_ = excluded.load() == 0;
  }
  ~Running() { own_.fetch_sub(1); }
  bool alone() const { return alone_; }

 private:
  std::atomic<int>& own_;
  bool alone_;
};

JobResult overlap() {
  return {.end = JobResult::End::kError,
          .message = "scheduler: compute ran at the same time as bin or render of its client",
          .faults = {},
          .counts = {}};
}

/// What one job owns while it runs.
struct JobScope {
  JobScope(const chip::Profile& profile, double patience, ThreadPool& pool, mmu::AddressSpace& address_space,
           qpu::ProgramCache& programs, Turn& turn, std::unique_ptr<qpu::ThreadWatch> thread_watch)
      : space(address_space),
        watch(std::move(thread_watch)),
        progress(static_cast<uint64_t>(profile.qpu_rate() * profile.qpu_count() * patience)),
        job{.memory = address_space.memory(),
            .profile = &profile,
            .pool = &pool,
            .programs = &programs,
            .counts = &counts,
            .error = &error,
            .cancel = &turn.cancelled(),
            .patience = patience,
            .watch = watch.get(),
            .turn = &turn,
            .progress = &progress} {
    job.instruction_limit = static_cast<uint64_t>(static_cast<double>(job.instruction_limit) * patience);
  }

  /// @param work  runs the job; memory may run out in it
  template <typename Work>
  JobResult run(const Work& work) {
    try {
      work();
    } catch (const std::bad_alloc&) {
      error.set("out of memory");
    }
    return result();
  }

  JobResult result() {
    JobResult r;
    if (error.failed()) {
      r.message = error.message();
      r.end = error.kind() == JobError::Kind::kHang ? JobResult::End::kHang : JobResult::End::kError;
    } else if (job.cancel->load(std::memory_order_relaxed)) {
      r.end = JobResult::End::kCancelled;
    }
    r.faults = space.take_faults();
    if (r.faults.count)
      log_debug(Debug::kMmu, "%d accesses to unmapped pages, the first at %#x", r.faults.count,
                r.faults.first_address);
    r.counts = counts.total();
    perf::derive(&r.counts);
    return r;
  }

  mmu::AddressSpace& space;
  const std::unique_ptr<qpu::ThreadWatch> watch;
  ListProgress progress;
  JobError error;
  perf::JobCounts counts;
  JobContext job;
};

}  // namespace

Device::Device(const chip::Profile& profile, ThreadPool& pool, double patience)
    : state_(std::make_unique<State>(profile, pool, patience)) {}
Device::~Device() = default;

void Device::set_watch(std::unique_ptr<qpu::Watch> watch) { state_->watch = std::move(watch); }

void Device::set_timing(bool on) { state_->timing_pool = on ? std::make_unique<ThreadPool>(0) : nullptr; }

void Device::set_timing_parameters(const timing::Parameters& parameters) { state_->parameters = parameters; }

const chip::Profile& Device::profile() const { return state_->profile; }

/// Runs a job, and predicts its time where that is wanted.
/// @param work  work(job): calls the block
/// @param take  take(threads, work): what was recorded, for timing::replay()
template <typename Work, typename Take>
JobResult Device::run_job(Context& context, ThreadPool& pool, Turn& turn, uint32_t first_tidx,
                          const Work& work, const Take& take) {
  Context::State& c = *context.state_;
  const bool timed = state_->timing_pool && !state_->watch;
  std::unique_ptr<qpu::ThreadWatch> watch = state_->watch_job();
  timing::Recorder* threads = nullptr;
  if (timed) {
    auto recorder =
        std::make_unique<timing::Recorder>(timing::Recorder::Setting{.version = state_->profile.version});
    threads = recorder.get();
    watch = std::move(recorder);
  }
  JobScope scope(state_->profile, state_->patience, timed ? *state_->timing_pool : pool, *c.space, c.programs,
                 turn, std::move(watch));
  scope.job.first_tidx = first_tidx;
  if (!timed) {
    JobResult result = scope.run([&] { work(scope.job); });
    if (state_->timing_pool) result.no_prediction = "QPU threads are watched";
    return result;
  }
  timing::WorkRecorder units(*threads);
  scope.job.work = &units;
  JobResult result = scope.run([&] { work(scope.job); });
  result.no_prediction = threads->failure();
  if (result.end != JobResult::End::kDone || !result.no_prediction.empty()) return result;
  try {
    auto prediction = std::make_shared<const timing::Prediction>(
        timing::replay(take(*threads, units), state_->profile, state_->parameters));
    result.counts.add(timing::counters_of(*prediction));
    result.prediction = std::move(prediction);
  } catch (const std::bad_alloc&) {
    result.no_prediction = "out of memory";
  }
  return result;
}

JobResult Device::run_bin(Context& context, const ClJob& cl, Turn& turn,
                          std::shared_ptr<const draw::BinResult>* result) {
  Context::State& c = *context.state_;
  const Running running(c.graphics_jobs, c.compute_jobs);
  if (!running.alone()) return overlap();
  return run_job(
      context, state_->bin_pool ? *state_->bin_pool : state_->shared, turn,
      static_cast<uint32_t>(total_threads(state_->profile) - kBinThreads),
      [&](const JobContext& job) { *result = cle::run_bin_list(job, cl.bcl_start, cl.bcl_end); },
      [](timing::Recorder&, timing::WorkRecorder& work) { return work.take_bin(); });
}

JobResult Device::run_render(Context& context, const ClJob& cl, Turn& turn,
                             const std::shared_ptr<const draw::BinResult>& bin) {
  Context::State& c = *context.state_;
  const Running running(c.graphics_jobs, c.compute_jobs);
  if (!running.alone()) return overlap();
  return run_job(
      context, state_->render_pool ? *state_->render_pool : state_->shared, turn, 0,
      [&](const JobContext& job) { cle::run_render_list(job, cl.rcl_start, cl.rcl_end, cl.qma, bin.get()); },
      [](timing::Recorder&, timing::WorkRecorder& work) { return work.take_render(); });
}

JobResult Device::run_csd(Context& context, const CsdJob& csd, Turn& turn) {
  Context::State& c = *context.state_;
  const Running running(c.compute_jobs, c.graphics_jobs);
  if (!running.alone()) return overlap();
  return run_job(
      context, state_->shared, turn, 0,
      [&](const JobContext& job) { csd::dispatch(job, csd.cfg, csd.indirect, c.space.get()); },
      [&](timing::Recorder& threads, timing::WorkRecorder&) {
        return timing::Dispatch{
            .trace = threads.take(),
            .batches_per_supergroup = csd::decode(csd.cfg, state_->profile).batches_per_sg};
      });
}

bool Device::is_brief(const Context& context, const CsdJob& job) const {
  return csd::is_brief(*context.state_->space, state_->profile, job.cfg);
}

JobResult Device::run_tfu(Context& context, const TfuJob& registers, Turn& turn) {
  return run_job(
      context, state_->shared, turn, 0, [&](const JobContext& job) { tfu::run(job, registers); },
      [](timing::Recorder&, timing::WorkRecorder& work) { return work.take_transfer(); });
}

}  // namespace v3d::device
