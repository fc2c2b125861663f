#include "tools/inspect/vertex_table.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gpu/ptb/screen.h"
#include "gpu/vpm/attribute_fetch.h"

namespace v3d::inspect {
namespace {

/// Rows of shaded vertices (cle-and-tiles.md 3.3).
constexpr uint32_t kClipRow = 0, kScreenRow = 0, kDepthRow = 2, kReciprocalRow = 3, kFirstFreeRow = 4;
constexpr uint32_t kMostVaryings = 64;
constexpr uint32_t kMostRawRows = 64;

std::string format_of(const draw::Attribute& a, bool is_raw) {
  if (is_raw) return absl::StrFormat("%d bytes as they are", std::max(a.cs_bytes, a.vs_bytes));
  constexpr const char* kTypes[] = {"?",    "half",  "float", "16.16 fixed point",
                                    "byte", "short", "int",   "2_10_10_10"};
  const bool is_float = a.type < 4;
  std::string text = absl::StrCat(a.vec_size, " x ",
                                  is_float      ? ""
                                  : a.is_signed ? "signed "
                                                : "unsigned ",
                                  kTypes[a.type & 7]);
  if (a.type == 7) text = absl::StrCat(a.is_signed ? "signed " : "unsigned ", kTypes[7]);
  if (!is_float)
    text += a.read_as_int ? "" : a.normalized ? a.is_signed ? ", -1 to 1" : ", 0 to 1" : ", as floats";
  return text;
}

/// The record as if one attribute were all that it has, whole and in front, and read by the vertex program.
draw::ShaderRecord record_of(const draw::ShaderRecord& record, uint32_t number) {
  draw::ShaderRecord one = record;
  one.vs_vertex_id = one.vs_instance_id = one.vs_base_instance = false;
  one.vs_base_vertex = one.vs_draw_index = false;
  one.num_attributes = 1;
  draw::Attribute& a = one.attributes[0] = record.attributes[number];
  a.vs_words = a.vec_size;
  a.vs_bytes = std::min<uint16_t>(std::max(a.cs_bytes, a.vs_bytes), kMostRawRows * 4);
  a.vs_offset = 0;
  if (one.default_attributes != 0) one.default_attributes += 16 * number;
  return one;
}

bool is_read(const draw::Attribute& a, bool is_raw, bool by_coordinate) {
  if (is_raw) return (by_coordinate ? a.cs_bytes : a.vs_bytes) != 0;
  return (by_coordinate ? a.cs_words : a.vs_words) != 0;
}

/// Fetches an attribute for the vertices of a table.
void add_attribute(Memory memory, const draw::Draw& draw, uint32_t number, VertexTable* table) {
  const draw::ShaderRecord& record = *draw.record;
  const draw::Attribute& a = record.attributes[number];
  const bool is_raw = record.raw_attributes;
  VertexTable::Attribute column{.number = number,
                                .format = format_of(a, is_raw),
                                .address = a.address,
                                .stride = a.stride,
                                .divisor = a.divisor,
                                .max_index = is_raw ? draw.call.max_index : a.max_index,
                                .is_integer = !is_raw && a.read_as_int,
                                .is_signed = a.is_signed,
                                .of_coordinate = is_read(a, is_raw, true),
                                .of_vertex = is_read(a, is_raw, false)};
  if (!column.of_coordinate && !column.of_vertex) return;
  table->attributes.push_back(std::move(column));
  const vpm::AttributeFetcher fetcher(record_of(record, number), false);
  if (!fetcher.error().empty()) table->problem = absl::StrFormat("attribute %d: %s", number, fetcher.error());
  std::vector<Lanes> rows(fetcher.rows());
  for (size_t group = 0; group < table->vertices.size(); group += kLanes) {
    vpm::BatchRefs refs{.index = {},
                        .instance = {},
                        .base_instance = draw.call.base_instance,
                        .base_vertex = static_cast<uint32_t>(draw.call.base_vertex),
                        .draw_index = draw.call.draw_index,
                        .max_index = draw.call.max_index};
    const size_t count = std::min<size_t>(kLanes, table->vertices.size() - group);
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const draw::VertexRef& element = table->vertices[group + std::min(lane, count - 1)].element;
      refs.index[static_cast<int>(lane)] = element.index;
      refs.instance[static_cast<int>(lane)] = element.instance;
    }
    if (fetcher.error().empty()) fetcher.fetch(memory, refs, rows.data());
    for (size_t lane = 0; lane < count; ++lane) {
      std::vector<uint32_t>& words = table->vertices[group + lane].attributes.emplace_back();
      for (const Lanes& row : rows) words.push_back(row[static_cast<int>(lane)]);
    }
  }
}

void add_outputs(const draw::Draw& draw, const chip::Profile& profile, const vpm::ShadedVertices& bin,
                 const vpm::ShadedVertices& render, VertexTable* table) {
  const draw::ShaderRecord& record = *draw.record;
  const ptb::ScreenTransform screen(draw.state, ptb::view_rules(profile));
  const uint32_t first_varying = kFirstFreeRow + (record.point_size_in_vertices ? 1 : 0);
  constexpr double kSubpixels = 1 << ptb::kScreenFractionBits;
  for (uint32_t n = 0; n < table->vertices.size(); ++n) {
    VertexTable::Vertex& vertex = table->vertices[n];
    const auto word = [&](uint32_t row) { return render.word(n, row); };
    for (uint32_t c = 0; c < 4; ++c) vertex.clip[c] = std::bit_cast<float>(bin.word(n, kClipRow + c));
    vertex.screen = {screen.x(static_cast<int32_t>(word(kScreenRow))) / kSubpixels,
                     screen.y(static_cast<int32_t>(word(kScreenRow + 1))) / kSubpixels};
    vertex.depth = std::bit_cast<float>(word(kDepthRow));
    vertex.reciprocal_w = std::bit_cast<float>(word(kReciprocalRow));
    if (record.point_size_in_vertices) vertex.point_size = std::bit_cast<float>(word(kFirstFreeRow));
    for (uint32_t v = 0; v < table->varyings.size(); ++v) vertex.varyings.push_back(word(first_varying + v));
  }
}

}  // namespace

uint64_t vertex_threads(const draw::BinResult& bin, uint32_t draw) {
  std::vector<bool> listed(bin.draws.size());
  for (const auto& tile : bin.tiles)
    for (const draw::ListEntry& entry : tile)
      if (entry.draw < draw) listed[entry.draw] = true;
  uint64_t threads = 0;
  for (uint32_t n = 0; n < draw; ++n)
    if (listed[n]) threads += (bin.draws[n].vertices.size() + kLanes - 1) / kLanes;
  return threads;
}

absl::StatusOr<VertexTable> read_vertices(Memory memory, const chip::Profile& profile,
                                          const draw::BinResult& bin, uint32_t number, uint32_t first,
                                          uint32_t count, const ShadeDraw& shade) {
  if (number >= bin.draws.size())
    return absl::NotFoundError(absl::StrFormat("no draw %d; the job has %d", number, bin.draws.size()));
  const draw::Draw& draw = bin.draws[number];
  const draw::ShaderRecord& record = *draw.record;
  VertexTable table;
  table.count = static_cast<uint32_t>(draw.vertices.size());
  table.first = std::min(first, table.count) / kLanes * kLanes;
  table.thread = vertex_threads(bin, number) + table.first / kLanes;
  table.has_geometry = record.has_gs;
  const uint32_t end = std::min(table.count, table.first + std::min(count, VertexTable::kMostVertices));
  for (uint32_t n = table.first; n < end; ++n)
    table.vertices.push_back(
        {.element = draw.vertices[n], .attributes = {}, .point_size = {}, .varyings = {}});
  const auto attributes =
      std::min<uint32_t>(record.num_attributes, static_cast<uint32_t>(record.attributes.size()));
  for (uint32_t n = 0; n < attributes; ++n) add_attribute(memory, draw, n, &table);
  if (record.has_gs || table.vertices.empty()) return table;
  for (uint32_t n = 0; n < std::min<uint32_t>(record.num_varyings, kMostVaryings); ++n)
    table.varyings.push_back({.flat = draw.state.flat.test(n),
                              .noperspective = draw.state.noperspective.test(n),
                              .centroid = draw.state.centroid.test(n)});
  draw::Draw part = draw;
  part.vertices.assign(draw.vertices.begin() + table.first, draw.vertices.begin() + end);
  part.primitives.clear();
  part.clipped.clear();
  const auto binned = shade(part, vpm::Phase::kBin);
  const auto rendered = shade(part, vpm::Phase::kRender);
  for (const auto* shaded : {&binned, &rendered})
    if (!shaded->ok()) table.problem = std::string(shaded->status().message());
  add_outputs(draw, profile, binned.value_or(vpm::ShadedVertices{}), rendered.value_or(vpm::ShadedVertices{}),
              &table);
  return table;
}

}  // namespace v3d::inspect
