#include "gpu/cle/dump.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/cle/packet_table.h"
#include "gpu/cle/shader_record.h"
#include "gpu/cle/state_packets.h"

namespace v3d::cle {

namespace {

constexpr uint32_t kMaxPackets = 1u << 20;
constexpr size_t kMaxDepth = 8;

std::string value_text(const uint8_t* body, const Field& f) {
  if (f.width > 32) return absl::StrFormat("0x%x", read_bits(body, f));
  const uint32_t value = read_value(body, f);
  switch (f.type) {
    case FieldType::kInt:
      return absl::StrFormat("%d", static_cast<int32_t>(value));
    case FieldType::kBool:
      return value ? "true" : "false";
    case FieldType::kAddress:
      return absl::StrFormat("0x%08x", value);
    case FieldType::kFloat:
    case FieldType::kBf16:
    case FieldType::kFixed8:
    case FieldType::kSigned4:
      return absl::StrFormat("%g", read_float(body, f));
    default:
      break;
  }
  const char* name = value_name(f.type, value);
  return name ? absl::StrFormat("%d (%s)", value, name) : absl::StrFormat("%d", value);
}

class Dumper {
 public:
  Dumper(Memory memory, const chip::Profile& profile, const DumpSink& sink)
      : memory_(memory), profile_(profile), sink_(sink) {}

  /// @param stop_at_return  a sub-list: ends with its RETURN too
  void list(GpuAddr pc, GpuAddr end, bool stop_at_return);

 private:
  void line(std::string_view text) { sink_.line(std::string(2 * depth_, ' ').append(text)); }
  template <size_t N>
  void fields(const uint8_t* body, const Field (&table)[N], int indent) {
    for (const Field& f : table)
      if (f.name != nullptr) line(absl::StrFormat("%*s%s: %s", indent, "", f.name, value_text(body, f)));
  }
  void packet(const Packet& p);
  void sub_list(GpuAddr start, GpuAddr end);
  void feedback_specs(const Packet& p);
  void shader_state(const Packet& p);
  void record_at(GpuAddr address, const RecordInfo& info);
  void shader(std::string_view stage, const draw::ShaderCode& code);

  Memory memory_;
  const chip::Profile& profile_;
  const DumpSink& sink_;
  size_t depth_ = 0;
  uint32_t packets_ = 0;
  std::set<GpuAddr> seen_, records_;
  std::set<std::pair<GpuAddr, GpuAddr>> programs_;  // with their uniforms
};

void Dumper::list(GpuAddr pc, GpuAddr end, bool stop_at_return) {
  Packet p;
  while (pc != end) {
    if (++packets_ > kMaxPackets) return line("... too many packets");
    if (!seen_.insert(pc).second) return line(absl::StrFormat("0x%08x: continues as above", pc));
    if (!decode(memory_, pc, profile_.generation, &p))
      return line(absl::StrFormat("0x%08x: unknown packet %d", pc, p.number));
    packet(p);
    pc += p.length;
    if (p.opcode == Opcode::kBranch) pc = p.get(field("Branch", "address"));
    if (p.opcode == Opcode::kReturnFromSubList && stop_at_return) return;
    if (p.opcode == Opcode::kHalt) return;
  }
}

void Dumper::sub_list(GpuAddr start, GpuAddr end) {
  if (depth_ == kMaxDepth) return line("... nested too deeply");
  ++depth_;
  list(start, end, true);
  --depth_;
}

void Dumper::packet(const Packet& p) {
  line(absl::StrFormat("0x%08x: %s", p.address, p.info->name));
  fields(p.body, p.info->fields, 4);
  switch (p.opcode) {
    case Opcode::kBranchToSubList:
      // No list ends at address 0, which is never mapped: the RETURN ends it.
      return sub_list(p.get(field("Branch to Sub-list", "address")), 0);
    case Opcode::kStartAddressOfGenericTileList: {
      constexpr std::string_view kOwner = "Start Address of Generic Tile List";
      return sub_list(p.get(field(kOwner, "start")), p.get(field(kOwner, "end")));
    }
    case Opcode::kGlShaderState:
    case Opcode::kGlShaderStateIncludingGs:
      return shader_state(p);
    case Opcode::kTransformFeedbackSpecs:
      return feedback_specs(p);
    default:
      return;
  }
}

void Dumper::record_at(GpuAddr address, const RecordInfo& info) {
  Record r;
  r.load(memory_, address, info);
  line(absl::StrFormat("    0x%08x: %s", address, info.name));
  fields(r.body, info.fields, 8);
}

void Dumper::feedback_specs(const Packet& p) {
  constexpr const RecordInfo& kSpec = record("Transform Feedback Output Data Spec");
  for (uint32_t offset = p.info->length; offset < p.length; offset += kSpec.length)
    record_at(p.address + offset, kSpec);
}

void Dumper::shader(std::string_view stage, const draw::ShaderCode& code) {
  if (sink_.shader && programs_.emplace(code.code, code.uniforms).second) sink_.shader(stage, code);
}

void Dumper::shader_state(const Packet& p) {
  draw::DrawState state;
  apply_state(p, profile_.generation, &state);
  if (!records_.insert(state.shader_record).second) return line("    record as above");
  for (const RecordPlace& place : shader_record_places(state, profile_))
    record_at(place.address, *place.info);
  const draw::ShaderRecord r = load_shader_record(memory_, state, profile_);
  shader("coordinate", r.cs);
  shader("vertex", r.vs);
  if (r.has_gs) shader("geometry bin", r.gs_bin);
  if (r.has_gs) shader("geometry render", r.gs_render);
  shader("fragment", r.fs);
}

}  // namespace

void dump_list(Memory memory, GpuAddr start, GpuAddr end, const chip::Profile& profile,
               const DumpSink& sink) {
  Dumper(memory, profile, sink).list(start, end, false);
}

}  // namespace v3d::cle
