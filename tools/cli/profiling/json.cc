/// @file A profile as JSON, which the page of to_html() reads too.
#include <map>

#include "daemon/json_writer.h"
#include "tools/cli/profiling/writers.h"

namespace v3d::tools::profiling {

using daemon::JsonWriter;

namespace {

void write(const Stalls& stalls, JsonWriter* json) {
  json->key("stalls").begin_array();
  for (const uint64_t clocks : stalls) json->value(clocks);
  json->end_array();
}

void write_shares(const timing::Prediction& p, JsonWriter* json) {
  json->key("shares").begin_object();
  json->field("issue", p.issue_share()).field("qpu", p.qpu_share()).field("tmu", p.tmu_share());
  json->field("l2", p.l2_share()).field("dram", p.dram_share()).end_object();
}

void write_units(const timing::Prediction& p, JsonWriter* json) {
  const auto share = [&](const char* name, uint64_t busy) { json->field(name, p.unit_share(busy)); };
  json->key("units").begin_object();
  share("VCD", p.units.fetch);
  share("PTB", p.units.binner);
  share("FEP", p.units.front_end);
  share("TLB", p.units.tlb);
  share("loads and stores", p.units.load_store);
  json->end_object();
}

void write_memory(const timing::MemoryCounts& m, JsonWriter* json) {
  json->key("memory").begin_object();
  json->field("dram_read", m.all_read()).field("dram_written", m.all_written());
  json->field("l2_read", m.read_bytes).field("l2_written", m.write_bytes);
  json->field("lists_read", m.list_read).field("lists_written", m.list_written);
  json->field("tiles_loaded", m.tile_loaded).field("tiles_stored", m.tile_stored);
  json->field("tfu_read", m.transfer_read).field("tfu_written", m.transfer_written);
  json->field("l2_hits", m.hits()).field("l2_misses", m.misses()).field("l2_writes", m.l2_writes);
  json->field("tmu_hits", m.l1_hits).field("tmu_misses", m.l1_misses);
  json->field("code_hits", m.code_hits).field("code_misses", m.code_misses);
  json->field("page_misses", m.page_misses).end_object();
}

void write_times(const timing::Prediction& p, JsonWriter* json) {
  json->field("submit_ns", p.submit_ns).field("clocks", p.clocks).field("clock_mhz", p.clock_mhz);
  json->field("bound", timing::bound_name(p.bound()));
  write_shares(p, json);
  if (p.kind == timing::JobKind::kBin || p.kind == timing::JobKind::kRender) write_units(p, json);
  json->field("qpus", p.qpus).field("instructions", p.instructions).field("waiting", p.waiting);
  json->field("resident", p.resident).field("tmu_busy", p.tmu_busy).field("lookups", p.lookups);
  write(p.stalls, json);
  write_memory(p.memory, json);
}

void write(const ShaderUse& use, JsonWriter* json) {
  json->begin_object().field("shader", use.shader).field("batches", use.batches);
  json->field("instructions", use.instructions);
  write(use.stalls, json);
  json->end_object();
}

void write(const Draw& draw, JsonWriter* json) {
  json->begin_object().field("number", draw.number).field("vertices", draw.vertices);
  json->field("primitives", draw.primitives).field("quads", draw.quads);
  json->field("vertex_batches", draw.vertex_batches).field("fragment_batches", draw.fragment_batches);
  json->field("clocks", draw.clocks).end_object();
}

/// Those of each track together: there are many.
void write(const std::vector<Span>& spans, JsonWriter* json) {
  std::map<std::string, std::vector<const Span*>> tracks;
  for (const Span& span : spans) tracks[span.track].push_back(&span);
  json->key("spans").begin_object();
  for (const auto& [track, on_it] : tracks) {
    json->key(track).begin_array();
    for (const Span* span : on_it)
      json->begin_array().value(span->name).value(span->begin).value(span->end).end_array();
    json->end_array();
  }
  json->end_object();
}

void write(const Target& target, JsonWriter* json) {
  json->begin_object().field("address", target.address).field("width", target.width);
  json->field("height", target.height).end_object();
}

void write(const Instruction& instruction, JsonWriter* json);
void write(const Job& job, JsonWriter* json);
void write(const Frame& frame, JsonWriter* json);
void write(const Shader& shader, JsonWriter* json);

template <typename T>
void write_all(const char* key, const std::vector<T>& values, JsonWriter* json) {
  json->key(key).begin_array();
  for (const T& value : values) write(value, json);
  json->end_array();
}

void write(const Job& job, JsonWriter* json) {
  json->on_new_line().begin_object();
  json->field("number", job.number).field("kind", kind_name(job.kind)).field("client", job.client);
  json->field("submission", job.submission).field("frame", job.frame).field("end", job.end);
  if (!job.message.empty()) json->field("message", job.message);
  json->field("begin_ns", job.begin_ns).field("end_ns", job.end_ns);
  if (job.predicted)
    write_times(job.times, json);
  else
    json->field("no_prediction", job.no_prediction);
  write_all("targets", job.targets, json);
  write_all("shaders", job.shaders, json);
  write_all("draws", job.draws, json);
  write(job.spans, json);
  json->end_object();
}

void write(const Frame& frame, JsonWriter* json) {
  json->on_new_line().begin_object();
  json->field("number", frame.number).field("client", frame.client).field("jobs", frame.jobs);
  json->field("begin_ns", frame.begin_ns).field("end_ns", frame.end_ns);
  json->key("busy_ns").begin_object();
  for (size_t kind = 0; kind < frame.busy_ns.size(); ++kind)
    json->field(kind_name(static_cast<Kind>(kind)), frame.busy_ns[kind]);
  json->end_object().field("dram_bytes", frame.dram_bytes).end_object();
}

void write(const Instruction& instruction, JsonWriter* json) {
  json->begin_object().field("text", instruction.text).field("issued", instruction.issued);
  write(instruction.stalls, json);
  json->end_object();
}

void write(const Shader& shader, JsonWriter* json) {
  json->on_new_line().begin_object();
  json->field("name", shader.name).field("stage", shader.stage).field("jobs", shader.jobs);
  json->field("batches", shader.batches).field("instructions", shader.instructions);
  write(shader.stalls, json);
  write_all("at", shader.at, json);
  json->end_object();
}

}  // namespace

std::string to_json(const Profile& profile) {
  JsonWriter json;
  json.begin_object().field("format", "v3demu profile 1");
  json.field("board", profile.board).field("description", profile.description);
  json.field("end_ns", profile.end_ns());
  json.field("frames_by", profile.frames_are_submissions ? "submission" : "targets");
  json.key("stalls").begin_array();
  for (int i = 0; i < timing::kNumStalls; ++i) json.value(timing::stall_name(static_cast<timing::Stall>(i)));
  json.end_array();
  write_all("frames", profile.frames, &json);
  write_all("jobs", profile.jobs, &json);
  write_all("shaders", profile.shaders, &json);
  json.end_object();
  return json.take() + "\n";
}

}  // namespace v3d::tools::profiling
