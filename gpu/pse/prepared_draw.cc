#include "gpu/pse/prepared_draw.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <unordered_map>

#include "absl/strings/str_format.h"
#include "gpu/base/host_time.h"
#include "gpu/base/rows.h"
#include "gpu/base/work_meter.h"
#include "gpu/base/work_watch.h"
#include "gpu/chip/profile.h"
#include "gpu/draw/host_key.h"
#include "gpu/pse/hidden_entries.h"
#include "gpu/ptb/screen.h"

namespace v3d::pse {
namespace {

/// Rows of a shaded vertex in front of its varyings (cle-and-tiles.md 3.3).
enum Row : uint32_t { kRowX = 0, kRowY = 1, kRowFirstFree = 4 };

constexpr uint8_t kGsTriangleStrip = 2;

/// Implicit components that the record lets through. The programs are compiled for the topology of the draw,
/// also when a geometry shader changes it (Mesa v3dv_pipeline.c, pipeline_populate_v3d_fs_key).
uint32_t implicit_position_components(const draw::Draw& draw) {
  if (draw.record->no_implicit_varyings) return 0;
  switch (draw::topology(draw.call.mode).vertices) {
    case 1:
      return 2;
    case 2:
      return 1;
    default:
      return 0;
  }
}

/// What the vertex stages hand over are triangles, whatever is made of them.
bool made_of_triangles(const draw::Draw& draw) {
  if (draw.record->has_gs) return draw.record->gs_output == kGsTriangleStrip;
  return draw::topology(draw.call.mode).vertices == 3;
}

/// Turns rows of 16 vertices side by side into one vertex after the other. Rows that are missing are 0.
void transpose(const Lanes* from, uint32_t rows, const ptb::ScreenTransform& screen, uint32_t group,
               PreparedDraw& prepared) {
  const uint32_t first = group * kLanes;
  const uint32_t count = std::min<uint32_t>(kLanes, prepared.num_vertices - first);
  uint32_t* const to = prepared.vertices.data() + size_t{first} * prepared.stride;
  for (uint32_t row = 0; row < prepared.stride; row += 4) {
    Lanes four[4] = {};
    if (row < rows) std::copy_n(from + row, std::min(rows - row, 4u), four);
    if (row == kRowX) {
      four[kRowX] = as_uint(screen.x(as_int(four[kRowX])));
      four[kRowY] = as_uint(screen.y(as_int(four[kRowY])));
    }
    Lanes vertices[4];  // each fourth one
    transpose_quads(four, vertices);
    const auto place = [&](size_t i) {
      std::memcpy(to + i * prepared.stride + row,
                  reinterpret_cast<const char*>(&vertices[i % 4]) + i / 4 * 16, 16);
    };
    if (count == kLanes) {
#pragma GCC unroll 16
      for (size_t i = 0; i < kLanes; ++i) place(i);
    } else {
      for (size_t i = 0; i < count; ++i) place(i);
    }
  }
}

void set_varyings(PreparedDraw& p) {
  const draw::ShaderRecord& record = p.record();
  const draw::DrawState& state = p.state();
  p.num_varyings = record.num_varyings;
  p.first_varying = kRowFirstFree + (record.point_size_in_vertices ? 1 : 0);
  p.primitive_id = record.primitive_id_varying;
  p.implicit_position = implicit_position_components(*p.draw);
  for (uint32_t i = 0; i < p.num_varyings; ++i) {
    const auto bit = static_cast<LaneMask>(1u << (i % 16));
    const uint32_t component = p.num_implicit() + i;
    if (state.flat.test(i)) {
      p.flat[i / 16] |= bit;
      p.is_flat[component] = true;
      continue;
    }
    if (state.noperspective.test(i)) p.noperspective[i / 16] |= bit;
    if (state.centroid.test(i)) p.is_centroid[component] = p.any_centroid = true;
  }
  if (p.primitive_id) p.is_flat[0] = true;
}

/// @param bytes  what the vertices take is added
void shade_vertices(const JobContext& job, vpm::VertexStages& stages, uint32_t number, PreparedDraw& p,
                    uint64_t& bytes) {
  const ptb::ScreenTransform screen(p.state(), ptb::view_rules(*job.profile));
  p.stride = (p.first_varying + p.num_varyings + 3) & ~3u;
  if (job.work)
    job.work->begin_vertices(number, static_cast<uint32_t>(p.draw->vertices.size()),
                             static_cast<uint32_t>(p.draw->primitives.size()));
  stages.shade(*p.draw, vpm::Phase::kRender,
               {.begin =
                    [&](uint32_t count) {
                      p.num_vertices = count;
                      const size_t words = size_t{count} * p.stride;
                      // Threads of a job that has an error shade nothing more.
                      if (job.take_memory(words * sizeof(uint32_t))) bytes += words * sizeof(uint32_t);
                      p.vertices.resize(words + kLanes);
                      std::fill_n(p.vertices.begin() + static_cast<std::ptrdiff_t>(words), kLanes, 0u);
                    },
                .take = [&p, &screen](uint32_t group, const Lanes* data,
                                      uint32_t rows) { transpose(data, rows, screen, group, p); }});
}

std::vector<bool> listed_draws(const JobContext& job, const draw::BinResult& bin) {
  std::vector<bool> listed(bin.draws.size(), false);
  WorkMeter meter(&job);
  constexpr size_t kPiece = 65536;  // entries, eight of which are a unit of work
  for (const std::vector<draw::ListEntry>& list : bin.tiles) {
    uint32_t previous = std::numeric_limits<uint32_t>::max();
    for (size_t first = 0; first < std::max<size_t>(1, list.size()); first += kPiece) {
      const std::span piece = std::span(list).subspan(first, std::min(kPiece, list.size() - first));
      if (!meter.charge(static_cast<uint32_t>(1 + piece.size() / 8))) return listed;
      for (const draw::ListEntry& entry : piece) {
        if (entry.draw == previous) continue;
        previous = entry.draw;
        listed[entry.draw] = true;
      }
    }
  }
  return listed;
}

/// By address.
using Vc4Programs = std::unordered_map<GpuAddr, std::shared_ptr<const qpu::vc4::Program>>;

/// False, with job.error set, when the draw cannot be executed.
bool prepare_draw(const JobContext& job, vpm::VertexStages& stages, Vc4Programs& vc4_programs,
                  const draw::Draw& draw, uint32_t number, const tlb::Config& config, PreparedDraw& p,
                  uint64_t& bytes) {
  p.draw = &draw;
  const draw::ShaderRecord& record = *draw.record;
  if (record.num_varyings > kMaxVaryings) {
    job.error->set(absl::StrFormat("shader record at 0x%08x: %d varyings, at most %d are possible",
                                   draw.state.shader_record, record.num_varyings, kMaxVaryings));
    return false;
  }
  set_varyings(p);
  p.outlines = draw.vertices_per_primitive < 3 && made_of_triangles(draw);
  p.early_test = !record.fs_writes_z || !record.early_z_off;
  p.four_samples = config.multisample && draw.state.cfg.oversample != 0;
  p.sample_shading = config.multisample && record.sample_shading;
  p.multisample = config.multisample;
  if (record.packed_positions) {
    std::shared_ptr<const qpu::vc4::Program>& cached = vc4_programs[record.fs.code];
    if (cached == nullptr) cached = job.programs->get_vc4(job.memory, record.fs.code);
    p.vc4_program = cached;
  } else {
    p.program = job.programs->get(job.memory, record.fs.code);
  }
  if (p.program == nullptr && p.vc4_program == nullptr) {
    job.error->set(absl::StrFormat("no fragment program at 0x%08x", record.fs.code));
    return false;
  }
  const host_time::DrawScope of(host_time::DrawScope::Phase::kRender, draw::host_key(record, draw.call));
  shade_vertices(job, stages, number, p, bytes);
  return !job.stopped();
}

}  // namespace

PreparedDraws::State::State() = default;
PreparedDraws::State::~State() = default;

PreparedDraws::PreparedDraws(const JobContext& job, const draw::BinResult& bin, const tlb::Config& config)
    : job_(job), state_(std::make_unique<State>()) {
  state_->config = config;
  state_->draws.resize(bin.draws.size());
  vpm::VertexStages stages(job);
  Vc4Programs vc4_programs;
  const std::vector<bool> listed = listed_draws(job, bin);
  for (size_t i = 0; i < bin.draws.size(); ++i)
    if (listed[i] && !prepare_draw(job, stages, vc4_programs, bin.draws[i], static_cast<uint32_t>(i), config,
                                   state_->draws[i], state_->bytes))
      return;
  state_->hidden = HiddenEntries::create(job, state_->config, state_->draws);
}

PreparedDraws::~PreparedDraws() {
  if (job_.control) job_.control->return_memory(state_->bytes);
}

}  // namespace v3d::pse
