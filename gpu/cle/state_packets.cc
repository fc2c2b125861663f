#include "gpu/cle/state_packets.h"

#include <string_view>

#include "gpu/base/float16.h"
#include "gpu/cle/common_state.h"
#include "gpu/cle/packet_table.h"
#include "gpu/cle/vc4_draw_packets.h"

namespace v3d::cle {

namespace {

constexpr StateFields kStateFields = {
    .point_size = field("Point size", "Point Size"),
    .line_width = field("Line width", "Line width"),
    .offset_factor = field("Depth Offset", "Depth Offset Factor"),
    .offset_units = field("Depth Offset", "Depth Offset Units"),
    .clip_left = field("clip_window", "Clip Window Left Pixel Coordinate"),
    .clip_bottom = field("clip_window", "Clip Window Bottom Pixel Coordinate"),
    .clip_width = field("clip_window", "Clip Window Width in pixels"),
    .clip_height = field("clip_window", "Clip Window Height in pixels"),
    .half_width = field("Clipper XY Scaling", "Viewport Half-Width in 1/64th of pixel", k71),
    .half_height = field("Clipper XY Scaling", "Viewport Half-Height in 1/64th of pixel", k71),
    .z_scale = field("Clipper Z Scale and Offset", "Viewport Z Scale (Zc to Zs)"),
    .z_offset = field("Clipper Z Scale and Offset", "Viewport Z Offset (Zc to Zs)")};

template <chip::Generation kGeneration>
consteval Field cfg_bit(std::string_view name) {
  return field("Cfg Bits", name, set_of(kGeneration));
}

template <chip::Generation V>
constexpr CfgFields kCfgFields = {.draw_front = cfg_bit<V>("Enable Forward Facing Primitive"),
                                  .draw_back = cfg_bit<V>("Enable Reverse Facing Primitive"),
                                  .clockwise = cfg_bit<V>("Clockwise Primitives"),
                                  .depth_offset = cfg_bit<V>("Enable Depth Offset"),
                                  .oversample = cfg_bit<V>("Rasterizer Oversample Mode"),
                                  .depth_func = cfg_bit<V>("Depth-Test Function"),
                                  .z_write = cfg_bit<V>("Z updates enable")};

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
  set_common_cfg_bits<kCfgFields<V>>(p, c);
  c->line_mode = static_cast<uint8_t>(p.get(cfg_bit<V>("Line Rasterization")));
  c->wireframe = p.flag(cfg_bit<V>("Direct3D Wireframe triangles mode"));
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
    case Opcode::kDepthOffset:
      s->offset_limit = p.get_float(field("Depth Offset", "Limit"));
      return apply_common_state<kStateFields>(p, s);
    case Opcode::kViewportOffset:
      set_viewport(p, s);
      return true;
    case Opcode::kClipperZMinMaxClippingPlanes:
      s->z_min_clip = p.get_float(field("Clipper Z min/max clipping planes", "Minimum Zw"));
      s->z_max_clip = p.get_float(field("Clipper Z min/max clipping planes", "Maximum Zw"));
      return true;
    case Opcode::kClipperZScaleAndOffsetNoGuardband:
      s->z_scale = p.get_float(kStateFields.z_scale);
      s->z_offset = p.get_float(kStateFields.z_offset);
      return true;
    default:
      return apply_common_state<kStateFields>(p, s);
  }
}

}  // namespace v3d::cle
