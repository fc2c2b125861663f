#include "gpu/vpm/geometry_shading.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace v3d::vpm {

namespace {

/// Header word 0 of a lane, and the words of each emitted vertex.
struct OutputHeader {
  uint32_t size, vertices;
  explicit OutputHeader(uint32_t word) : size(word & 0xffff), vertices(word >> 16) {}
};
struct VertexHeader {
  bool strip_start;
  uint8_t length, layer;
  explicit VertexHeader(uint32_t word)
      : strip_start((word & 1) != 0),
        length(static_cast<uint8_t>(word >> 8)),
        layer(static_cast<uint8_t>(word >> 16)) {}
};

class GeometryStage {
 public:
  GeometryStage(const JobContext& job, const StageProgram& stage, const draw::Draw& draw, Phase phase,
                const ShadedVertices& inputs, std::vector<Worker>* workers)
      : job_(job),
        stage_(stage),
        draw_(draw),
        inputs_(inputs),
        workers_(*workers),
        segment_rows_(phase == Phase::kBin ? draw.record->gs_bin_rows : draw.record->gs_render_rows),
        invocations_(std::max<uint32_t>(draw.record->gs_invocations, 1)),
        items_(static_cast<uint32_t>(draw.gs_primitive_ids.size()) * invocations_) {}

  ShadedVertices run();

 private:
  void run_batch(uint32_t batch, int slot, Lanes* segment);
  void load_inputs(uint32_t batch, Worker* worker);
  bool append_lane(const Lanes* segment, int lane);
  bool append_vertex(const Lanes* segment, int lane, uint32_t first_row, const VertexHeader& header);

  const JobContext& job_;
  const StageProgram& stage_;
  const draw::Draw& draw_;
  const ShadedVertices& inputs_;
  std::vector<Worker>& workers_;
  const uint32_t segment_rows_, invocations_, items_;
  ShadedVertices out_;
};

/// Batches run in groups, side by side; their vertices are then taken over in order.
ShadedVertices GeometryStage::run() {
  constexpr uint32_t kSegmentBytes = 8 << 20;
  const uint32_t batches = (items_ + kLanes - 1) / kLanes;
  const uint32_t group = std::clamp<uint32_t>(
      kSegmentBytes / std::max<uint32_t>(segment_rows_ * sizeof(Lanes), 1), 1, std::max(batches, 1u));
  RawVector<Lanes> segments(size_t{group} * segment_rows_);
  for (uint32_t first = 0; first < batches && !job_.stopped(); first += group) {
    const uint32_t count = std::min(group, batches - first);
    std::fill(segments.begin(), segments.end(), Lanes{});
    for_each_batch(job_, count, [&](uint32_t b, int slot) {
      run_batch(first + b, slot, segments.data() + size_t{b} * segment_rows_);
    });
    for (uint32_t b = 0; b < count && !job_.stopped(); ++b) {
      const uint32_t lanes = std::min<uint32_t>(kLanes, items_ - (first + b) * kLanes);
      for (uint32_t lane = 0; lane < lanes; ++lane)
        if (!append_lane(segments.data() + size_t{b} * segment_rows_, static_cast<int>(lane))) return out_;
    }
  }
  return std::move(out_);
}

void GeometryStage::run_batch(uint32_t batch, int slot, Lanes* segment) {
  Worker& worker = workers_[static_cast<size_t>(slot)];
  start_thread(job_, stage_, slot, batch_lanes(batch, items_), &worker);
  load_inputs(batch, &worker);
  worker.thread.vpm_out = segment;
  worker.thread.vpm_out_rows = segment_rows_;
  finish_thread(job_, stage_, &worker);
}

/// Rows of the input primitives' vertices, the primitive id in row 0 of the header, the invocation.
void GeometryStage::load_inputs(uint32_t batch, Worker* worker) {
  const uint32_t per_primitive = draw_.gs_input_vertices, rows = inputs_.rows;
  worker->input.resize(std::max<size_t>(worker->input.size(), size_t{per_primitive} * rows + 1), Lanes{});
  Lanes* const in = worker->input.data();
  Lanes& primitive_id = in[per_primitive * rows];
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t item = std::min(batch * kLanes + lane, items_ - 1);
    const uint32_t primitive = item / invocations_;
    worker->thread.gs_invocation[lane] = item % invocations_;
    primitive_id[lane] = draw_.gs_primitive_ids[primitive];
    for (uint32_t v = 0; v < per_primitive; ++v) {
      const uint32_t vertex = draw_.gs_input[primitive * per_primitive + v];
      const Lanes* source = inputs_.data.data() + size_t{vertex / kLanes} * rows;
      for (uint32_t r = 0; r < rows; ++r) in[v * rows + r][lane] = source[r][vertex % kLanes];
    }
  }
  qpu::Thread& t = worker->thread;
  t.gs_in = in;
  t.gs_in_rows = rows;
  t.gs_in_vertices = per_primitive;
  t.vpm_in = &primitive_id;
  t.vpm_in_rows = draw_.record->reads_primitive_id ? 1 : 0;
}

bool GeometryStage::append_lane(const Lanes* segment, int lane) {
  out_.emitted.push_back(0);
  if (segment_rows_ == 0) return true;
  const OutputHeader header(segment[0][lane]);
  uint32_t row = header.size;
  for (uint32_t i = 0; i < header.vertices; ++i) {
    if (1 + i >= segment_rows_) {
      job_.error->set(absl::StrFormat("geometry program at 0x%08x emits %d vertices into %d rows",
                                      stage_.code.code, header.vertices, segment_rows_));
      return false;
    }
    const VertexHeader vertex(segment[1 + i][lane]);
    if (!append_vertex(segment, lane, row, vertex)) return false;
    row += vertex.length;
    ++out_.emitted.back();
  }
  return true;
}

bool GeometryStage::append_vertex(const Lanes* segment, int lane, uint32_t first_row,
                                  const VertexHeader& header) {
  if (out_.count == 0) out_.rows = header.length;
  // All vertices of a program have one length (Mesa v3d_nir_lower_io.c, reset_gs_header); it bounds the
  // memory.
  if (header.length != out_.rows || first_row + header.length > segment_rows_) {
    job_.error->set(absl::StrFormat(
        "geometry program at 0x%08x: vertex of %d words at row %d, segment of %d rows, vertices of %d words",
        stage_.code.code, header.length, first_row, segment_rows_, out_.rows));
    return false;
  }
  const uint32_t vertex = out_.count++;
  if (vertex % kLanes == 0) out_.data.resize(out_.data.size() + out_.rows, Lanes{});
  Lanes* rows = out_.data.data() + size_t{vertex / kLanes} * out_.rows;
  for (uint32_t r = 0; r < out_.rows; ++r) rows[r][vertex % kLanes] = segment[first_row + r][lane];
  out_.strip_start.push_back(header.strip_start);
  out_.layer.push_back(header.layer);
  return true;
}

}  // namespace

ShadedVertices run_geometry(const JobContext& job, const StageProgram& stage, const draw::Draw& draw,
                            Phase phase, const ShadedVertices& inputs, std::vector<Worker>* workers) {
  return GeometryStage(job, stage, draw, phase, inputs, workers).run();
}

}  // namespace v3d::vpm
