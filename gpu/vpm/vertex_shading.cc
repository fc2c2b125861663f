#include "gpu/vpm/vertex_shading.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "gpu/base/host_time.h"
#include "gpu/base/pairs.h"
#include "gpu/chip/profile.h"
#include "gpu/draw/host_key.h"
#include "gpu/perf/counters.h"
#include "gpu/vpm/geometry_shading.h"
#include "gpu/vpm/packed_positions.h"
#include "gpu/vpm/stage_runner.h"
#include "gpu/vpm/vc4_stage.h"
#include "gpu/vpm/vertex_function.h"

namespace v3d::vpm {

struct VertexStages::State {
  /// The stage of a draw that runs batches.
  struct Stage {
    const draw::ShaderRecord& record;
    const draw::DrawCall& call;
    const Phase phase;
    const AttributeFetcher fetcher;
    const uint32_t rows;
    StageProgram program;  ///< of V3D
    Vc4Stage vc4;          ///< or of VideoCore IV
    bool has_function = false;
  };

  explicit State(const JobContext& j) : job(j) {}

  const JobContext job;
  std::vector<Worker> workers;   // made for the first vertices
  std::optional<Stage> current;  // of the draw that has begun
  VertexFunction function;       // of it, if it has one
  std::unordered_map<GpuAddr, std::shared_ptr<const qpu::Program>> programs;
  std::unordered_map<GpuAddr, std::shared_ptr<const qpu::vc4::Program>> vc4_programs;

  StageProgram program(const char* stage, const draw::ShaderCode& code);
  Vc4Stage vc4_stage(const char* name, const draw::ShaderCode& code);
  Vc4StageRunner& vc4_runner(Worker& worker) const;
  static uint32_t rows_of(const draw::Draw& draw, Phase phase);
  std::optional<uint32_t> begin(const draw::Draw& draw, Phase phase);
  void run(const BatchRefs& refs, LaneMask live, int slot, Lanes* out);
  void end(uint32_t batches);
  template <typename Segment, typename Done>
  void run_batches(const draw::Draw& draw, Phase phase, const Segment& segment, const Done& done);
  void run_thread(const StageProgram& stage, int slot, LaneMask live, uint32_t rows_in, Lanes* out,
                  uint32_t rows_out);
  void count_batches(const qpu::Program& program, uint32_t batches);
  ShadedVertices run_vertices(const draw::Draw& draw, Phase phase);
  void merge_counts();
};

StageProgram VertexStages::State::program(const char* stage, const draw::ShaderCode& code) {
  auto& cached = programs[code.code];
  if (!cached) cached = job.programs->get(job.memory, code.code);
  return {stage, cached, code};
}

Vc4Stage VertexStages::State::vc4_stage(const char* name, const draw::ShaderCode& code) {
  std::shared_ptr<const qpu::vc4::Program>& cached = vc4_programs[code.code];
  if (!cached) cached = job.programs->get_vc4(job.memory, code.code);
  return {name, cached.get(), code};
}

Vc4StageRunner& VertexStages::State::vc4_runner(Worker& worker) const {
  if (!worker.vc4) {
    worker.tmu = std::make_unique<tmu::Unit>(job.memory, job.profile->generation);
    worker.tmu->set_job(&job);
    worker.vc4 = std::make_unique<Vc4StageRunner>(*worker.tmu);
  }
  return *worker.vc4;
}

/// Element numbers of a batch; lanes past the end repeat the last vertex.
static BatchRefs batch_refs(const draw::Draw& draw, uint32_t batch) {
  const draw::VertexRef* from = &draw.vertices[size_t{batch} * kLanes];
  const size_t left = draw.vertices.size() - size_t{batch} * kLanes;
  draw::VertexRef padded[kLanes];
  if (left < kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) padded[lane] = from[std::min(lane, left - 1)];
    from = padded;
  }
  static_assert(sizeof(padded) == 2 * sizeof(Lanes) && offsetof(draw::VertexRef, instance) == 4);
  Lanes pairs[2];
  std::memcpy(pairs, from, sizeof(pairs));
  return batch_refs(draw.call, first_of_pairs(pairs[0], pairs[1]), second_of_pairs(pairs[0], pairs[1]));
}

uint32_t VertexStages::State::rows_of(const draw::Draw& draw, Phase phase) {
  const draw::ShaderRecord& record = *draw.record;
  if (record.packed_positions) return rows_with_positions(record, phase == Phase::kBin);
  return 8u * (phase == Phase::kBin ? record.cs_output_sectors : record.vs_output_sectors);
}

/// One batch by the interpreter or compiled code. Rows that the program does not write are 0.
void VertexStages::State::run_thread(const StageProgram& stage, int slot, LaneMask live, uint32_t rows_in,
                                     Lanes* out, uint32_t rows_out) {
  Worker& worker = workers[static_cast<size_t>(slot)];
  std::fill_n(out, rows_out, Lanes{});
  start_thread(job, stage, slot, live, &worker);
  worker.thread.vpm_in = worker.input.data();
  worker.thread.vpm_in_rows = rows_in;
  worker.thread.vpm_out = out;
  worker.thread.vpm_out_rows = rows_out;
  finish_thread(job, stage, &worker);
}

/// Behind those of a draw.
void VertexStages::State::count_batches(const qpu::Program& program, uint32_t batches) {
  uint64_t instructions = 0;
  for (Worker& w : workers) {
    instructions += w.in_functions;
    w.instructions += std::exchange(w.in_functions, 0);
  }
  program.count_compiled(instructions);
  if (instructions == 0) program.count_batches(batches);
}

/// VertexStages::begin().
std::optional<uint32_t> VertexStages::State::begin(const draw::Draw& draw, Phase phase) {
  const bool coordinate = phase == Phase::kBin;
  const draw::ShaderRecord& record = *draw.record;
  current.emplace(Stage{.record = record,
                        .call = draw.call,
                        .phase = phase,
                        .fetcher = AttributeFetcher(record, coordinate),
                        .rows = rows_of(draw, phase),
                        .program = {},
                        .vc4 = {}});
  Stage& stage = *current;
  if (!stage.fetcher.error().empty()) {
    job.error->set(stage.fetcher.error());
    current.reset();
    return std::nullopt;
  }
  workers.resize(static_cast<size_t>(job.pool->concurrency()));
  const char* const name = coordinate ? "coordinate" : "vertex";
  const draw::ShaderCode& code = coordinate ? record.cs : record.vs;
  if (record.packed_positions) {
    stage.vc4 = vc4_stage(name, code);
  } else {
    stage.program = program(name, code);
    stage.has_function =
        function.begin(job, stage.program, stage.fetcher.rows(), stage.rows, workers[0].thread);
  }
  return stage.rows;
}

void VertexStages::State::run(const BatchRefs& refs, LaneMask live, int slot, Lanes* out) {
  const Stage& stage = *current;
  const bool coordinate = stage.phase == Phase::kBin;
  const host_time::DrawScope of(
      coordinate ? host_time::DrawScope::Phase::kBin : host_time::DrawScope::Phase::kRender,
      draw::host_key(stage.record, stage.call));
  Worker& worker = workers[static_cast<size_t>(slot)];
  const AttributeFetcher& fetcher = stage.fetcher;
  worker.input.resize(std::max<size_t>(worker.input.size(), fetcher.rows()), Lanes{});
  fetcher.fetch(job.memory, refs, worker.input.data());
  if (job.work) fetcher.show(refs, live, job.work);
  if (stage.has_function) {
    worker.in_functions += function.run(worker.input.data(), out);
  } else if (stage.record.packed_positions) {
    std::fill_n(out, stage.rows, Lanes{});
    const Lanes* const written = vc4_runner(worker).run(job, stage.vc4, worker.input.data(), fetcher.rows());
    unpack_positions(stage.record, coordinate, written, out);
  } else {
    run_thread(stage.program, slot, live, fetcher.rows(), out, stage.rows);
  }
}

void VertexStages::State::end(uint32_t batches) {
  if (!current->record.packed_positions) count_batches(*current->program.program, batches);
  current.reset();
}

/// @param segment  segment(batch, worker): where the batch writes its rows
/// @param done     done(batch, rows): it has
template <typename Segment, typename Done>
void VertexStages::State::run_batches(const draw::Draw& draw, Phase phase, const Segment& segment,
                                      const Done& done) {
  if (!begin(draw, phase)) return;
  const auto count = static_cast<uint32_t>(draw.vertices.size());
  const uint32_t batches = (count + kLanes - 1) / kLanes;
  for_each_batch(job, batches, [&](uint32_t batch, int slot) {
    Lanes* const out = segment(batch, workers[static_cast<size_t>(slot)]);
    run(batch_refs(draw, batch), batch_lanes(batch, count), slot, out);
    done(batch, out);
  });
  end(batches);
}

ShadedVertices VertexStages::State::run_vertices(const draw::Draw& draw, Phase phase) {
  ShadedVertices out;
  out.rows = rows_of(draw, phase);
  out.count = static_cast<uint32_t>(draw.vertices.size());
  out.data.resize(size_t{(out.count + kLanes - 1) / kLanes} * out.rows);
  run_batches(
      draw, phase,
      [&out](uint32_t batch, const Worker&) { return out.data.data() + size_t{batch} * out.rows; },
      [](uint32_t, const Lanes*) {});
  if (job.ended()) std::fill(out.data.begin(), out.data.end(), Lanes{});  // batches may be missing
  return out;
}

void VertexStages::State::merge_counts() {
  perf::Counts counts;
  for (Worker& w : workers) {
    w.end_series();
    counts[perf::kQpuActive] += w.instructions;
    w.instructions = 0;
    if (w.vc4) counts[perf::kQpuActive] += std::exchange(w.vc4->instructions, 0);
  }
  job.counts->merge(counts);
}

VertexStages::VertexStages(const JobContext& job) : state_(std::make_unique<State>(job)) {}
VertexStages::~VertexStages() = default;

ShadedVertices VertexStages::shade(const draw::Draw& draw, Phase phase) {
  const host_time::Scope host(host_time::Block::kVertices);
  if (draw.vertices.empty()) return {};
  ShadedVertices shaded = state_->run_vertices(draw, phase);
  if (draw.record->has_gs && !state_->job.stopped()) {
    const draw::ShaderCode& code = phase == Phase::kBin ? draw.record->gs_bin : draw.record->gs_render;
    const StageProgram stage = state_->program("geometry", code);
    shaded = run_geometry(state_->job, stage, draw, phase, shaded, &state_->workers);
  }
  state_->merge_counts();
  return shaded;
}

void VertexStages::shade(const draw::Draw& draw, Phase phase, const Sink& sink) {
  const host_time::Scope host(host_time::Block::kVertices);
  if (draw.record->has_gs || draw.vertices.empty()) {
    const ShadedVertices shaded = shade(draw, phase);
    sink.begin(shaded.count);
    for_each_batch(state_->job, (shaded.count + kLanes - 1) / kLanes, [&](uint32_t group, int) {
      sink.take(group, shaded.data.data() + size_t{group} * shaded.rows, shaded.rows);
    });
    return;
  }
  const uint32_t rows = State::rows_of(draw, phase);
  sink.begin(static_cast<uint32_t>(draw.vertices.size()));
  state_->run_batches(
      draw, phase,
      [rows](uint32_t, Worker& worker) {
        worker.output.resize(rows);
        return worker.output.data();
      },
      [&](uint32_t batch, const Lanes* data) { sink.take(batch, data, rows); });
  state_->merge_counts();
}

std::optional<uint32_t> VertexStages::begin(const draw::Draw& draw, Phase phase) {
  return state_->begin(draw, phase);
}
void VertexStages::run(const BatchRefs& refs, LaneMask live, int slot, Lanes* out) {
  state_->run(refs, live, slot, out);
}
void VertexStages::end(uint32_t batches) {
  state_->end(batches);
  state_->merge_counts();
}

ShadedVertices shade(const JobContext& job, const draw::Draw& draw, Phase phase) {
  return VertexStages(job).shade(draw, phase);
}

}  // namespace v3d::vpm
