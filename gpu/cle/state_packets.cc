#include "gpu/cle/state_packets.h"

#include <string_view>

#include "gpu/base/float16.h"
#include "gpu/cle/packet_table.h"
#include "gpu/cle/vc4_draw_packets.h"

namespace v3d::cle {

namespace {

template <chip::Generation kGeneration>
consteval Field cfg_bit(std::string_view name) {
  return field("Cfg Bits", name, set_of(kGeneration));
}

constexpr bool has_depth_bounds(chip::Generation generation) {
  switch (generation) {
    case chip::Generation::k21:
    case chip::Generation::k42:
      return false;
    case chip::Generation::k71:
      return true;
  }
  chip::no_such_generation();
}

template <chip::Generation V>
void set_cfg_bits(const Packet& p, draw::CfgBits* c) {
  c->draw_front = p.flag(cfg_bit<V>("Enable Forward Facing Primitive"));
  c->draw_back = p.flag(cfg_bit<V>("Enable Reverse Facing Primitive"));
  c->clockwise = p.flag(cfg_bit<V>("Clockwise Primitives"));
  c->depth_offset = p.flag(cfg_bit<V>("Enable Depth Offset"));
  c->line_mode = static_cast<uint8_t>(p.get(cfg_bit<V>("Line Rasterization")));
  c->oversample = static_cast<uint8_t>(p.get(cfg_bit<V>("Rasterizer Oversample Mode")));
  c->wireframe = p.flag(cfg_bit<V>("Direct3D Wireframe triangles mode"));
  c->depth_func = static_cast<Compare>(p.get(cfg_bit<V>("Depth-Test Function")));
  c->z_write = p.flag(cfg_bit<V>("Z updates enable"));
  c->stencil = p.flag(cfg_bit<V>("Stencil enable"));
  c->blend = p.flag(cfg_bit<V>("Blend enable"));
  c->point_fill = p.flag(cfg_bit<V>("Direct3D 'Point-fill' mode"));
  c->provoking_first = p.flag(cfg_bit<V>("Direct3D Provoking Vertex"));
  if constexpr (has_depth_bounds(V)) {
    c->depth_bounds = p.flag(cfg_bit<V>("Depth Bounds Test Enable"));
    c->z_clamp = p.flag(cfg_bit<V>("Z Clamp Mode"));
    c->z_clip_mode = static_cast<uint8_t>(p.get(cfg_bit<V>("Z Clipping mode")));
  } else {
    c->z_clip_mode = draw::CfgBits::kZClipRange;
  }
}

void set_cfg_bits(const Packet& p, chip::Generation generation, draw::CfgBits* c) {
  switch (generation) {
    case chip::Generation::k21:  // has no packet of this form
      return;
    case chip::Generation::k42:
      return set_cfg_bits<chip::Generation::k42>(p, c);
    case chip::Generation::k71:
      return set_cfg_bits<chip::Generation::k71>(p, c);
  }
}

void set_stencil(const Packet& p, draw::DrawState* s) {
  constexpr std::string_view kOwner = "Stencil Cfg";
  const auto op = [&p](const Field& f) { return static_cast<draw::StencilOp>(p.get(f)); };
  const draw::StencilConfig config{
      .ref = static_cast<uint8_t>(p.get(field(kOwner, "Stencil Ref Value"))),
      .test_mask = static_cast<uint8_t>(p.get(field(kOwner, "Stencil Test Mask"))),
      .write_mask = static_cast<uint8_t>(p.get(field(kOwner, "Stencil Write Mask"))),
      .func = static_cast<Compare>(p.get(field(kOwner, "Stencil Test Function"))),
      .fail = op(field(kOwner, "Stencil Test Fail Op")),
      .depth_fail = op(field(kOwner, "Depth Test Fail Op")),
      .pass = op(field(kOwner, "Stencil Pass Op"))};
  if (p.flag(field(kOwner, "Front Config"))) s->front = config;
  if (p.flag(field(kOwner, "Back Config"))) s->back = config;
}

uint32_t blend_targets(const Packet& p, chip::Generation generation) {
  switch (generation) {
    case chip::Generation::k21:  // blends in the program
      return 0;
    case chip::Generation::k42:
      return p.get(field("Blend Cfg", "Render Target Mask", k42));
    case chip::Generation::k71:
      return p.get(field("Blend Cfg", "Render Target Mask", k71));
  }
  chip::no_such_generation();
}

void set_blend(const Packet& p, chip::Generation generation, draw::DrawState* s) {
  const auto mode = [&p](const Field& f) { return static_cast<draw::BlendMode>(p.get(f)); };
  const auto factor = [&p](const Field& f) { return static_cast<draw::BlendFactor>(p.get(f)); };
  const draw::BlendConfig config{.color_mode = mode(field("Blend Cfg", "Color blend mode", k71)),
                                 .color_src = factor(field("Blend Cfg", "Color blend src factor", k71)),
                                 .color_dst = factor(field("Blend Cfg", "Color blend dst factor", k71)),
                                 .alpha_mode = mode(field("Blend Cfg", "Alpha blend mode", k71)),
                                 .alpha_src = factor(field("Blend Cfg", "Alpha blend src factor", k71)),
                                 .alpha_dst = factor(field("Blend Cfg", "Alpha blend dst factor", k71))};
  const uint32_t mask = blend_targets(p, generation);
  for (size_t rt = 0; rt < s->blend.size(); ++rt)
    if ((mask >> rt) & 1) s->blend[rt] = config;
}

void set_blend_color(const Packet& p, draw::DrawState* s) {
  constexpr Field kChannels[4] = {
      field("Blend Constant Color", "Red (F16)"), field("Blend Constant Color", "Green (F16)"),
      field("Blend Constant Color", "Blue (F16)"), field("Blend Constant Color", "Alpha (F16)")};
  for (size_t i = 0; i < 4; ++i)
    s->blend_color[i] = half_to_float(static_cast<uint16_t>(p.get(kChannels[i])));
}

/// The three packets of varying flags share one layout.
void set_varying_flags(const Packet& p, draw::VaryingFlags* flags) {
  constexpr std::string_view kOwner = "Flat Shade Flags";
  const uint32_t block = p.get(field(kOwner, "Varying offset V0"));
  const uint32_t lower = p.get(field(kOwner, "Action for Flat Shade Flags of lower numbered varyings"));
  const uint32_t higher = p.get(field(kOwner, "Action for Flat Shade Flags of higher numbered varyings"));
  constexpr uint32_t kActionZero = 1, kActionSet = 2;
  for (uint32_t i = 0; i < flags->words.size(); ++i) {
    uint32_t& word = flags->words[i];
    if (i == block) {
      word = p.get(field(kOwner, "Flat Shade Flags for varyings V0*24"));
      continue;
    }
    const uint32_t action = i < block ? lower : higher;
    if (action == kActionZero) word = 0;
    if (action == kActionSet) word = 0xffffff;
  }
}

void set_viewport(const Packet& p, draw::DrawState* s) {
  constexpr std::string_view kOwner = "Viewport Offset";
  constexpr int32_t kCoarseUnit = 64 * 256;
  const auto join = [&p](const Field& fine, const Field& coarse) {
    return static_cast<int32_t>(p.get(fine)) + static_cast<int32_t>(p.get(coarse)) * kCoarseUnit;
  };
  s->viewport_x = join(field(kOwner, "Fine X"), field(kOwner, "Coarse X"));
  s->viewport_y = join(field(kOwner, "Fine Y"), field(kOwner, "Coarse Y"));
}

void set_clip_window(const Packet& p, draw::DrawState* s) {
  const auto get = [&p](const Field& f) { return static_cast<uint16_t>(p.get(f)); };
  s->clip_left = get(field("clip_window", "Clip Window Left Pixel Coordinate"));
  s->clip_bottom = get(field("clip_window", "Clip Window Bottom Pixel Coordinate"));
  s->clip_width = get(field("clip_window", "Clip Window Width in pixels"));
  s->clip_height = get(field("clip_window", "Clip Window Height in pixels"));
}

void set_shader(const Packet& p, bool with_gs, draw::DrawState* s) {
  const uint32_t count = p.get(field("GL Shader State", "number of attribute arrays"));
  s->num_attributes = static_cast<uint8_t>(count == 0 ? 32 : count);
  s->shader_record = p.get(field("GL Shader State", "address"));
  s->with_gs = with_gs;
}

}  // namespace

draw::DrawState initial_state() {
  draw::DrawState s;
  s.cfg.z_clip_mode = 0;
  return s;
}

std::optional<draw::DrawCall> complete_draw_call(const Packet& p, chip::Generation generation) {
  switch (generation) {
    case chip::Generation::k21:
      return vc4_draw_call(p);
    case chip::Generation::k42:
    case chip::Generation::k71:
      return std::nullopt;
  }
  chip::no_such_generation();
}

bool apply_state(const Packet& p, chip::Generation generation, draw::DrawState* s, std::string* error) {
  switch (generation) {
    case chip::Generation::k21: {
      std::string unseen;
      return apply_vc4_state(p, s, error ? error : &unseen);
    }
    case chip::Generation::k42:
    case chip::Generation::k71:
      break;
  }
  switch (p.opcode) {
    case Opcode::kGlShaderState:
      set_shader(p, false, s);
      return true;
    case Opcode::kGlShaderStateIncludingGs:
      set_shader(p, true, s);
      return true;
    case Opcode::kCfgBits:
      set_cfg_bits(p, generation, &s->cfg);
      return true;
    case Opcode::kStencilCfg:
      set_stencil(p, s);
      return true;
    case Opcode::kBlendEnables:
      s->blend_enables = static_cast<uint8_t>(p.get(field("Blend Enables", "Mask")));
      return true;
    case Opcode::kBlendCfg:
      set_blend(p, generation, s);
      return true;
    case Opcode::kBlendConstantColor:
      set_blend_color(p, s);
      return true;
    case Opcode::kColorWriteMasks: {
      const uint32_t masks = p.get(field("Color Write Masks", "Mask"));
      for (size_t rt = 0; rt < s->color_masks.size(); ++rt)
        s->color_masks[rt] = static_cast<uint8_t>((masks >> (4 * rt)) & 0xf);
      return true;
    }
    case Opcode::kZeroAllFlatShadeFlags:
      s->flat = {};
      return true;
    case Opcode::kFlatShadeFlags:
      set_varying_flags(p, &s->flat);
      return true;
    case Opcode::kZeroAllNonPerspectiveFlags:
      s->noperspective = {};
      return true;
    case Opcode::kNonPerspectiveFlags:
      set_varying_flags(p, &s->noperspective);
      return true;
    case Opcode::kZeroAllCentroidFlags:
      s->centroid = {};
      return true;
    case Opcode::kCentroidFlags:
      set_varying_flags(p, &s->centroid);
      return true;
    case Opcode::kSampleState:
      s->sample_mask = static_cast<uint8_t>(p.get(field("Sample State", "Mask")));
      return true;
    case Opcode::kOcclusionQueryCounter:
      s->occlusion_counter = p.get(field("Occlusion Query Counter", "address"));
      return true;
    case Opcode::kDepthBoundsTestLimits:
      s->depth_bounds_min = p.get_float(field("Depth Bounds Test Limits", "Lower Test Limit", k71));
      s->depth_bounds_max = p.get_float(field("Depth Bounds Test Limits", "Upper Test Limit", k71));
      return true;
    case Opcode::kPointSize:
      s->point_size = p.get_float(field("Point size", "Point Size"));
      return true;
    case Opcode::kLineWidth:
      s->line_width = p.get_float(field("Line width", "Line width"));
      return true;
    case Opcode::kDepthOffset:
      s->offset_factor = p.get_float(field("Depth Offset", "Depth Offset Factor"));
      s->offset_units = p.get_float(field("Depth Offset", "Depth Offset Units"));
      s->offset_limit = p.get_float(field("Depth Offset", "Limit"));
      return true;
    case Opcode::kClipWindow:
      set_clip_window(p, s);
      return true;
    case Opcode::kViewportOffset:
      set_viewport(p, s);
      return true;
    case Opcode::kClipperZMinMaxClippingPlanes:
      s->z_min_clip = p.get_float(field("Clipper Z min/max clipping planes", "Minimum Zw"));
      s->z_max_clip = p.get_float(field("Clipper Z min/max clipping planes", "Maximum Zw"));
      return true;
    case Opcode::kClipperXyScaling:
      s->xy_half_width =
          p.get_float(field("Clipper XY Scaling", "Viewport Half-Width in 1/64th of pixel", k71));
      s->xy_half_height =
          p.get_float(field("Clipper XY Scaling", "Viewport Half-Height in 1/64th of pixel", k71));
      return true;
    case Opcode::kClipperZScaleAndOffset:
    case Opcode::kClipperZScaleAndOffsetNoGuardband:
      s->z_scale = p.get_float(field("Clipper Z Scale and Offset", "Viewport Z Scale (Zc to Zs)"));
      s->z_offset = p.get_float(field("Clipper Z Scale and Offset", "Viewport Z Offset (Zc to Zs)"));
      return true;
    default:
      return false;
  }
}

}  // namespace v3d::cle
