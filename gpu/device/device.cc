/// @file The facade over the blocks: one function per kind of job. Each makes the JobContext that the blocks
/// work on, calls the block, and says how the job ended. Queues, dependencies and fences are the caller's.
#include "gpu/device/device.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/base/host_time.h"
#include "gpu/base/job_context.h"
#include "gpu/base/log.h"
#include "gpu/cle/executor.h"
#include "gpu/csd/brief.h"
#include "gpu/csd/configuration.h"
#include "gpu/csd/dispatch.h"
#include "gpu/csd/user_programs.h"
#include "gpu/mmu/fault_place.h"
#include "gpu/perf/record/dispatch_recorder.h"
#include "gpu/perf/record/recorder.h"
#include "gpu/perf/record/sampling.h"
#include "gpu/perf/record/work_recorder.h"
#include "gpu/perf/timing/replayer.h"
#include "gpu/qpu/jit/code/code_cache.h"
#include "gpu/qpu/run/place_text.h"
#include "gpu/qpu/run/program_cache.h"
#include "gpu/qpu/trace/watch.h"

namespace v3d::device {
namespace {

/// TIDX values of bin jobs: the last ones, so that render jobs have those from 0 and spills of the two, which
/// run at the same time and may share a spill BO, never meet (compute-and-timing.md 12).
constexpr int kBinThreads = 8;
// A program's code, a stretch's and that for blocks are mappings of their own, and count as a piece at least.
static_assert(kMostCodeMappings == qpu::jit::CodeCache::kMostPrograms + qpu::ProgramCache::kMaxChunksInAll);

int total_threads(const chip::Profile& profile) { return 4 * profile.qpu_count(); }

constexpr const char* kNoMemory = "out of memory";
constexpr const char* kWaits =
    "user programs wait for those of a later job, whose prediction is that of all of them";
constexpr const char* kLacksBegin = "user programs began in a job of which nothing was recorded";
constexpr const char* kUnfinishedTooLong =
    "user programs recorded too much before they waited for a later job";

/// Bytes of a recording that are kept from job to job, for as long as the client pleases.
constexpr uint64_t kMostUnfinished = uint64_t{16} << 20;

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

/// Of user programs, some of which wait for those of a later job: what was recorded of them so far. One job
/// ends and another one begins when the stores to registers that start them come late, which no board can
/// tell.
struct Context::UserPrograms {
  std::shared_ptr<Device::Recording> recording;  // null: none waits, or none was recorded
  timing::UserPrograms began;                    // as the first of these jobs found the QPUs
};

struct Context::State {
  State(std::unique_ptr<mmu::AddressSpace> s, chip::Generation generation, qpu::Compiler* compiler)
      : space(std::move(s)), programs(generation, compiler) {}

  std::unique_ptr<mmu::AddressSpace> space;
  qpu::ProgramCache programs;
  std::atomic<int> graphics_jobs{0}, compute_jobs{0};  // running now
  std::atomic<bool> has_submitted{false};
  cle::ClearValues clear_values;  // of render jobs, which run one after another
  UserPrograms user_programs;     // of jobs that run one after another
};

Context::Context() = default;
Context::~Context() = default;

absl::StatusOr<std::unique_ptr<Context>> Context::create(const chip::Profile& profile,
                                                         qpu::Compiler* compiler) {
  absl::StatusOr<std::unique_ptr<mmu::AddressSpace>> space = mmu::AddressSpace::create();
  if (!space.ok()) return space.status();
  auto context = std::unique_ptr<Context>(new Context);
  context->state_ = std::make_unique<State>(*std::move(space), profile.generation, compiler);
  return context;
}

mmu::AddressSpace& Context::space() { return *state_->space; }
qpu::ProgramCache& Context::programs() { return state_->programs; }

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
  bool first_submit = false;  // counts
  bool compares_memory = false;
  std::optional<timing::Sampling> sampling;  // nothing: no times are wanted
  Predict when = Predict::kWithTheJob;
  std::unique_ptr<ThreadPool> dispatch_pool;  // of one worker, to record the batches in their order
  timing::Parameters parameters = timing::parameters_of(profile);
  std::vector<timing::Parameters> variants;
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
           qpu::ProgramCache& programs, JobControl& control, qpu::ThreadWatch* watch)
      : space(address_space),
        progress(static_cast<uint64_t>(profile.qpu_rate() * profile.qpu_count() * patience)),
        job{.memory = address_space.memory(),
            .profile = &profile,
            .pool = &pool,
            .programs = &programs,
            .counts = &counts,
            .error = &error,
            .cancel = &control.cancelled(),
            .patience = patience,
            .watch = watch,
            .control = &control,
            .progress = &progress} {
    job.instruction_limit = static_cast<uint64_t>(static_cast<double>(job.instruction_limit) * patience);
  }

  /// @param work  runs the job; memory may run out in it
  template <typename Work>
  JobResult run(const Work& work) {
    try {
      work();
    } catch (const std::bad_alloc&) {
      error.set(kNoMemory);
    }
    return result();
  }

  /// Takes the faults of the address space with it.
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
    const mmu::FaultPlace place = mmu::take_fault_place(space);
    if (r.faults.count && place.stage) r.fault_place = text_of(place);
    r.counts = counts.total();
    perf::derive(&r.counts);
    return r;
  }

  std::string text_of(const mmu::FaultPlace& place) const {
    std::optional<uint64_t> word;  // of a program that may have been its own victim
    if (space.is_mapped(place.instruction)) word = job.memory.load<uint64_t>(place.instruction & ~7u);
    return absl::StrFormat("in the %s program at 0x%08x, at %s", place.stage, place.program,
                           qpu::pc_text(job.profile->generation, place.instruction, word));
  }

  mmu::AddressSpace& space;
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

void Device::give_memory_back() {
  if (state_->watch) state_->watch->forget_places();
}

void Device::set_timing(const timing::Sampling& sampling, Predict when) {
  state_->sampling = sampling;
  state_->when = when;
  state_->dispatch_pool = std::make_unique<ThreadPool>(0);
}

void Device::set_timing_parameters(const timing::Parameters& parameters) { state_->parameters = parameters; }

void Device::set_first_submit(bool counts) { state_->first_submit = counts; }

void Device::set_compares_memory(bool compares) { state_->compares_memory = compares; }

void Device::set_timing_variants(std::vector<timing::Parameters> variants) {
  state_->variants = std::move(variants);
}

const chip::Profile& Device::profile() const { return state_->profile; }

/// Where a job runs, and what is recorded of it if its time is wanted.
struct Device::JobThreads {
  ThreadPool& pool;
  JobControl& control;
  uint32_t first_tidx = 0;
  std::optional<timing::RecordedBatches> dispatch = {};  ///< of a dispatch of which not all is recorded
  /// Of programs that may wait for a later job: what earlier ones have recorded, and whether some wait now.
  std::shared_ptr<Recording>* unfinished = nullptr;
  std::function<bool()> stays = {};
};

/// Records a job.
struct Device::Recording {
  Recording(const timing::Sampling& sampling, const chip::Profile& profile,
            const timing::Parameters& parameters, const std::optional<timing::RecordedBatches>& dispatch)
      : threads({.generation = profile.generation,
                 .sampling = sampling,
                 .max_instructions = dispatch ? dispatch->instructions() : ~uint64_t{0},
                 .profile = &profile,
                 .parameters = parameters}),
        units(threads, sampling) {
    if (dispatch) batches.emplace(threads, *dispatch);
  }
  qpu::ThreadWatch* watch() { return batches ? static_cast<qpu::ThreadWatch*>(&*batches) : &threads; }

  timing::Recorder threads;
  timing::WorkRecorder units;
  std::optional<timing::DispatchRecorder> batches;
};

/// Runs a job, and predicts its time where that is wanted.
/// @param work  work(job): calls the block
/// @param take  take(recording, counts): what was recorded, for timing::replay()
template <typename Work, typename Take>
JobResult Device::run_job(Context& context, const JobThreads& threads, const Work& work, const Take& take) {
  Context::State& c = *context.state_;
  const bool is_first = !c.has_submitted.exchange(true) && state_->first_submit;
  const uint64_t first_submit_ns = is_first ? state_->parameters.first_submit * 1000 : 0;
  const std::unique_ptr<qpu::ThreadWatch> watch = state_->watch_job();
  std::shared_ptr<Recording> recording =
      threads.unfinished ? std::exchange(*threads.unfinished, nullptr) : nullptr;
  if (!recording && state_->sampling && !watch)
    recording =
        std::make_shared<Recording>(*state_->sampling, state_->profile, state_->parameters, threads.dispatch);
  JobScope scope(state_->profile, state_->patience, threads.pool, *c.space, c.programs, threads.control,
                 recording ? recording->watch() : watch.get());
  scope.job.first_tidx = threads.first_tidx;
  scope.job.compares_memory = state_->compares_memory;
  if (recording) scope.job.work = &recording->units;
  JobResult result = scope.run([&] { work(scope.job); });
  if (watch) result.broken_rules = watch->take_broken_rules();
  if (!recording) {
    if (state_->sampling) result.no_prediction = "QPU threads are watched";
    return result;
  }
  if (result.end != JobResult::End::kDone) return result;
  if (threads.unfinished && threads.stays()) {
    result.no_prediction = kWaits;
    if (recording->threads.bytes() > kMostUnfinished) recording->threads.fail(kUnfinishedTooLong);
    *threads.unfinished = std::move(recording);
    return result;
  }
  result.recorded_bytes = recording->threads.bytes();
  try {
    result.later = [this, recording, take, first_submit_ns](JobResult& r) {
      predict(*recording, take, first_submit_ns, &r);
    };
  } catch (const std::bad_alloc&) {
    result.no_prediction = kNoMemory;
  }
  if (state_->when == Predict::kWithTheJob) result.predict();
  return result;
}

template <typename Take>
void Device::predict(Recording& recording, const Take& take, uint64_t first_submit_ns,
                     JobResult* result) const {
  try {
    const auto job = take(recording, result->counts);
    result->no_prediction = recording.threads.failure();
    if (!result->no_prediction.empty()) return;
    auto prediction =
        std::make_shared<timing::Prediction>(timing::replay(job, state_->profile, state_->parameters));
    prediction->submit_ns += first_submit_ns;
    for (const timing::Parameters& variant : state_->variants) {
      const timing::Prediction p = timing::replay(job, state_->profile, variant);
      result->variants.push_back(p.ns() - p.submit_ns);
    }
    result->counts.add(timing::counters_of(*prediction));
    result->prediction = std::move(prediction);
  } catch (const std::bad_alloc&) {
    result->no_prediction = kNoMemory;
  }
}

JobResult Device::run_bin(Context& context, const ClJob& cl, JobControl& control,
                          std::shared_ptr<const draw::BinResult>* result) {
  Context::State& c = *context.state_;
  const Running running(c.graphics_jobs, c.compute_jobs);
  if (!running.alone()) return overlap();
  const host_time::JobScope host(host_time::Job::kBin, host_time::Block::kLists);
  return run_job(
      context,
      {.pool = state_->bin_pool ? *state_->bin_pool : state_->shared,
       .control = control,
       .first_tidx = static_cast<uint32_t>(total_threads(state_->profile) - kBinThreads)},
      [&](const JobContext& job) { *result = cle::run_bin_list(job, cl.bcl_start, cl.bcl_end); },
      [](Recording& recording, const perf::Counts&) { return recording.units.take_bin(); });
}

JobResult Device::run_render(Context& context, const ClJob& cl, JobControl& control,
                             const std::shared_ptr<const draw::BinResult>& bin) {
  Context::State& c = *context.state_;
  const Running running(c.graphics_jobs, c.compute_jobs);
  if (!running.alone()) return overlap();
  const host_time::JobScope host(host_time::Job::kRender, host_time::Block::kLists);
  return run_job(
      context, {.pool = state_->render_pool ? *state_->render_pool : state_->shared, .control = control},
      [&](const JobContext& job) {
        if (cl.surfaces)
          cle::run_surfaces(job, *cl.surfaces, bin.get(), &c.clear_values);
        else
          cle::run_render_list(job, cl.rcl_start, cl.rcl_end, cl.qma, bin.get());
      },
      [](Recording& recording, const perf::Counts&) { return recording.units.take_render(); });
}

JobResult Device::run_csd(Context& context, const CsdJob& csd, JobControl& control) {
  Context::State& c = *context.state_;
  const Running running(c.compute_jobs, c.graphics_jobs);
  if (!running.alone()) return overlap();
  const host_time::JobScope host(host_time::Job::kCompute, host_time::Block::kDispatches);
  const csd::Configuration decoded = csd::decode(csd.cfg, state_->profile);
  const uint32_t per_supergroup = decoded.batches_per_sg;
  // What is recorded whole runs in its order, on one worker.
  const bool in_order = state_->sampling && *state_->sampling == timing::kWhole;
  JobThreads threads{.pool = in_order ? *state_->dispatch_pool : state_->shared, .control = control};
  if (state_->sampling && !in_order)
    threads.dispatch = timing::RecordedBatches(*state_->sampling, decoded.batches, per_supergroup);
  return run_job(
      context, threads,
      [&](const JobContext& job) { csd::dispatch(job, csd.cfg, csd.indirect, c.space.get()); },
      [batches = decoded.batches, per_supergroup](Recording& recording, const perf::Counts& counts) {
        if (recording.batches) recording.batches->gather();
        return timing::Dispatch{.trace = recording.threads.take(),
                                .batches = batches,
                                .instructions = counts.values[perf::kQpuActive],
                                .batches_per_supergroup = per_supergroup};
      });
}

bool Device::is_brief(const Context& context, const CsdJob& job) const {
  return csd::is_brief(*context.state_->space, state_->profile, job.cfg);
}

JobResult Device::run_tfu(Context& context, const TfuJob& registers, JobControl& control) {
  const host_time::JobScope host(host_time::Job::kTransfer, host_time::Block::kTransfers);
  return run_job(
      context, {.pool = state_->shared, .control = control},
      [&](const JobContext& job) { tfu::run(job, registers); },
      [](Recording& recording, const perf::Counts&) { return recording.units.take_transfer(); });
}

JobResult Device::run_user_programs(Context& context, csd::UserQpus& qpus, csd::UserQueue& queue, bool alone,
                                    JobControl& control) {
  const host_time::JobScope host(host_time::Job::kCompute, host_time::Block::kDispatches);
  Context::UserPrograms& unfinished = context.state_->user_programs;
  const bool had_waiting = qpus.has_waiting();
  if (!had_waiting) unfinished.recording.reset();
  const bool goes_on = unfinished.recording != nullptr;
  if (!goes_on)
    std::copy(std::begin(qpus.semaphores()), std::end(qpus.semaphores()),
              unfinished.began.semaphores.begin());
  timing::UserPrograms began = unfinished.began;
  began.by_mailbox = alone;
  const bool lacks_begin = had_waiting && !goes_on;
  return run_job(
      context,
      {.pool = state_->shared,
       .control = control,
       .unfinished = &unfinished.recording,
       .stays = [&] { return qpus.has_waiting(); }},
      [&](const JobContext& job) { qpus.run(job, queue, alone, goes_on); },
      [began, lacks_begin](Recording& recording, const perf::Counts&) {
        if (lacks_begin) recording.threads.fail(kLacksBegin);
        timing::UserPrograms recorded = began;
        recorded.trace = recording.threads.take();
        return recorded;
      });
}

}  // namespace v3d::device
