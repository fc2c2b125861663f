#include "tools/inspect/draw_names.h"

#include <cstddef>
#include <string>

#include "absl/strings/str_format.h"
#include "gpu/tlb/tile_buffer.h"
#include "tools/inspect/answer_parts.h"

namespace v3d::inspect {
namespace {

template <size_t kCount, typename Value>
const char* name_in(const char* const (&names)[kCount], Value value) {
  const auto index = static_cast<size_t>(value);
  return index < kCount ? names[index] : "?";
}

std::string text_of(const draw::StencilConfig& s) {
  return absl::StrFormat("(%d & 0x%02x) %s stored; else %s, depth fails %s, passes %s, writes 0x%02x", s.ref,
                         s.test_mask, api_name(s.func), api_name(s.fail), api_name(s.depth_fail),
                         api_name(s.pass), s.write_mask);
}

std::string equation_of(draw::BlendMode mode, draw::BlendFactor src, draw::BlendFactor dst) {
  const bool has_factors = mode != draw::BlendMode::kMin && mode != draw::BlendMode::kMax;
  if (!has_factors) return absl::StrFormat("%s(source, stored)", api_name(mode));
  return absl::StrFormat("%s(source * %s, stored * %s)", api_name(mode), api_name(src), api_name(dst));
}

std::string text_of(const draw::BlendConfig& b) {
  return absl::StrFormat("colour %s, alpha %s", equation_of(b.color_mode, b.color_src, b.color_dst),
                         equation_of(b.alpha_mode, b.alpha_src, b.alpha_dst));
}

/// A line for each stretch of targets of which text_of_target(target) is the same and not empty. Drivers set
/// all alike, those included that the frame does not have.
template <typename TextOf>
void add_for_targets(Json* lines, const TextOf& text_of_target) {
  for (size_t first = 0, end; first < tlb::kMaxRenderTargets; first = end) {
    const std::string text = text_of_target(first);
    for (end = first + 1; end < tlb::kMaxRenderTargets && text_of_target(end) == text;) ++end;
    if (text.empty()) continue;
    const bool one = end == first + 1;
    lines->push_back(one ? absl::StrFormat("target %d: %s", first, text)
                         : absl::StrFormat("targets %d to %d: %s", first, end - 1, text));
  }
}

}  // namespace

const char* api_name(Compare function) {
  constexpr const char* kNames[] = {
      "NEVER", "LESS", "EQUAL", "LEQUAL (LESS_OR_EQUAL)", "GREATER", "NOT_EQUAL", "GEQUAL (GREATER_OR_EQUAL)",
      "ALWAYS"};
  return name_in(kNames, function);
}

const char* api_name(draw::BlendFactor factor) {
  constexpr const char* kNames[] = {"ZERO",
                                    "ONE",
                                    "SRC_COLOR",
                                    "ONE_MINUS_SRC_COLOR",
                                    "DST_COLOR",
                                    "ONE_MINUS_DST_COLOR",
                                    "SRC_ALPHA",
                                    "ONE_MINUS_SRC_ALPHA",
                                    "DST_ALPHA",
                                    "ONE_MINUS_DST_ALPHA",
                                    "CONSTANT_COLOR",
                                    "ONE_MINUS_CONSTANT_COLOR",
                                    "CONSTANT_ALPHA",
                                    "ONE_MINUS_CONSTANT_ALPHA",
                                    "SRC_ALPHA_SATURATE"};
  return name_in(kNames, factor);
}

const char* api_name(draw::BlendMode mode) {
  constexpr const char* kNames[] = {"ADD",      "SUBTRACT", "REVERSE_SUBTRACT", "MIN",    "MAX",
                                    "MULTIPLY", "SCREEN",   "DARKEN",           "LIGHTEN"};
  return name_in(kNames, mode);
}

const char* api_name(draw::StencilOp op) {
  constexpr const char* kNames[] = {"ZERO", "KEEP",   "REPLACE",   "INCR",
                                    "DECR", "INVERT", "INCR_WRAP", "DECR_WRAP"};
  return name_in(kNames, op);
}

Json state_of(const draw::DrawState& state) {
  Json lines = Json::array();
  const draw::CfgBits& cfg = state.cfg;
  lines.push_back(absl::StrFormat("depth: passes if its depth is %s stored, %s", api_name(cfg.depth_func),
                                  cfg.z_write ? "is written" : "is not written"));
  if (cfg.depth_offset)
    lines.push_back(absl::StrFormat("depth offset: factor %g, units %g, limit %g", state.offset_factor,
                                    state.offset_units, state.offset_limit));
  if (cfg.stencil) {
    lines.push_back("stencil, front: " + text_of(state.front));
    lines.push_back("stencil, back: " + text_of(state.back));
  }
  add_for_targets(&lines, [&](size_t rt) {
    const bool blends = cfg.blend && ((state.blend_enables >> rt) & 1);
    return blends ? "blending: " + text_of(state.blend[rt]) : "";
  });
  if (!cfg.blend || state.blend_enables == 0) lines.push_back("blending: off");
  add_for_targets(&lines, [&](size_t rt) {
    const uint32_t mask = state.color_masks[rt];
    return mask & 15 ? absl::StrFormat("channels are not written: %s%s%s%s", mask & 1 ? "R" : "",
                                       mask & 2 ? "G" : "", mask & 4 ? "B" : "", mask & 8 ? "A" : "")
                     : "";
  });
  if (cfg.draw_front != cfg.draw_back)
    lines.push_back(cfg.draw_front ? "back faces are culled" : "front faces are culled");
  lines.push_back(absl::StrFormat("clip window: %d, %d, %dx%d", state.clip_left, state.clip_bottom,
                                  state.clip_width, state.clip_height));
  if (state.occlusion_counter != 0) lines.push_back("occlusion counter at " + hex(state.occlusion_counter));
  return lines;
}

}  // namespace v3d::inspect
