#include "gpu/csd/dispatch.h"

#include <optional>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/base/host_time.h"
#include "gpu/base/log.h"
#include "gpu/chip/profile.h"
#include "gpu/csd/batch_function.h"
#include "gpu/csd/configuration.h"
#include "gpu/csd/schedule.h"
#include "gpu/csd/uniform_snapshot.h"
#include "gpu/perf/counters.h"
#include "gpu/qpu/run/interpreter.h"
#include "gpu/qpu/run/observer.h"
#include "gpu/qpu/run/place_text.h"
#include "gpu/qpu/run/program_cache.h"
#include "gpu/qpu/run/program_scope.h"

namespace v3d::csd {
namespace {

/// The payload registers (Mesa nir_to_vir.c, nir_to_vir, MESA_SHADER_COMPUTE).
void set_payload(qpu::Thread& thread, const Batch& batch, chip::Generation generation) {
  const qpu::IsaProperties& isa = qpu::isa(generation);
  thread.at(isa.workgroup_xy) = batch.workgroup_xy;
  thread.at(isa.workgroup_z_index) = batch.workgroup_z_lii;
  thread.msf = as_uint(expand(batch.live)) & 1u;
}

/// What the batches that a worker runs have in common.
struct Station {
  std::optional<tmu::Unit> tmu;
  qpu::Series series;
  std::optional<BatchFunction> function;

  tmu::Unit& unit(const JobContext& job) {
    if (!tmu) tmu.emplace(job.memory, job.profile->generation).set_job(&job);
    return *tmu;
  }
};

}  // namespace

bool dispatch(const JobContext& job, const std::array<uint32_t, 7>& cfg, bool one_supergroup_at_a_time,
              const mmu::AddressSpace* space) {
  const chip::Generation generation = job.profile->generation;
  if (!job.profile->pipeline().has_compute_jobs) {
    job.error->set(absl::StrFormat("V3D %s has no compute jobs", chip::version_text(generation)));
    return false;
  }
  const Configuration configuration = decode(cfg, *job.profile);
  log_debug(Debug::kCsd,
            "%d batches of program %#x, uniforms %#x: grid %dx%dx%d, workgroup %d, supergroup %dx%d",
            configuration.batches, configuration.code, configuration.uniforms, configuration.wg_count[0],
            configuration.wg_count[1], configuration.wg_count[2], configuration.wg_size,
            configuration.wgs_per_sg, configuration.batches_per_sg);
  if (configuration.batches == 0) return true;

  const std::shared_ptr<const qpu::Program> program = job.programs->get(job.memory, configuration.code);
  const UniformSnapshot snapshot(job, configuration.uniforms, space);
  std::vector<Station> stations(static_cast<size_t>(job.pool->concurrency()));

  Engine engine;
  engine.prepare = [&](qpu::Thread& thread) {
    thread.reset();
    thread.memory = job.memory;
    thread.four_threads = configuration.four_threads;
    thread.final_section = configuration.single_segment;
    thread.snapshot = snapshot.bytes;
    thread.snapshot_address = snapshot.address;
    thread.snapshot_bytes = snapshot.size;
  };
  engine.start = [&](qpu::Thread& thread, const Batch& batch, uint32_t tidx) {
    thread.restart();
    thread.pc = configuration.code;
    thread.uniforms = configuration.uniforms;
    thread.tidx = tidx;
    set_payload(thread, batch, generation);
    if (job.watch) job.watch->start_batch(batch.number, thread);
  };
  engine.run = [&](qpu::Thread& thread, int worker) {
    Station& station = stations[static_cast<size_t>(worker)];
    thread.tmu = &station.unit(job);
    if (job.watch) job.watch->begin_slice(thread);
    const qpu::ProgramScope scope("compute", configuration.code, thread);
    host_time::ProgramScope host(host_time::Block::kComputePrograms, "compute", configuration.code);
    const uint64_t before = thread.instructions;
    station.series.use(*program, job.watch ? nullptr : program->compiled(thread));
    const qpu::Stop stop = before == 0 ? station.series.run(thread) : station.series.go_on(thread);
    host.executed(thread.instructions - before);
    return stop;
  };
  engine.function = [&](qpu::Thread& thread, int worker) -> BatchFunction* {
    Station& station = stations[static_cast<size_t>(worker)];
    if (!station.function) station.function.emplace(job, configuration, *program, snapshot);
    return station.function->is_ready(thread, station.unit(job)) ? &*station.function : nullptr;
  };
  engine.run_stretches = [&](Resident& resident, uint64_t budget, int worker) {
    Station& station = stations[static_cast<size_t>(worker)];
    if (!station.function) station.function.emplace(job, configuration, *program, snapshot);
    host_time::ProgramScope host(host_time::Block::kComputePrograms, "compute", configuration.code);
    const uint64_t before = resident.thread->instructions;
    const qpu::Stop stop = station.function->run_stretches(resident, budget);
    host.executed(resident.thread->instructions - before);
    return stop;
  };
  engine.went_without = [&](uint32_t batches) { program->count_batches(batches); };
  engine.place = [&](const qpu::Thread& thread) { return pc_text(*program, thread); };
  if (job.watch && job.watch->tells_clocks())
    engine.clocks = [&](const qpu::Thread& thread) { return job.watch->clocks(thread); };
  const Outcome outcome = schedule(job, configuration, one_supergroup_at_a_time, engine);
  for (Station& station : stations) {
    station.series.end();
    if (station.function) program->count_compiled(station.function->executed());
  }

  perf::Counts counts;
  counts[perf::kQpuActive] = outcome.instructions;
  job.counts->merge(counts);
  return outcome.complete;
}

}  // namespace v3d::csd
