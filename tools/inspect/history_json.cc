#include "tools/inspect/history_json.h"

#include <algorithm>
#include <bit>

#include "gpu/base/float16.h"
#include "tools/inspect/answer_parts.h"
#include "tools/inspect/tile_pictures.h"

namespace v3d::inspect {
namespace {

const char* text_of(PixelEvent::Kind kind) {
  constexpr const char* kNames[] = {"begin", "load", "clear", "store", "fragment"};
  return kNames[static_cast<size_t>(kind)];
}

double depth_of(tlb::DepthType type, uint32_t stored) {
  switch (type) {
    case tlb::DepthType::k24:
      return stored / double{0xffffff};
    case tlb::DepthType::k16:
      return stored / double{0xffff};
    case tlb::DepthType::k32F:
      break;
  }
  return double{std::bit_cast<float>(stored)};
}

Json json_of(const tlb::Config& config, const Sample& sample) {
  Json colors = Json::array();
  for (size_t rt = 0; rt < tlb::kMaxRenderTargets; ++rt) {
    if (!config.targets[rt].used) continue;
    Json channels = Json::array();
    for (const double value : channels_of(config.targets[rt], sample.colors[rt])) channels.push_back(value);
    colors.push_back(
        {{"target", rt},
         {"rgba8", rgba8_of(config.targets[rt], sample.colors[rt])},
         {"channels", channels},
         {"words",
          {sample.colors[rt][0], sample.colors[rt][1], sample.colors[rt][2], sample.colors[rt][3]}}});
  }
  return {{"depth", depth_of(config.depth_type, sample.depth)},
          {"stored_depth", sample.depth},
          {"stencil", sample.stencil},
          {"colors", colors}};
}

/// The test that a fragment failed in front of its program.
const char* failed_test(const draw::DrawState& state, const PixelEvent& event, tlb::DepthType type) {
  if (state.cfg.stencil) {
    const draw::StencilConfig& face = event.back_facing ? state.back : state.front;
    const uint32_t ref = face.ref & face.test_mask, stored = event.before.stencil & face.test_mask;
    if (!passes_when(face.func, ref < stored ? 0 : ref == stored ? 1 : 2)) return "stencil";
  }
  const double stored = depth_of(type, event.before.depth);
  if (state.cfg.depth_bounds &&
      (stored < double{state.depth_bounds_min} || stored > double{state.depth_bounds_max}))
    return "depth bounds";
  return "depth";
}

/// A channel that a program writes, by the type of its target. @param is_half  has 16 bits
double channel_of(tlb::ColorType type, uint32_t bits, bool is_half) {
  switch (type) {
    case tlb::ColorType::k8I:
    case tlb::ColorType::k16I:
    case tlb::ColorType::k32I:
      return is_half ? static_cast<int16_t>(bits) : static_cast<int32_t>(bits);
    case tlb::ColorType::k8Ui:
    case tlb::ColorType::k16Ui:
    case tlb::ColorType::k32Ui:
      return bits;
    default:
      return is_half ? double{half_to_float(static_cast<uint16_t>(bits))}
                     : double{std::bit_cast<float>(bits)};
  }
}

Json written_by(const tlb::Config& config, const PixelEvent::Access& access) {
  using Form = PixelEvent::Access::Form;
  const tlb::ColorType type =
      access.is_depth ? tlb::ColorType::k32F : config.targets[access.target % tlb::kMaxRenderTargets].type;
  Json written = Json::array();
  for (const uint32_t word : access.words) {
    if (access.form == Form::kWhole) {
      written.push_back(channel_of(type, word, false));
    } else if (access.form == Form::kHalves) {
      written.push_back(channel_of(type, word & 0xffff, true));
      written.push_back(channel_of(type, word >> 16, true));
    } else if (access.is_depth) {
      written.push_back(depth_of(tlb::DepthType::k24, word & 0xffffff));
    } else {
      for (uint32_t shift = 0; shift < 32; shift += 8) written.push_back((word >> shift & 0xff) / 255.0);
    }
  }
  return written;
}

Json json_of(const tlb::Config& config, const PixelEvent::Access& access) {
  return {{"kind", access.is_depth ? "depth" : "color"},
          {"target", access.target},
          {"words", access.words},
          {"written", written_by(config, access)},
          {"passed", access.passed},
          {"before", json_of(config, access.before)},
          {"after", json_of(config, access.after)}};
}

/// Numbers in the draw's table of vertices.
Json vertices_of(const draw::BinResult* bin, const PixelEvent& event) {
  Json vertices = Json::array();
  if (bin == nullptr || event.draw >= bin->draws.size()) return vertices;
  const draw::Draw& draw = bin->draws[event.draw];
  if (!draw.record || draw.record->has_gs || event.primitive >= draw.primitives.size()) return vertices;
  for (uint32_t n = 0; n < std::min<uint32_t>(draw.vertices_per_primitive, 3); ++n)
    vertices.push_back(draw.primitives[event.primitive].vertex[n]);
  return vertices;
}

}  // namespace

Json history_json(const tlb::Config& config, const draw::BinResult* bin, const PixelEvent& event,
                  uint32_t sample) {
  Json json = {{"kind", text_of(event.kind)},
               {"before", json_of(config, event.before)},
               {"after", json_of(config, event.after)}};
  if (event.kind == PixelEvent::Kind::kLoad || event.kind == PixelEvent::Kind::kStore) {
    json["buffer"] = event.transfer.buffer;
    json["address"] = hex(event.transfer.address);
  }
  if (event.kind != PixelEvent::Kind::kFragment) return json;
  json["draw"] = event.draw;
  json["primitive"] = event.primitive;
  json["back_facing"] = event.back_facing;
  json["coverage"] = event.coverage;
  json["depth"] = double{event.depth};
  json["tests_early"] = event.tests_early;
  json["passed_early"] = event.passed_early;
  const bool has_failed =
      event.tests_early && ((event.coverage >> sample) & 1) != 0 && ((event.passed_early >> sample) & 1) == 0;
  if (has_failed && bin && event.draw < bin->draws.size())
    json["failed"] = failed_test(bin->draws[event.draw].state, event, config.depth_type);
  json["vertices"] = vertices_of(bin, event);
  Json runs = Json::array();
  for (const PixelEvent::Run& run : event.runs) {
    Json accesses = Json::array();
    for (const PixelEvent::Access& access : run.accesses) accesses.push_back(json_of(config, access));
    runs.push_back({{"thread", run.thread},
                    {"lane", run.lane},
                    {"sample", run.sample},
                    {"alive", run.alive},
                    {"accesses", accesses}});
  }
  json["runs"] = runs;
  return json;
}

}  // namespace v3d::inspect
