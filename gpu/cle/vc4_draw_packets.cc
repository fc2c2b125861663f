#include "gpu/cle/vc4_draw_packets.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_format.h"
#include "gpu/cle/common_state.h"
#include "gpu/cle/vc4_packet_table.h"

namespace v3d::cle {
namespace {

constexpr uint32_t kMostAttributes = 8;
constexpr uint32_t kTileSize = 64, kMultisampleTileSize = 32;

/// Flags as the neutral form has them: 24 to a word.
constexpr uint32_t kFlagsInAWord = 24;

constexpr StateFields kStateFields = {
    .point_size = vc4_field("Point size", "Point Size"),
    .line_width = vc4_field("Line width", "Line width"),
    .offset_factor = vc4_field("Depth Offset", "Depth Offset Factor"),
    .offset_units = vc4_field("Depth Offset", "Depth Offset Units"),
    .clip_left = vc4_field("Clip Window", "Clip Window Left Pixel Coordinate"),
    .clip_bottom = vc4_field("Clip Window", "Clip Window Bottom Pixel Coordinate"),
    .clip_width = vc4_field("Clip Window", "Clip Window Width in pixels"),
    .clip_height = vc4_field("Clip Window", "Clip Window Height in pixels"),
    .half_width = vc4_field("Clipper XY Scaling", "Viewport Half-Width in 1/16th of pixel"),
    .half_height = vc4_field("Clipper XY Scaling", "Viewport Half-Height in 1/16th of pixel"),
    .z_scale = vc4_field("Clipper Z Scale and Offset", "Viewport Z Scale (Zc to Zs)"),
    .z_offset = vc4_field("Clipper Z Scale and Offset", "Viewport Z Offset (Zc to Zs)")};

constexpr CfgFields kCfgFields = {
    .draw_front = vc4_field("Configuration Bits", "Enable Forward Facing Primitive"),
    .draw_back = vc4_field("Configuration Bits", "Enable Reverse Facing Primitive"),
    .clockwise = vc4_field("Configuration Bits", "Clockwise Primitives"),
    .depth_offset = vc4_field("Configuration Bits", "Enable Depth Offset"),
    .oversample = vc4_field("Configuration Bits", "Rasteriser Oversample Mode"),
    .depth_func = vc4_field("Configuration Bits", "Depth-Test Function"),
    .z_write = vc4_field("Configuration Bits", "Z updates enable")};

void set_cfg_bits(const Packet& p, draw::CfgBits* c, std::string* error) {
  constexpr std::string_view kOwner = "Configuration Bits";
  constexpr uint32_t kFourSamples = 1;
  if (const uint32_t oversample = p.get(kCfgFields.oversample); oversample > kFourSamples)
    *error = absl::StrFormat("oversample mode %u is not implemented", oversample);
  if (p.flag(vc4_field(kOwner, "Antialiased Points and Lines")))
    *error = "anti-aliased points and lines are not implemented";
  if (p.flag(vc4_field(kOwner, "Coverage Pipe Select")))
    *error = "coverage of vector graphics is not implemented";
  *c = draw::CfgBits{};
  set_common_cfg_bits<kCfgFields>(p, c);
  // Early Z rejects nothing that the late test would not: it is left out (vc4-graphics.md 3.5). Near and far
  // are cut at -Wc and Wc (2.3).
  c->z_clip_mode = 1;
}

void set_flat_flags(const Packet& p, draw::DrawState* s) {
  const uint32_t flags = p.get(vc4_field("Flat Shade Flags", "Flat-shading Flags"));
  s->flat = {};
  s->flat.words[0] = flags & ((1u << kFlagsInAWord) - 1);
  s->flat.words[1] = flags >> kFlagsInAWord;
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
      set_cfg_bits(p, &s->cfg, error);
      return true;
    case Opcode::kFlatShadeFlags:
      set_flat_flags(p, s);
      return true;
    case Opcode::kViewportOffset:
      set_viewport(p, s);
      return true;
    case Opcode::kPrimListFormat:  // of lists that only the hardware reads
      return true;
    default:
      return apply_common_state<kStateFields>(p, s);
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
