#include "gpu/ptb/draw_splitter.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_format.h"

namespace v3d::ptb {

namespace {

/// Triangles for which a list pays.
constexpr uint32_t kLeastList = kLanes;
constexpr uint32_t kMinKnown = 1 << 8, kMaxKnown = 1 << 14;
/// Words that the geometry programs of one piece may write.
constexpr uint32_t kGeometryWords = 4 << 20;

template <typename T>
void widen(const uint8_t* from, uint32_t count, uint32_t* out) {
  for (uint32_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    out[i] = value;
  }
}

/// Input primitives of a piece with a geometry shader: what they may emit is bounded, whatever the program.
uint32_t max_geometry_inputs(const draw::ShaderRecord& record) {
  const uint32_t rows = std::max({record.gs_bin_rows, record.gs_render_rows, uint16_t{1}});
  const uint32_t words = rows * std::max<uint32_t>(record.gs_invocations, 1);
  return std::clamp<uint32_t>(kGeometryWords / words, kLanes, 4096);
}

}  // namespace

DrawSplitter::DrawSplitter(const JobContext& job) : job_(job) {}

/// Large enough for the draw: without an index buffer, vertices come back only to close a loop or a seam.
void DrawSplitter::make_known_table() {
  const uint32_t wanted = call_.indexed ? std::bit_ceil(std::min(call_.count, kMaxKnown)) : 0;
  const uint32_t size = std::max(wanted, kMinKnown);
  if (known_.size() < size) known_.resize(size);
}

bool DrawSplitter::spend(uint64_t vertices) {
  if (vertices <= vertices_left_) {
    vertices_left_ -= vertices;
    return true;
  }
  job_.error->set_hang(absl::StrFormat("the draws of a bin job read more than %d vertices", kMaxJobVertices));
  return false;
}

/// What a new piece has of the draw.
void DrawSplitter::describe(draw::Draw& piece) const {
  piece.state = state_;
  piece.call = call_;
  piece.record = record_;
  piece.vertices_per_primitive = topology_.vertices;
  piece.gs_input_vertices = record_->has_gs ? topology_.inputs : 0;
}

void DrawSplitter::start_piece() {
  piece_ = draw::Draw();
  describe(piece_);
  const uint64_t elements = uint64_t{call_.count} * call_.instances;
  if (!record_->has_gs)
    piece_.primitives.reserve(std::min<uint64_t>(elements / topology_.vertices, kPiecePrimitives));
  ++epoch_;
}

void DrawSplitter::finish_piece(const Consume& consume) {
  if (!piece_.primitives.empty() || !piece_.gs_primitive_ids.empty()) consume(std::move(piece_));
  start_piece();
}

bool DrawSplitter::piece_full() const {
  // One more vertex may complete two primitives.
  return piece_.vertices.size() >= kPieceVertices ||
         piece_.primitives.size() + piece_.gs_primitive_ids.size() + 2 > max_primitives_;
}

/// Index values of elements first.. of the draw. Reads beyond the index buffer give 0.
void DrawSplitter::read_indices(uint32_t first, uint32_t count, uint32_t* out) const {
  const uint64_t begin = uint64_t{call_.index_offset} + uint64_t{first} * call_.index_size;
  const uint64_t available =
      begin < call_.index_buffer_size ? (call_.index_buffer_size - begin) / call_.index_size : 0;
  const auto inside = static_cast<uint32_t>(std::min<uint64_t>(count, available));
  const uint8_t* from = job_.memory.host(call_.index_buffer + static_cast<uint32_t>(begin));
  if (inside > 0) {
    call_.index_size == 1   ? widen<uint8_t>(from, inside, out)
    : call_.index_size == 2 ? widen<uint16_t>(from, inside, out)
                            : widen<uint32_t>(from, inside, out);
  }
  std::fill(out + inside, out + count, 0);
}

uint32_t DrawSplitter::position_of(uint32_t index) {
  Known& known = known_[index & (known_.size() - 1)];
  if (known.epoch == epoch_ && known.index == index) return known.position;
  const auto position = static_cast<uint32_t>(piece_.vertices.size());
  piece_.vertices.push_back({.index = index, .instance = instance_});
  known = {.index = index, .position = position, .epoch = epoch_};
  return position;
}

void DrawSplitter::append(const Element* inputs, uint32_t provoking) {
  const uint32_t id = primitive_id_++;
  if (record_->has_gs) {
    for (uint32_t i = 0; i < topology_.inputs; ++i) piece_.gs_input.push_back(inputs[i].position);
    piece_.gs_primitive_ids.push_back(id);
    return;
  }
  draw::Primitive& p = piece_.primitives.emplace_back();
  const Element* real = inputs + real_first_;
  p.vertex[0] = real[0].position;
  p.vertex[1] = topology_.vertices > 1 ? real[real_step_].position : real[0].position;
  p.vertex[2] = topology_.vertices > 2 ? real[2 * real_step_].position : real[0].position;
  p.provoking = inputs[provoking].position;
  p.primitive_id = id;
}

/// Triangles that share no vertices but by their indices: most draws of programs, done without the assembler.
bool DrawSplitter::is_triangle_list() const {
  return call_.mode == Mode::kTriangles && !record_->has_gs && !(call_.indexed && call_.restart);
}

void DrawSplitter::append_triangle(uint32_t a, uint32_t b, uint32_t c) {
  piece_.primitives.push_back({.vertex = {a, b, c},
                               .provoking = state_.cfg.provoking_first ? a : c,
                               .primitive_id = primitive_id_++});
}

/// The pieces of run_triangle_list(), by their numbers alone.
void DrawSplitter::hand_out_list(const ConsumeList& consume) {
  constexpr uint32_t kMost = kPieceVertices / 3;
  const uint32_t triangles = call_.count / 3;
  for (uint32_t done = 0, count = 0; done < triangles && !job_.stopped(); done += count) {
    count = std::min(triangles - done, kMost);
    draw::Draw piece;
    describe(piece);
    consume(std::move(piece), {.first_vertex = call_.first_vertex + 3 * done,
                               .instance = call_.first_instance,
                               .count = count,
                               .first_id = done});
  }
}

void DrawSplitter::run_triangle_list(const Consume& consume) {
  uint32_t index = call_.first_vertex;
  for (uint32_t left = call_.count / 3; left > 0 && !job_.stopped();) {
    const size_t begin = piece_.vertices.size();
    const size_t room =
        std::min((kPieceVertices - begin) / 3, size_t{max_primitives_} - piece_.primitives.size());
    if (room == 0) {
      finish_piece(consume);
      continue;
    }
    const auto count = static_cast<uint32_t>(std::min<size_t>(left, room));
    piece_.vertices.resize(begin + size_t{count} * 3);
    for (size_t i = begin; i < piece_.vertices.size(); ++i) piece_.vertices[i] = {index++, instance_};
    auto position = static_cast<uint32_t>(begin);
    for (uint32_t i = 0; i < count; ++i, position += 3) append_triangle(position, position + 1, position + 2);
    left -= count;
  }
}

void DrawSplitter::run_indexed_triangle_list(const Consume& consume) {
  constexpr uint32_t kBlock = 3 * 256;
  uint32_t indices[kBlock];
  const auto position = [&](uint32_t i) {
    return position_of(indices[i] + static_cast<uint32_t>(call_.base_vertex));
  };
  const uint32_t count = call_.count / 3 * 3;
  for (uint32_t first = 0, part = 0; first < count && !job_.stopped(); first += part) {
    part = std::min(kBlock, count - first);
    read_indices(first, part, indices);
    for (uint32_t i = 0; i < part; i += 3) {
      if (piece_.vertices.size() + 3 > kPieceVertices || piece_.primitives.size() == max_primitives_)
        finish_piece(consume);
      const uint32_t a = position(i), b = position(i + 1);
      append_triangle(a, b, position(i + 2));
    }
  }
}

void DrawSplitter::run_instance(uint32_t instance, const Consume& consume) {
  constexpr uint32_t kBlock = 1024;
  uint32_t indices[kBlock];
  instance_ = instance;
  primitive_id_ = 0;
  ++epoch_;
  if (is_triangle_list()) {
    call_.indexed ? run_indexed_triangle_list(consume) : run_triangle_list(consume);
    return;
  }
  const uint32_t restart_index = call_.index_size == 4 ? ~0u : (1u << (8 * call_.index_size)) - 1;
  const bool restart = call_.indexed && call_.restart;
  const auto emit = [this](const Element* inputs, uint32_t provoking) { append(inputs, provoking); };
  PrimitiveAssembler assembler(call_.mode, state_.cfg.provoking_first);
  const auto make_room = [&] {
    if (!piece_full()) return;
    finish_piece(consume);
    assembler.for_each_pending([this](Element& e) { e.position = position_of(e.index); });
  };
  for (uint32_t first = 0; first < call_.count && !job_.stopped(); first += kBlock) {
    const uint32_t count = std::min(kBlock, call_.count - first);
    if (call_.indexed) read_indices(first, count, indices);
    for (uint32_t i = 0; i < count; ++i) {
      make_room();
      if (restart && indices[i] == restart_index) {
        assembler.finish(emit);
        continue;
      }
      const uint32_t index = call_.indexed ? indices[i] + static_cast<uint32_t>(call_.base_vertex)
                                           : call_.first_vertex + first + i;
      assembler.feed({index, position_of(index)}, emit);
    }
    if (call_.count - first <= kBlock) break;  // first + kBlock may wrap
  }
  make_room();
  assembler.finish(emit);
}

void DrawSplitter::split(const draw::DrawState& state, const draw::DrawCall& call,
                         std::shared_ptr<const draw::ShaderRecord> record, const Consume& consume,
                         const ConsumeList& consume_list) {
  topology_ = topology(call.mode);
  if (call.count == 0 || call.instances == 0) return;
  if (!spend(uint64_t{call.count} * call.instances)) return;
  state_ = state;
  call_ = call;
  record_ = std::move(record);
  // With adjacency the real vertices are 1, 2 of a line and 0, 2, 4 of a triangle.
  const bool adjacency = topology_.inputs != topology_.vertices;
  real_first_ = adjacency && topology_.vertices == 2 ? 1 : 0;
  real_step_ = adjacency && topology_.vertices == 3 ? 2 : 1;
  max_primitives_ = record_->has_gs ? max_geometry_inputs(*record_) : kPiecePrimitives;
  if (consume_list && is_triangle_list() && !call.indexed && call.instances == 1 &&
      call.count >= 3 * kLeastList)
    return hand_out_list(consume_list);
  make_known_table();
  start_piece();
  for (uint32_t instance = 0; instance < call.instances && !job_.stopped(); ++instance)
    run_instance(call.first_instance + instance, consume);
  if (!job_.stopped()) finish_piece(consume);
  piece_ = draw::Draw();
}

}  // namespace v3d::ptb
