#include "gpu/cle/vc4_draw_packets.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_format.h"
#include "gpu/cle/vc4_packet_table.h"

namespace v3d::cle {
namespace {

constexpr uint32_t kMostAttributes = 8;
constexpr uint32_t kTileSize = 64, kMultisampleTileSize = 32;

/// Flags as the neutral form has them: 24 to a word.
constexpr uint32_t kFlagsInAWord = 24;

bool set_cfg_bits(const Packet& p, draw::CfgBits* c, std::string* error) {
  constexpr std::string_view kOwner = "Configuration Bits";
  constexpr uint32_t kFourSamples = 1;
  const uint32_t oversample = p.get(vc4_field(kOwner, "Rasteriser Oversample Mode"));
  if (oversample > kFourSamples)
    *error = absl::StrFormat("oversample mode %u is not implemented", oversample);
  if (p.flag(vc4_field(kOwner, "Antialiased Points and Lines")))
    *error = "anti-aliased points and lines are not implemented";
  if (p.flag(vc4_field(kOwner, "Coverage Pipe Select")))
    *error = "coverage of vector graphics is not implemented";
  *c = draw::CfgBits{};
  c->draw_front = p.flag(vc4_field(kOwner, "Enable Forward Facing Primitive"));
  c->draw_back = p.flag(vc4_field(kOwner, "Enable Reverse Facing Primitive"));
  c->clockwise = p.flag(vc4_field(kOwner, "Clockwise Primitives"));
  c->depth_offset = p.flag(vc4_field(kOwner, "Enable Depth Offset"));
  c->oversample = static_cast<uint8_t>(oversample);
  c->depth_func = static_cast<Compare>(p.get(vc4_field(kOwner, "Depth-Test Function")));
  c->z_write = p.flag(vc4_field(kOwner, "Z updates enable"));
  // Early Z rejects nothing that the late test would not: it is left out (vc4-graphics.md 3.5). Near and far
  // are cut at -Wc and Wc (2.3).
  c->z_clip_mode = 1;
  return true;
}

void set_flat_flags(const Packet& p, draw::DrawState* s) {
  const uint32_t flags = p.get(vc4_field("Flat Shade Flags", "Flat-shading Flags"));
  s->flat = {};
  s->flat.words[0] = flags & ((1u << kFlagsInAWord) - 1);
  s->flat.words[1] = flags >> kFlagsInAWord;
}

void set_clip_window(const Packet& p, draw::DrawState* s) {
  constexpr std::string_view kOwner = "Clip Window";
  const auto get = [&p](const Field& f) { return static_cast<uint16_t>(p.get(f)); };
  s->clip_left = get(vc4_field(kOwner, "Clip Window Left Pixel Coordinate"));
  s->clip_bottom = get(vc4_field(kOwner, "Clip Window Bottom Pixel Coordinate"));
  s->clip_width = get(vc4_field(kOwner, "Clip Window Width in pixels"));
  s->clip_height = get(vc4_field(kOwner, "Clip Window Height in pixels"));
}

void set_viewport(const Packet& p, draw::DrawState* s) {
  constexpr std::string_view kOwner = "Viewport Offset";
  constexpr int32_t kFromSixteenths = 256 / 16;
  s->viewport_x =
      static_cast<int32_t>(p.get(vc4_field(kOwner, "Viewport Centre X-coordinate"))) * kFromSixteenths;
  s->viewport_y =
      static_cast<int32_t>(p.get(vc4_field(kOwner, "Viewport Centre Y-coordinate"))) * kFromSixteenths;
}

void set_shader(const Packet& p, draw::DrawState* s) {
  constexpr std::string_view kOwner = "GL Shader State";
  const uint32_t count = p.get(vc4_field(kOwner, "Number of attribute arrays"));
  s->num_attributes = static_cast<uint8_t>(count == 0 ? kMostAttributes : count);
  s->extended_record = p.flag(vc4_field(kOwner, "Extended shader record"));
  s->shader_record = p.get(vc4_field(kOwner, "Address"));
}

constexpr const RecordInfo& kMain = vc4_record("Shader Record");
constexpr const RecordInfo& kAttribute = vc4_record("Attribute Record");

/// What a stage of vertices takes of an attribute.
struct StageFields {
  Field selects, offset;
};
constexpr StageFields kVertexStage{vc4_field("Shader Record", "Vertex Shader Attribute Array select bits"),
                                   vc4_field("Attribute Record", "Vertex Shader VPM offset")},
    kCoordinateStage{vc4_field("Shader Record", "Coordinate Shader Attribute Array select bits"),
                     vc4_field("Attribute Record", "Coordinate Shader VPM offset")};

draw::ShaderCode read_code(const Record& r, const Field& code, const Field& uniforms, bool two_threads) {
  return {.code = r.get(code), .uniforms = r.get(uniforms), .two_threads = two_threads};
}

}  // namespace

bool apply_vc4_state(const Packet& p, draw::DrawState* s, std::string* error) {
  switch (p.opcode) {
    case Opcode::kGlShaderState:
      set_shader(p, s);
      return true;
    case Opcode::kCfgBits:
      return set_cfg_bits(p, &s->cfg, error);
    case Opcode::kFlatShadeFlags:
      set_flat_flags(p, s);
      return true;
    case Opcode::kPointSize:
      s->point_size = p.get_float(vc4_field("Point size", "Point Size"));
      return true;
    case Opcode::kLineWidth:
      s->line_width = p.get_float(vc4_field("Line width", "Line width"));
      return true;
    case Opcode::kDepthOffset:
      s->offset_factor = p.get_float(vc4_field("Depth Offset", "Depth Offset Factor"));
      s->offset_units = p.get_float(vc4_field("Depth Offset", "Depth Offset Units"));
      return true;
    case Opcode::kClipWindow:
      set_clip_window(p, s);
      return true;
    case Opcode::kViewportOffset:
      set_viewport(p, s);
      return true;
    case Opcode::kClipperXyScaling:
      s->xy_half_width =
          p.get_float(vc4_field("Clipper XY Scaling", "Viewport Half-Width in 1/16th of pixel"));
      s->xy_half_height =
          p.get_float(vc4_field("Clipper XY Scaling", "Viewport Half-Height in 1/16th of pixel"));
      return true;
    case Opcode::kClipperZScaleAndOffset:
      s->z_scale = p.get_float(vc4_field("Clipper Z Scale and Offset", "Viewport Z Scale (Zc to Zs)"));
      s->z_offset = p.get_float(vc4_field("Clipper Z Scale and Offset", "Viewport Z Offset (Zc to Zs)"));
      return true;
    case Opcode::kPrimListFormat:  // of lists that only the hardware reads
      return true;
    default:
      return false;
  }
}

std::optional<draw::DrawCall> vc4_draw_call(const Packet& p) {
  draw::DrawCall call;
  switch (p.opcode) {
    case Opcode::kIndexedPrimList: {
      constexpr std::string_view kOwner = "Indexed Primitive List";
      call.indexed = true;
      call.mode = static_cast<draw::Mode>(p.get(vc4_field(kOwner, "Primitive mode")));
      call.count = p.get(vc4_field(kOwner, "Length"));
      call.index_buffer = p.get(vc4_field(kOwner, "Address of Indices List"));
      call.max_index = p.get(vc4_field(kOwner, "Maximum Index"));
      // Types that do not exist get a size that does not.
      const uint32_t type = p.get(vc4_field(kOwner, "Index type"));
      call.index_size = static_cast<uint8_t>(type <= 1 ? 1u << type : 0xff);
      // The kernel has seen that they lie in one buffer.
      call.index_buffer_size =
          static_cast<uint32_t>(std::min<uint64_t>(uint64_t{call.count} * call.index_size, ~0u));
      return call;
    }
    case Opcode::kVertexArrayPrims: {
      constexpr std::string_view kOwner = "Vertex Array Primitives";
      call.mode = static_cast<draw::Mode>(p.get(vc4_field(kOwner, "Primitive mode")));
      call.count = p.get(vc4_field(kOwner, "Length"));
      call.first_vertex = p.get(vc4_field(kOwner, "Index of First Vertex"));
      return call;
    }
    default:
      return std::nullopt;
  }
}

Vc4Binning vc4_binning(const Packet& p) {
  constexpr std::string_view kOwner = "Tile Binning Mode Configuration";
  constexpr Field kUnsupported[] = {vc4_field(kOwner, "Tile Buffer 64-bit Color Depth"),
                                    vc4_field(kOwner, "Double-buffer in non-ms mode")};
  const bool multisample = p.flag(vc4_field(kOwner, "Multisample Mode (4x)"));
  Vc4Binning binning = {p.get(vc4_field(kOwner, "Width (in tiles)")),
                        p.get(vc4_field(kOwner, "Height (in tiles)")),
                        multisample ? kMultisampleTileSize : kTileSize, nullptr};
  for (const Field& mode : kUnsupported)
    if (p.flag(mode)) binning.unsupported = mode.name;
  return binning;
}

Vc4RecordLayout vc4_record_layout(GpuAddr address, bool extended) {
  const GpuAddr attributes = address + kMain.length;
  return {address, attributes, extended ? attributes + kMostAttributes * kAttribute.length : 0};
}

draw::ShaderRecord load_vc4_shader_record(Memory memory, GpuAddr address, uint8_t num_attributes,
                                          bool extended) {
  constexpr std::string_view kOwner = "Shader Record";
  const Vc4RecordLayout at = vc4_record_layout(address, extended);
  draw::ShaderRecord out;
  Record r;
  r.load(memory, at.main, kMain);
  out.raw_attributes = out.packed_positions = true;
  out.fs_writes_z = out.early_z_off = true;  // all tests are made where the program asks for them
  out.point_size_in_vertices = r.flag(vc4_field(kOwner, "Point Size included in shaded vertex data"));
  out.clipping = r.flag(vc4_field(kOwner, "Enable Clipping"));
  out.num_varyings = static_cast<uint8_t>(r.get(vc4_field(kOwner, "Fragment Shader Number of Varyings")));
  out.fs = read_code(r, vc4_field(kOwner, "Fragment Shader Code Address"),
                     vc4_field(kOwner, "Fragment Shader Uniforms Address"),
                     !r.flag(vc4_field(kOwner, "Fragment Shader is single threaded")));
  out.vs = read_code(r, vc4_field(kOwner, "Vertex Shader Code Address"),
                     vc4_field(kOwner, "Vertex Shader Uniforms Address"), false);
  out.cs = read_code(r, vc4_field(kOwner, "Coordinate Shader Code Address"),
                     vc4_field(kOwner, "Coordinate Shader Uniforms Address"), false);
  const uint32_t vs_selects = r.get(kVertexStage.selects), cs_selects = r.get(kCoordinateStage.selects);
  out.num_attributes = static_cast<uint8_t>(std::min<uint32_t>(num_attributes, kMostAttributes));
  for (uint32_t i = 0; i < out.num_attributes; ++i) {
    r.load(memory, at.attributes + i * kAttribute.length, kAttribute);
    draw::Attribute& a = out.attributes[i];
    const auto bytes =
        static_cast<uint16_t>(r.get(vc4_field("Attribute Record", "Number of Bytes minus 1")) + 1);
    a.address = r.get(vc4_field("Attribute Record", "Address"));
    // Assumed of extended records: the word takes the place of the byte.
    a.stride = at.strides ? memory.load<uint32_t>(at.strides + 4 * i)
                          : r.get(vc4_field("Attribute Record", "Stride"));
    a.vs_bytes = vs_selects >> i & 1 ? bytes : 0;
    a.cs_bytes = cs_selects >> i & 1 ? bytes : 0;
    a.vs_offset = static_cast<uint8_t>(r.get(kVertexStage.offset));
    a.cs_offset = static_cast<uint8_t>(r.get(kCoordinateStage.offset));
  }
  return out;
}

std::vector<RecordPlace> vc4_record_places(const draw::DrawState& state) {
  const Vc4RecordLayout at = vc4_record_layout(state.shader_record, state.extended_record);
  std::vector<RecordPlace> places = {{at.main, &kMain}};
  for (uint32_t i = 0; i < state.num_attributes; ++i)
    places.push_back({at.attributes + i * kAttribute.length, &kAttribute});
  return places;
}

}  // namespace v3d::cle
