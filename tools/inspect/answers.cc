#include "tools/inspect/answers.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "gpu/chip/profile.h"
#include "gpu/perf/timing/prediction.h"
#include "gpu/qpu/isa/assembler.h"
#include "tools/cli/captures/job_listing.h"
#include "tools/inspect/answer_parts.h"
#include "tools/inspect/draw_answers.h"
#include "tools/inspect/history_json.h"

namespace v3d::inspect {
namespace {

using daemon::CapturedJob;

/// Instructions in one answer.
constexpr uint64_t kMostSteps = 2048;

const char* text_of(tlb::ColorType type) {
  constexpr const char* kNames[] = {"8i", "8ui", "8", "16i", "16ui", "16f", "32i", "32ui", "32f"};
  return kNames[static_cast<size_t>(type)];
}
const char* text_of(tlb::DepthType type) {
  constexpr const char* kNames[] = {"32F", "24", "16"};
  return kNames[static_cast<size_t>(type)];
}

Json json_of(const tlb::Config& config) {
  Json targets = Json::array();
  for (size_t rt = 0; rt < tlb::kMaxRenderTargets; ++rt)
    if (config.targets[rt].used)
      targets.push_back({{"target", rt},
                         {"type", text_of(config.targets[rt].type)},
                         {"bits", 32 << config.targets[rt].bpp}});
  return {{"width", config.width},
          {"height", config.height},
          {"tile_width", config.tile_width},
          {"tile_height", config.tile_height},
          {"samples", config.multisample ? 4 : 1},
          {"depth_type", text_of(config.depth_type)},
          {"targets", targets}};
}

Answer capture(Inspector& inspector, const std::string& file, const std::string& other) {
  Json jobs = Json::array();
  uint32_t number = 0;
  for (const CapturedJob& job : inspector.jobs()) {
    ++number;
    jobs.push_back({{"number", number},
                    {"kind", tools::kind_name(job)},
                    {"client", job.context},
                    {"submission", job.submission},
                    {"summary", inspector.summaries()[number - 1]}});
  }
  return good({{"file", file},
               {"board", inspector.profile().name},
               {"description", inspector.profile().description},
               {"other", other.empty() ? Json() : Json(other)},
               {"jobs", jobs}});
}

/// What units did: shares of the job's time in which they have work, and what went through them.
Json units_of(const timing::Prediction& p) {
  const timing::MemoryCounts& m = p.memory;
  return {{"clocks", p.clocks},
          {"qpus", p.qpus},
          {"issue", p.issue_share()},
          {"qpu", p.qpu_share()},
          {"tmu", p.tmu_share()},
          {"l2", p.l2_share()},
          {"dram", p.dram_share()},
          {"fetch", p.unit_share(p.units.fetch)},
          {"binner", p.unit_share(p.units.binner)},
          {"front_end", p.unit_share(p.units.front_end)},
          {"tlb", p.unit_share(p.units.tlb)},
          {"load_store", p.unit_share(p.units.load_store)},
          {"threads", static_cast<double>(p.resident) / static_cast<double>(std::max<uint64_t>(p.clocks, 1))},
          {"instructions", p.instructions},
          {"lookups", p.lookups},
          {"l1_hits", m.l1_hits},
          {"l1_misses", m.l1_misses},
          {"l2_hits", m.hits()},
          {"l2_misses", m.misses()},
          {"read_bytes", m.all_read()},
          {"written_bytes", m.all_written()},
          {"lists_written", m.list_written},
          {"lists_read", m.list_read},
          {"tile_loaded", m.tile_loaded},
          {"tile_stored", m.tile_stored},
          {"transferred", m.transfer_read + m.transfer_written}};
}

Answer time(Inspector& inspector, uint32_t number) {
  const auto time = inspector.time(number);
  if (absl::IsUnavailable(time.status())) return good({{"busy", true}});
  if (!time.ok()) return wrong(time.status());
  if (!time->prediction) return good({{"end", time->end}, {"why_not", time->why_not}});
  const timing::Prediction& p = *time->prediction;
  Json draws = Json::array(), programs = Json::array();
  for (const auto& draw : p.draws)
    draws.push_back({{"clocks", draw.qpu_clocks}, {"quads", draw.quads}, {"vertices", draw.vertices}});
  for (const auto& program : p.programs) {
    Json at = Json::array();
    for (const auto& instruction : program.at)
      at.push_back({instruction.issued, timing::sum(instruction.stalls)});
    programs.push_back({{"stage", program.stage},
                        {"code", hex(program.code)},
                        {"batches", program.batches},
                        {"instructions", program.instructions},
                        {"stalled", timing::sum(program.stalls)},
                        {"at", at}});
  }
  return good({{"end", time->end},
               {"ns", p.ns() - p.submit_ns},
               {"bound", timing::bound_name(p.bound())},
               {"units", units_of(p)},
               {"draws", draws},
               {"programs", programs}});
}

Answer listing(Inspector& inspector, uint32_t number) {
  const auto lines = inspector.listing(number);
  if (!lines.ok()) return wrong(lines.status());
  return good({{"lines", *lines}, {"is_cut", lines->size() == Inspector::kMostLines}});
}

/// Up to and including a draw, or before it; all, if none is named.
uint64_t draws_of(Numbers& numbers) {
  const uint64_t last = numbers.get("draw", ~0u);
  return numbers.get("before", 0) != 0 ? last : last + 1;
}

Answer picture(Inspector& inspector, uint32_t job, Numbers& numbers) {
  const uint64_t draws = draws_of(numbers);
  const uint32_t layer = numbers.get("layer", 0), buffer = numbers.get("buffer", 0),
                 sample = numbers.get("sample", 0);
  if (!numbers.wrong().empty()) return wrong(400, numbers.wrong());
  if (buffer > kStencilBuffer || buffer == kNoBuffer || sample > 3) return wrong(400, "no such buffer");
  const auto picture = inspector.picture(job, draws, layer, static_cast<uint8_t>(buffer), sample);
  if (!picture.ok()) return wrong(picture.status());
  Json head = json_of(picture->config);
  head["layers"] = picture->layers;
  if (picture->pixels.empty()) {
    head["problem"] =
        picture->width == 0 ? "the job stores nothing there" : "there is no such buffer, or it is too large";
    head["width"] = head["height"] = 0;
  }
  return with_pixels(head, picture->pixels);
}

Answer heat(Inspector& inspector, uint32_t job, Numbers& numbers, const Parameters& parameters) {
  const uint64_t draws = draws_of(numbers);
  const uint32_t layer = numbers.get("layer", 0);
  const std::optional<Heat> what = find_heat(parameters("what").value_or(""));
  if (!numbers.wrong().empty()) return wrong(400, numbers.wrong());
  if (!what) return wrong(400, "no such map");
  const auto map = inspector.heat(job, draws, layer, *what);
  if (!map.ok()) return wrong(map.status());
  Json head = json_of(map->config);
  head["layers"] = map->layers;
  if (map->pixels.empty()) {
    head["problem"] = map->config.width == 0 ? "the job draws nothing there" : "there are too many pixels";
    head["width"] = head["height"] = 0;
  }
  return with_pixels(head, map->pixels);
}

Answer explain(Inspector& inspector, uint32_t job, Numbers& numbers) {
  const uint32_t code = numbers.get("code");
  if (!numbers.wrong().empty()) return wrong(400, numbers.wrong());
  const auto explanation = inspector.explain(job, code);
  if (!explanation.ok()) return wrong(explanation.status());
  Json instructions = Json::array();
  for (const auto& one : explanation->instructions)
    instructions.push_back({{"text", one.text},
                            {"on_path", one.on_path},
                            {"alone", one.alone_stalled},
                            {"all", one.stalled},
                            {"notes", one.notes}});
  return good({{"summary", tools::explain::summary(inspector.profile(), *explanation)},
               {"instructions", instructions},
               {"advice", explanation->advice}});
}

Answer memory(Inspector& inspector, uint32_t job, Numbers& numbers) {
  const uint32_t address = numbers.get("address");
  if (!numbers.wrong().empty()) return wrong(400, numbers.wrong());
  const auto view = inspector.memory(job, address);
  if (!view.ok()) return wrong(view.status());
  constexpr const char* kBy[] = {"nobody", "job", "program"};
  Json words = Json::array();
  for (const std::optional<uint32_t>& word : view->words) words.push_back(word ? Json(*word) : Json());
  return good({{"address", view->address},
               {"words", words},
               {"by", kBy[static_cast<size_t>(view->by)]},
               {"job", view->job}});
}

PixelPlace place_of(uint32_t job, Numbers& numbers) {
  return {job, numbers.get("layer", 0), numbers.get("x"), numbers.get("y"), numbers.get("sample", 0) & 3};
}

Answer history(Inspector& inspector, uint32_t job, Numbers& numbers) {
  const PixelPlace place = place_of(job, numbers);
  if (!numbers.wrong().empty()) return wrong(400, numbers.wrong());
  const auto history = inspector.history(place);
  if (!history.ok()) return wrong(history.status());
  Json events = Json::array();
  const absl::Status seen = inspector.with_draws(job, [&](const draw::BinResult* bin) {
    for (const PixelEvent& event : history->events)
      events.push_back(history_json(history->config, bin, event, place.sample));
  });
  if (!seen.ok()) return wrong(seen);
  return good({{"events", events}, {"is_cut", history->is_cut}, {"message", history->message}});
}

Json json_of(const Lanes& lanes) {
  Json values = Json::array();
  for (int n = 0; n < kLanes; ++n) values.push_back(uint32_t{lanes[n]});
  return values;
}

Json json_of(const Steps& steps) {
  Json all = Json::array(), initial = Json::array(), textures = Json::array();
  for (const Lanes& lanes : steps.initial) initial.push_back(json_of(lanes));
  for (const Step& step : steps.steps) {
    Json changed = Json::array();
    for (const auto& [number, lanes] : step.changed) changed.push_back({number, json_of(lanes)});
    all.push_back({{"index", step.index},
                   {"address", hex(step.address)},
                   {"text", step.text},
                   {"detail", step.detail},
                   {"changed", changed},
                   {"flags", step.flags}});
  }
  for (const UsedTexture& used : steps.textures) textures.push_back({used[0], used[1], used[2], used[3]});
  return {{"program", hex(steps.program)},
          {"tidx", steps.tidx},
          {"executed", steps.executed},
          {"threads", steps.threads ? Json(*steps.threads) : Json()},
          {"error", steps.error},
          {"registers", steps.registers},
          {"flags", steps.flags},
          {"initial", initial},
          {"initial_flags", steps.initial_flags},
          {"steps", all},
          {"textures", textures}};
}

Answer steps(Inspector& inspector, uint32_t job, Numbers& numbers, const Parameters& parameters) {
  StepsWanted wanted;
  wanted.stage = parameters("stage").value_or("fragment");
  wanted.thread = numbers.get("thread", 0);
  wanted.first = numbers.get("first", 0);
  wanted.count = std::min<uint64_t>(numbers.get("count", 512), kMostSteps);
  const bool has_pixel = parameters("x").has_value();
  const PixelPlace place = has_pixel ? place_of(job, numbers) : PixelPlace{};
  if (!numbers.wrong().empty()) return wrong(400, numbers.wrong());
  const auto steps = has_pixel ? inspector.fragment_steps(place, wanted) : inspector.steps(job, wanted);
  if (!steps.ok()) return wrong(steps.status());
  if (!steps->found)
    return wrong(404, absl::StrFormat("no %s thread %d; the job runs %d", wanted.stage, wanted.thread,
                                      steps->threads.value_or(0)));
  return good(json_of(*steps));
}

/// Lines "ADDRESS TEXT": instructions in place of those that are there.
absl::StatusOr<std::vector<PatchedWord>> patches_of(chip::Generation generation, const std::string& text) {
  constexpr size_t kMost = 64;
  std::vector<PatchedWord> patches;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n', absl::SkipEmpty()))) {
    const size_t blank = std::min(line.find(' '), line.size());
    uint32_t address = 0;
    if (!absl::SimpleHexAtoi(line.substr(0, blank), &address) || address % 8 != 0)
      return absl::InvalidArgumentError(
          absl::StrCat("no address of an instruction: ", line.substr(0, blank)));
    const qpu::Assembly assembly = qpu::assemble(generation, line.substr(blank));
    if (!assembly.errors.empty()) return absl::InvalidArgumentError(qpu::to_string(assembly.errors[0]));
    if (assembly.words.size() != 1)
      return absl::InvalidArgumentError("one instruction takes the place of one");
    if (patches.size() == kMost)
      return absl::InvalidArgumentError(absl::StrCat("more than ", kMost, " edits"));
    patches.push_back({address, assembly.words[0]});
  }
  return patches;
}

/// How far it is, or all of it. Other questions are answered meanwhile.
Answer profile(WholeProfile& profile) {
  constexpr std::chrono::milliseconds kPatience(200);
  const auto progress = profile.go_on(kPatience);
  if (!progress.ok()) return wrong(progress.status());
  if (progress->json) return {200, true, *progress->json};
  return good({{"done", progress->done}, {"of", profile.jobs()}});
}

}  // namespace

Answer answer(const Captures& captures, const std::string& question, const Parameters& parameters) {
  const bool is_other = parameters("other").value_or("0") == "1" && captures.other.inspector != nullptr;
  const Captures::One& asked = is_other ? captures.other : captures.first;
  Inspector& inspector = *asked.inspector;
  if (question == "capture")
    return capture(inspector, asked.file, is_other ? captures.first.file : captures.other.file);
  if (question == "profile" && asked.profile) return profile(*asked.profile);
  Numbers numbers(parameters);
  const auto patches = patches_of(inspector.profile().generation, parameters("patch").value_or(""));
  if (!patches.ok()) return wrong(patches.status());
  const auto question_lock = inspector.begin_question(*patches, question == "time");
  const uint32_t number = numbers.get("job");
  if (!numbers.wrong().empty()) return wrong(400, numbers.wrong());
  if (question == "job") return draws_answer(inspector, number);
  if (question == "time") return time(inspector, number);
  if (question == "listing") return listing(inspector, number);
  if (question == "picture") return picture(inspector, number, numbers);
  if (question == "heat") return heat(inspector, number, numbers, parameters);
  if (question == "memory") return memory(inspector, number, numbers);
  if (question == "explain") return explain(inspector, number, numbers);
  if (question == "history") return history(inspector, number, numbers);
  if (question == "steps") return steps(inspector, number, numbers, parameters);
  if (question == "texture") return texture_answer(inspector, number, numbers);
  if (question == "textures") return textures_answer(inspector, number, numbers);
  if (question == "vertices") return vertices_answer(inspector, number, numbers);
  return wrong(404, "no such question");
}

}  // namespace v3d::inspect
