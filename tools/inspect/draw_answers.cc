#include "tools/inspect/draw_answers.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "tools/inspect/draw_names.h"

namespace v3d::inspect {
namespace {

/// Draws in one answer.
constexpr size_t kMostDraws = 20'000;

Json json_of(const draw::Draw& draw, size_t number, uint64_t entries) {
  const draw::ShaderRecord& record = *draw.record;
  Json programs = Json::array();
  const auto add = [&](const char* stage, const draw::ShaderCode& code) {
    if (code.code != 0) programs.push_back({{"stage", stage}, {"code", hex(code.code)}});
  };
  add("coordinate", record.cs);
  add("vertex", record.vs);
  if (record.has_gs) add("geometry", record.gs_render);
  add("fragment", record.fs);
  return {{"number", number},
          {"mode", name_of(cle::FieldType::kPrimitive, draw.call.mode)},
          {"count", draw.call.count},
          {"instances", draw.call.instances},
          {"indexed", draw.call.indexed},
          {"vertices", draw.vertices.size()},
          {"primitives", draw.primitives.size()},
          {"entries", entries},
          {"programs", programs},
          {"state", state_of(draw.state)}};
}

Json json_of(const VertexTable::Attribute& a) {
  return {{"number", a.number},      {"format", a.format},    {"address", hex(a.address)},
          {"stride", a.stride},      {"divisor", a.divisor},  {"max_index", a.max_index},
          {"integer", a.is_integer}, {"signed", a.is_signed}, {"coordinate", a.of_coordinate},
          {"vertex", a.of_vertex}};
}

Json json_of(const VertexTable::Vertex& v) {
  return {{"index", v.element.index},
          {"instance", v.element.instance},
          {"attributes", v.attributes},
          {"clip", v.clip},
          {"screen", v.screen},
          {"depth", v.depth},
          {"reciprocal_w", v.reciprocal_w},
          {"point_size", v.point_size ? Json(*v.point_size) : Json()},
          {"varyings", v.varyings}};
}

UsedTexture used_of(Numbers& numbers) {
  UsedTexture used{};
  used[0] = numbers.get("p0");
  used[1] = numbers.get("p1", 0);
  used[2] = numbers.get("p2", 2);
  used[3] = numbers.get("p3", 0);
  return used;
}

}  // namespace

Answer draws_answer(Inspector& inspector, uint32_t number) {
  Json draws = Json::array();
  size_t left_out = 0;
  const absl::Status seen = inspector.with_draws(number, [&](const draw::BinResult* bin) {
    if (bin == nullptr) return;
    std::vector<uint64_t> entries(bin->draws.size());
    for (const auto& tile : bin->tiles)
      for (const draw::ListEntry& entry : tile) ++entries[entry.draw];
    const size_t shown = std::min(bin->draws.size(), kMostDraws);
    for (size_t n = 0; n < shown; ++n) draws.push_back(json_of(bin->draws[n], n, entries[n]));
    left_out = bin->draws.size() - shown;
  });
  if (!seen.ok()) return wrong(seen);
  return good({{"draws", draws}, {"left_out", left_out}});
}

Answer vertices_answer(Inspector& inspector, uint32_t job, Numbers& numbers) {
  const uint32_t draw = numbers.get("draw"), first = numbers.get("first", 0),
                 count = numbers.get("count", VertexTable::kMostVertices);
  if (!numbers.wrong().empty()) return wrong(400, numbers.wrong());
  const auto table = inspector.vertices(job, draw, first, count);
  if (!table.ok()) return wrong(table.status());
  Json attributes = Json::array(), varyings = Json::array(), vertices = Json::array();
  for (const auto& attribute : table->attributes) attributes.push_back(json_of(attribute));
  for (const auto& v : table->varyings)
    varyings.push_back({{"flat", v.flat}, {"noperspective", v.noperspective}, {"centroid", v.centroid}});
  for (const auto& vertex : table->vertices) vertices.push_back(json_of(vertex));
  return good({{"count", table->count},
               {"first", table->first},
               {"thread", table->thread},
               {"geometry", table->has_geometry},
               {"attributes", attributes},
               {"varyings", varyings},
               {"vertices", vertices},
               {"problem", table->problem}});
}

Answer textures_answer(Inspector& inspector, uint32_t job, Numbers& numbers) {
  const uint32_t draw = numbers.get("draw");
  if (!numbers.wrong().empty()) return wrong(400, numbers.wrong());
  const auto found = inspector.textures(job, draw);
  if (!found.ok()) return wrong(found.status());
  Json textures = Json::array();
  for (const DrawTexture& texture : *found)
    textures.push_back({{"stage", texture.stage}, {"words", texture.used}});
  return good({{"textures", textures}});
}

Answer texture_answer(Inspector& inspector, uint32_t job, Numbers& numbers) {
  const UsedTexture used = used_of(numbers);
  const uint32_t level = numbers.get("level", 0);
  if (!numbers.wrong().empty()) return wrong(400, numbers.wrong());
  const auto texture = inspector.texture(job, used, level);
  if (!texture.ok()) return wrong(texture.status());
  Json rows = Json::array();
  for (const TexturePicture::Row& row : texture->rows)
    rows.push_back({{"address", hex(row.address)},
                    {"width", row.width},
                    {"height", row.height},
                    {"stride", row.stride},
                    {"needs", row.needs},
                    {"padded", row.padded},
                    {"tiling", row.tiling}});
  return with_pixels({{"address", hex(texture->address)},
                      {"width", texture->width},
                      {"height", texture->height},
                      {"depth", texture->depth},
                      {"levels", texture->levels},
                      {"array_stride", texture->array_stride},
                      {"texel_bytes", texture->texel_bytes},
                      {"format", texture->format},
                      {"sampler", texture->sampler},
                      {"rows", rows},
                      {"problem", texture->problem}},
                     texture->rgba);
}

}  // namespace v3d::inspect
