#include "tools/cli/profiling/collect.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "gpu/perf/record/sampling.h"
#include "gpu/qpu/isa/instruction.h"
#include "tools/cli/captures/render_images.h"

namespace v3d::tools::profiling {
namespace {

using daemon::CapturedJob;

std::vector<Target> targets_of(const CapturedJob& job, Memory memory, chip::Generation generation) {
  std::vector<Target> targets;
  ByteOrders orders;  // no picture is made
  for (const StoredImage& image :
       stored_images(memory, generation, job.cl().rcl_start, job.cl().rcl_end, &orders))
    targets.push_back({.address = image.packet.address,
                       .width = image.width,
                       .height = image.height,
                       .format = static_cast<uint32_t>(image.packet.format),
                       .layout = static_cast<uint32_t>(image.packet.memory_format)});
  return targets;
}

void add(const Stalls& from, Stalls* to) {
  for (size_t i = 0; i < from.size(); ++i) (*to)[i] += from[i];
}

}  // namespace

Collector::Collector(daemon::CaptureReader& reader)
    : reader_(reader), device_(reader.profile(), pool_), jobs_(device_) {
  device_.set_timing(timing::kWhole);
  profile_.board = reader.profile().name;
  profile_.description = reader.profile().description;
  profile_.generation = reader.profile().generation;
}

absl::Status Collector::run_next() {
  const auto captured = reader_.next();
  if (!captured.ok()) return captured.status();
  device::Context& context = reader_.context(captured->context);
  reader_.restore_found();
  const Memory memory = context.space().memory();
  const device::JobResult result = jobs_.run(*captured, context);
  Job job;
  job.number = static_cast<uint32_t>(profile_.jobs.size()) + 1;
  job.kind = kind_of(*captured);
  job.client = captured->context;
  job.submission = captured->submission;
  job.end = result.end_name();
  job.message = result.message;
  job.no_prediction = result.why_not_predicted();
  if (result.prediction) add_prediction(*result.prediction, memory, &job);
  if (job.kind == Kind::kRender) job.targets = targets_of(*captured, memory, profile_.generation);
  context.space().take_faults();  // ours, not those of the next job
  profile_.jobs.push_back(std::move(job));
  return absl::OkStatus();
}

void Collector::add_prediction(const timing::Prediction& prediction, Memory memory, Job* job) {
  job->predicted = true;
  for (const auto& program : prediction.programs) add_program(program, memory, job);
  for (const auto& draw : prediction.draws)
    job->draws.push_back({.number = static_cast<uint32_t>(job->draws.size()),
                          .vertices = draw.vertices,
                          .primitives = draw.primitives,
                          .quads = draw.quads,
                          .vertex_batches = draw.vertex_batches,
                          .fragment_batches = draw.fragment_batches,
                          .clocks = draw.qpu_clocks});
  for (const auto& span : prediction.spans)
    job->spans.push_back({span.track, span.name, span.begin, span.end});
  job->times = prediction;
  job->times.programs.clear();
  job->times.draws.clear();
  job->times.spans.clear();
  if (prediction.clean_clocks == 0) return;
  const uint64_t end = prediction.clocks, cleans = end - prediction.clean_clocks;
  job->spans.push_back({"L2T", "written back", cleans, end});
}

void Collector::add_program(const timing::Prediction::ProgramTime& program, Memory memory, Job* job) {
  const size_t index = find_shader(program, job->client, memory);
  Shader& shader = profile_.shaders[index];
  ++shader.jobs;
  shader.batches += program.batches;
  shader.instructions += program.instructions;
  add(program.stalls, &shader.stalls);
  for (size_t i = 0; i < std::min(program.at.size(), shader.at.size()); ++i) {
    shader.at[i].issued += program.at[i].issued;
    add(program.at[i].stalls, &shader.at[i].stalls);
  }
  job->shaders.push_back({.shader = index,
                          .batches = program.batches,
                          .instructions = program.instructions,
                          .stalls = program.stalls});
}

bool Collector::is_still(Shader& shader, const timing::Prediction::ProgramTime& program,
                         Memory memory) const {
  const auto word = [&](size_t i) {
    return memory.load<uint64_t>(static_cast<GpuAddr>(program.code + 8 * i));
  };
  for (size_t i = 0; i < std::min(shader.at.size(), program.at.size()); ++i)
    if (shader.at[i].word != word(i)) return false;
  // How long it is shows as its instructions run.
  for (size_t i = shader.at.size(); i < program.at.size(); ++i)
    shader.at.push_back(
        {.word = word(i), .text = qpu::disassemble(profile_.generation, word(i)), .issued = 0, .stalls = {}});
  return true;
}

size_t Collector::find_shader(const timing::Prediction::ProgramTime& program, uint32_t client,
                              Memory memory) {
  std::vector<size_t>& here = shaders_[{client, program.stage, program.code}];
  for (const size_t index : here)
    if (is_still(profile_.shaders[index], program, memory)) return index;
  std::string name = absl::StrFormat("%s 0x%08x", program.stage, program.code);
  if (client != 1) absl::StrAppendFormat(&name, " of client %d", client);
  if (!here.empty()) absl::StrAppendFormat(&name, " (%d)", here.size() + 1);
  Shader shader;
  shader.stage = program.stage;
  shader.name = std::move(name);
  is_still(shader, program, memory);
  here.push_back(profile_.shaders.size());
  profile_.shaders.push_back(std::move(shader));
  return here.back();
}

}  // namespace v3d::tools::profiling
