#include "gpu/vpm/vertex_shading.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "gpu/perf/counters.h"
#include "gpu/vpm/attribute_fetch.h"
#include "gpu/vpm/geometry_shading.h"
#include "gpu/vpm/stage_runner.h"

namespace v3d::vpm {

struct VertexStages::State {
  explicit State(const JobContext& j) : job(j), workers(static_cast<size_t>(j.pool->concurrency())) {}

  const JobContext job;
  std::vector<Worker> workers;
  std::unordered_map<GpuAddr, std::shared_ptr<const qpu::Program>> programs;

  StageProgram program(const char* stage, const draw::ShaderCode& code);
  ShadedVertices run_vertices(const draw::Draw& draw, Phase phase);
  void merge_counts();
};

StageProgram VertexStages::State::program(const char* stage, const draw::ShaderCode& code) {
  auto& cached = programs[code.code];
  if (!cached) cached = job.programs->get(job.memory, code.code);
  return {stage, cached, code};
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
  uint32_t index[kLanes], instance[kLanes];
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    index[lane] = from[lane].index;
    instance[lane] = from[lane].instance;
  }
  BatchRefs refs;
  std::memcpy(&refs.index, index, sizeof(index));
  std::memcpy(&refs.instance, instance, sizeof(instance));
  refs.base_instance = draw.call.base_instance;
  refs.base_vertex = static_cast<uint32_t>(draw.call.base_vertex);
  refs.draw_index = draw.call.draw_index;
  return refs;
}

ShadedVertices VertexStages::State::run_vertices(const draw::Draw& draw, Phase phase) {
  const bool coordinate = phase == Phase::kBin;
  const draw::ShaderRecord& record = *draw.record;
  ShadedVertices out;
  out.rows = 8u * (coordinate ? record.cs_output_sectors : record.vs_output_sectors);
  out.count = static_cast<uint32_t>(draw.vertices.size());
  const uint32_t batches = (out.count + kLanes - 1) / kLanes;
  out.data.resize(size_t{batches} * out.rows);

  const AttributeFetcher fetcher(record, coordinate);
  if (!fetcher.error().empty()) {
    job.error->set(fetcher.error());
    return out;
  }
  const StageProgram stage = coordinate ? program("coordinate", record.cs) : program("vertex", record.vs);
  for_each_batch(job, batches, [&](uint32_t batch, int slot) {
    Worker& worker = workers[static_cast<size_t>(slot)];
    worker.input.resize(std::max<size_t>(worker.input.size(), fetcher.rows()));
    fetcher.fetch(job.memory, batch_refs(draw, batch), worker.input.data());
    start_thread(job, stage, slot, batch_lanes(batch, out.count), &worker);
    worker.thread.vpm_in = worker.input.data();
    worker.thread.vpm_in_rows = fetcher.rows();
    worker.thread.vpm_out = out.data.data() + size_t{batch} * out.rows;
    worker.thread.vpm_out_rows = out.rows;
    finish_thread(job, stage, &worker);
  });
  return out;
}

void VertexStages::State::merge_counts() {
  perf::Counts counts;
  for (Worker& w : workers) {
    counts[perf::kQpuActive] += w.instructions;
    w.instructions = 0;
  }
  job.counts->merge(counts);
}

VertexStages::VertexStages(const JobContext& job) : state_(std::make_unique<State>(job)) {}
VertexStages::~VertexStages() = default;

ShadedVertices VertexStages::shade(const draw::Draw& draw, Phase phase) {
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

ShadedVertices shade(const JobContext& job, const draw::Draw& draw, Phase phase) {
  return VertexStages(job).shade(draw, phase);
}

}  // namespace v3d::vpm
