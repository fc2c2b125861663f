#include "gpu/cle/shader_record.h"

#include <algorithm>

#include "gpu/cle/packet_table.h"
#include "gpu/cle/vc4_draw_packets.h"

namespace v3d::cle {

namespace {

/// The fields of one program inside a record.
struct CodeFields {
  Field code, uniforms, four_threads, final_section;

  draw::ShaderCode read(const Record& r) const {
    return {.code = r.get(code),
            .uniforms = r.get(uniforms),
            .four_threads = r.flag(four_threads),
            .final_section = r.flag(final_section)};
  }
};

enum class Form : uint8_t { kOther, k42, k71, kDrawIndex };

Form form_of(const chip::Profile& profile) {
  switch (profile.generation) {
    case chip::Generation::k21:
      return Form::kOther;
    case chip::Generation::k42:
      return Form::k42;
    case chip::Generation::k71:
      return profile.has_draw_index() ? Form::kDrawIndex : Form::k71;
  }
  chip::no_such_generation();
}

template <Form kForm>
consteval Field main_field(std::string_view name) {
  return kForm == Form::kDrawIndex ? field("GL Shader State Record Draw Index", name, k71)
                                   : field("GL Shader State Record", name, kForm == Form::k42 ? k42 : k71);
}

template <Form V>
void read_main(const Record& r, draw::ShaderRecord* out) {
  const auto flag = [&r](const Field& f) { return r.flag(f); };
  out->point_size_in_vertices = flag(main_field<V>("Point size in shaded vertex data"));
  out->clipping = flag(main_field<V>("Enable clipping"));
  out->cs_vertex_id = flag(main_field<V>("Vertex ID read by coordinate shader"));
  out->cs_instance_id = flag(main_field<V>("Instance ID read by coordinate shader"));
  out->cs_base_instance = flag(main_field<V>("Base Instance ID read by coordinate shader"));
  out->vs_vertex_id = flag(main_field<V>("Vertex ID read by vertex shader"));
  out->vs_instance_id = flag(main_field<V>("Instance ID read by vertex shader"));
  out->vs_base_instance = flag(main_field<V>("Base Instance ID read by vertex shader"));
  if constexpr (V == Form::kDrawIndex) {
    out->cs_base_vertex = flag(main_field<V>("cs_basevertex"));
    out->cs_draw_index = flag(main_field<V>("cs_drawindex"));
    out->vs_base_vertex = flag(main_field<V>("vs_basevertex"));
    out->vs_draw_index = flag(main_field<V>("vs_drawindex"));
  }
  out->fs_writes_z = flag(main_field<V>("Fragment shader does Z writes"));
  out->early_z_off = flag(main_field<V>("Turn off early-z test"));
  out->pixel_center_w =
      flag(main_field<V>("Fragment shader uses real pixel centre W in addition to centroid W2"));
  out->sample_shading = flag(main_field<V>("Enable Sample Rate Shading"));
  out->reads_primitive_id = flag(main_field<V>("Any shader reads hardware-written Primitive ID"));
  out->primitive_id_varying = flag(main_field<V>("Insert Primitive ID as first varying to fragment shader"));
  out->no_implicit_varyings = flag(main_field<V>("Disable implicit point/line varyings"));
  out->num_varyings = static_cast<uint8_t>(r.get(main_field<V>("Number of varyings in Fragment Shader")));
  out->cs_output_sectors =
      static_cast<uint8_t>(r.get(main_field<V>("Coordinate Shader output VPM segment size")));
  out->vs_output_sectors =
      static_cast<uint8_t>(r.get(main_field<V>("Vertex Shader output VPM segment size")));
  constexpr CodeFields kFragment{main_field<V>("Fragment Shader Code Address"),
                                 main_field<V>("Fragment Shader Uniforms Address"),
                                 main_field<V>("Fragment Shader 4-way threadable"),
                                 main_field<V>("Fragment Shader start in final thread section")};
  constexpr CodeFields kVertex{main_field<V>("Vertex Shader Code Address"),
                               main_field<V>("Vertex Shader Uniforms Address"),
                               main_field<V>("Vertex Shader 4-way threadable"),
                               main_field<V>("Vertex Shader start in final thread section")};
  constexpr CodeFields kCoordinate{main_field<V>("Coordinate Shader Code Address"),
                                   main_field<V>("Coordinate Shader Uniforms Address"),
                                   main_field<V>("Coordinate Shader 4-way threadable"),
                                   main_field<V>("Coordinate Shader start in final thread section")};
  out->fs = kFragment.read(r);
  out->vs = kVertex.read(r);
  out->cs = kCoordinate.read(r);
}

/// Rows of one lane: a batch of fewer lanes has the sectors of all 16 to itself.
uint16_t geometry_rows(const Record& params) {
  constexpr Field kSectors =
      field("Tessellation/Geometry Shader Params", "GS output segment size in sectors");
  constexpr Field kPack = field("Tessellation/Geometry Shader Params", "GS output segment pack mode");
  constexpr uint32_t kLanesPerWidth[4] = {1, 2, 4, 16};
  return static_cast<uint16_t>(params.get(kSectors) * 8 * kLanesPerWidth[params.get(kPack)]);
}

void read_geometry(Memory memory, const ShaderRecordLayout& at, draw::ShaderRecord* out) {
  constexpr std::string_view kOwner = "Geometry Shader State Record";
  constexpr CodeFields kBin{field(kOwner, "Geometry Bin Mode Shader Code Address"),
                            field(kOwner, "Geometry Bin Mode Shader Uniforms Address"),
                            field(kOwner, "Geometry Bin Mode Shader 4-way threadable"),
                            field(kOwner, "Geometry Bin Mode Shader Start in final thread section")};
  constexpr CodeFields kRender{field(kOwner, "Geometry Render Mode Shader Code Address"),
                               field(kOwner, "Geometry Render Mode Shader Uniforms Address"),
                               field(kOwner, "Geometry Render Mode Shader 4-way threadable"),
                               field(kOwner, "Geometry Render Mode Shader Start in final thread section")};
  constexpr Field kFormat = field("Tessellation/Geometry Common Params", "Geometry Shader output format");
  constexpr Field kInstances = field("Tessellation/Geometry Common Params", "Geometry Shader Instances");
  Record r;
  r.load(memory, at.geometry, record(kOwner));
  out->has_gs = true;
  out->gs_bin = kBin.read(r);
  out->gs_render = kRender.read(r);
  r.load(memory, at.common_params, record("Tessellation/Geometry Common Params"));
  out->gs_output = static_cast<uint8_t>(r.get(kFormat));
  const uint32_t instances = r.get(kInstances);
  out->gs_invocations = static_cast<uint8_t>(instances == 0 ? 32 : instances);
  r.load(memory, at.bin_params, record("Tessellation/Geometry Shader Params"));
  out->gs_bin_rows = geometry_rows(r);
  r.load(memory, at.render_params, record("Tessellation/Geometry Shader Params"));
  out->gs_render_rows = geometry_rows(r);
}

draw::Attribute read_attribute(const Record& r) {
  constexpr std::string_view kOwner = "GL Shader State Attribute Record";
  draw::Attribute a;
  a.address = r.get(field(kOwner, "Address"));
  const uint32_t size = r.get(field(kOwner, "Vec size"));
  a.vec_size = static_cast<uint8_t>(size == 0 ? 4 : size);
  a.type = static_cast<uint8_t>(r.get(field(kOwner, "Type")));
  a.is_signed = r.flag(field(kOwner, "Signed int type"));
  a.normalized = r.flag(field(kOwner, "Normalized int type"));
  a.read_as_int = r.flag(field(kOwner, "Read as int/uint"));
  a.cs_words = static_cast<uint8_t>(r.get(field(kOwner, "Number of values read by Coordinate shader")));
  a.vs_words = static_cast<uint8_t>(r.get(field(kOwner, "Number of values read by Vertex shader")));
  a.divisor = static_cast<uint16_t>(r.get(field(kOwner, "Instance Divisor")));
  a.stride = r.get(field(kOwner, "Stride"));
  a.max_index = r.get(field(kOwner, "Maximum Index"));
  return a;
}

}  // namespace

const RecordInfo& shader_record_info(const chip::Profile& profile) {
  static constexpr RecordInfo kNone = {"No record of this form", k21, 0, {}};
  switch (form_of(profile)) {
    case Form::kOther:
      return kNone;
    case Form::k42:
      return record("GL Shader State Record", k42);
    case Form::k71:
      return record("GL Shader State Record", k71);
    default:
      return record("GL Shader State Record Draw Index", k71);
  }
}

ShaderRecordLayout shader_record_layout(GpuAddr address, bool with_gs, const chip::Profile& profile) {
  ShaderRecordLayout at{};
  if (with_gs) {
    at.geometry = address;
    at.common_params = at.geometry + record("Geometry Shader State Record").length;
    at.bin_params = at.common_params + record("Tessellation/Geometry Common Params").length;
    at.render_params = at.bin_params + record("Tessellation/Geometry Shader Params").length;
    address = at.render_params + record("Tessellation/Geometry Shader Params").length;
  }
  at.main = address;
  at.attributes = address + shader_record_info(profile).length;
  return at;
}

draw::ShaderRecord load_shader_record(Memory memory, GpuAddr address, uint8_t num_attributes, bool with_gs,
                                      const chip::Profile& profile) {
  const ShaderRecordLayout at = shader_record_layout(address, with_gs, profile);
  draw::ShaderRecord out;
  Record r;
  r.load(memory, at.main, shader_record_info(profile));
  switch (form_of(profile)) {
    case Form::kOther:
      break;
    case Form::k42:
      read_main<Form::k42>(r, &out);
      out.default_attributes = r.get(main_field<Form::k42>("Address of default attribute values"));
      break;
    case Form::k71:
      read_main<Form::k71>(r, &out);
      break;
    case Form::kDrawIndex:
      read_main<Form::kDrawIndex>(r, &out);
  }
  if (with_gs) read_geometry(memory, at, &out);
  out.num_attributes = static_cast<uint8_t>(std::min<size_t>(num_attributes, out.attributes.size()));
  constexpr const RecordInfo& kAttribute = record("GL Shader State Attribute Record");
  for (uint32_t i = 0; i < out.num_attributes; ++i) {
    r.load(memory, at.attributes + i * kAttribute.length, kAttribute);
    out.attributes[i] = read_attribute(r);
  }
  return out;
}

draw::ShaderRecord load_shader_record(Memory memory, const draw::DrawState& state,
                                      const chip::Profile& profile) {
  switch (profile.generation) {
    case chip::Generation::k21:
      return load_vc4_shader_record(memory, state.shader_record, state.num_attributes, state.extended_record);
    case chip::Generation::k42:
    case chip::Generation::k71:
      break;
  }
  return load_shader_record(memory, state.shader_record, state.num_attributes, state.with_gs, profile);
}

std::vector<RecordPlace> shader_record_places(const draw::DrawState& state, const chip::Profile& profile) {
  switch (profile.generation) {
    case chip::Generation::k21:
      return vc4_record_places(state);
    case chip::Generation::k42:
    case chip::Generation::k71:
      break;
  }
  const ShaderRecordLayout at = shader_record_layout(state.shader_record, state.with_gs, profile);
  std::vector<RecordPlace> places;
  if (state.with_gs)
    places = {{at.geometry, &record("Geometry Shader State Record")},
              {at.common_params, &record("Tessellation/Geometry Common Params")},
              {at.bin_params, &record("Tessellation/Geometry Shader Params")},
              {at.render_params, &record("Tessellation/Geometry Shader Params")}};
  places.push_back({at.main, &shader_record_info(profile)});
  constexpr const RecordInfo& kAttribute = record("GL Shader State Attribute Record");
  for (uint32_t i = 0; i < state.num_attributes; ++i)
    places.push_back({at.attributes + i * kAttribute.length, &kAttribute});
  return places;
}

}  // namespace v3d::cle
