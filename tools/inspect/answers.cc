#include "tools/inspect/answers.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "gpu/chip/profile.h"
#include "gpu/cle/packet.h"
#include "gpu/perf/timing/prediction.h"
#include "gpu/qpu/isa/assembler.h"
#include "tools/cli/captures/job_listing.h"
#include "tools/inspect/history_json.h"

namespace v3d::inspect {
namespace {

using Json = nlohmann::ordered_json;
using daemon::CapturedJob;
using Type = cle::FieldType;

/// Instructions in one answer.
constexpr uint64_t kMostSteps = 2048;
/// Draws in one answer.
constexpr size_t kMostDraws = 20'000;

/// Of an enumeration of packets, as listings have it.
template <typename Value>
const char* name_of(cle::FieldType type, Value value) {
  const char* const name = cle::value_name(type, static_cast<uint32_t>(value));
  return name != nullptr ? name : "?";
}

const char* text_of(tlb::ColorType type) {
  constexpr const char* kNames[] = {"8i", "8ui", "8", "16i", "16ui", "16f", "32i", "32ui", "32f"};
  return kNames[static_cast<size_t>(type)];
}
const char* text_of(tlb::DepthType type) {
  constexpr const char* kNames[] = {"32F", "24", "16"};
  return kNames[static_cast<size_t>(type)];
}
std::string hex(uint32_t value) { return absl::StrFormat("0x%08x", value); }

/// What stands in captures need not be text.
std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Answer good(const Json& json) { return {200, true, text_of(json)}; }
Answer wrong(int status, const std::string& message) {
  return {status, true, text_of(Json{{"error", message}})};
}
Answer wrong(const absl::Status& status) {
  const int code = absl::IsNotFound(status)          ? 404
                   : absl::IsInvalidArgument(status) ? 400
                   : absl::IsUnimplemented(status)   ? 501
                                                     : 500;
  return wrong(code, std::string(status.message()));
}
Answer with_pixels(const Json& json, const std::vector<uint32_t>& pixels) {
  const std::string head = text_of(json);
  const auto size = static_cast<uint32_t>(head.size());
  Answer answer{200, false, std::string(4, '\0')};
  std::memcpy(answer.body.data(), &size, sizeof size);
  answer.body += head;
  answer.body.append(reinterpret_cast<const char*>(pixels.data()), pixels.size() * sizeof pixels[0]);
  return answer;
}

/// The numbers that a question comes with.
class Numbers {
 public:
  explicit Numbers(const Parameters& parameters) : parameters_(parameters) {}

  /// @param otherwise  where there is none; nothing: there has to be one
  uint32_t get(const char* name, std::optional<uint32_t> otherwise = {}) {
    const std::optional<std::string> text = parameters_(name);
    uint32_t number = 0;
    if (!text && otherwise) return *otherwise;
    if (!text || !absl::SimpleAtoi(*text, &number))
      wrong_ = absl::StrCat(text ? "no number: " : "a number is missing: ", name);
    return number;
  }
  /// Empty: nothing.
  const std::string& wrong() const { return wrong_; }

 private:
  const Parameters& parameters_;
  std::string wrong_;
};

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

std::string text_of(const draw::StencilConfig& s) {
  return absl::StrFormat("(%d & 0x%02x) %s stored; else %s, depth fails %s, passes %s, writes 0x%02x", s.ref,
                         s.test_mask, name_of(Type::kCompare, static_cast<uint32_t>(s.func) & 7),
                         name_of(Type::kStencilOp, s.fail), name_of(Type::kStencilOp, s.depth_fail),
                         name_of(Type::kStencilOp, s.pass), s.write_mask);
}

std::string text_of(const draw::BlendConfig& b) {
  return absl::StrFormat("rgb %s(src * %s, dst * %s), alpha %s(src * %s, dst * %s)",
                         name_of(Type::kBlendMode, b.color_mode), name_of(Type::kBlendFactor, b.color_src),
                         name_of(Type::kBlendFactor, b.color_dst), name_of(Type::kBlendMode, b.alpha_mode),
                         name_of(Type::kBlendFactor, b.alpha_src), name_of(Type::kBlendFactor, b.alpha_dst));
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

/// State that decides on fragments, line by line.
Json state_of(const draw::DrawState& state) {
  Json lines = Json::array();
  const draw::CfgBits& cfg = state.cfg;
  lines.push_back(absl::StrFormat("depth: passes if %s, %s", name_of(Type::kCompare, cfg.depth_func),
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

Json json_of(const draw::Draw& draw, size_t number, uint64_t entries) {
  const draw::ShaderRecord& record = *draw.record;
  Json programs = Json::array();
  const auto add = [&](const char* stage, const draw::ShaderCode& code) {
    if (code.code != 0) programs.push_back({{"stage", stage}, {"code", hex(code.code)}});
  };
  add("coordinate", record.cs);
  add("vertex", record.vs);
  if (record.has_gs) add("geometry", record.gs_render);
  add("fragment", record.fs);
  return {{"number", number},
          {"mode", name_of(Type::kPrimitive, draw.call.mode)},
          {"count", draw.call.count},
          {"instances", draw.call.instances},
          {"indexed", draw.call.indexed},
          {"vertices", draw.vertices.size()},
          {"primitives", draw.primitives.size()},
          {"entries", entries},
          {"programs", programs},
          {"state", state_of(draw.state)}};
}

Answer job(Inspector& inspector, uint32_t number) {
  Json draws = Json::array();
  size_t left_out = 0;
  const absl::Status seen = inspector.with_draws(number, [&](const draw::BinResult* bin) {
    if (bin == nullptr) return;
    std::vector<uint64_t> entries(bin->draws.size());
    for (const auto& tile : bin->tiles)
      for (const draw::ListEntry& entry : tile) ++entries[entry.draw];
    const size_t shown = std::min(bin->draws.size(), kMostDraws);
    for (size_t n = 0; n < shown; ++n) draws.push_back(json_of(bin->draws[n], n, entries[n]));
    left_out = bin->draws.size() - shown;
  });
  if (!seen.ok()) return wrong(seen);
  return good({{"draws", draws}, {"left_out", left_out}});
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
          {"threads", steps.threads},
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
                                      steps->threads));
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

Answer texture(Inspector& inspector, uint32_t job, Numbers& numbers) {
  UsedTexture used{};
  used[0] = numbers.get("p0");
  used[1] = numbers.get("p1", 0);
  used[2] = numbers.get("p2", 2);
  used[3] = numbers.get("p3", 0);
  const uint32_t level = numbers.get("level", 0);
  if (!numbers.wrong().empty()) return wrong(400, numbers.wrong());
  const auto texture = inspector.texture(job, used, level);
  if (!texture.ok()) return wrong(texture.status());
  return with_pixels({{"address", hex(texture->address)},
                      {"width", texture->width},
                      {"height", texture->height},
                      {"depth", texture->depth},
                      {"levels", texture->levels},
                      {"array_stride", texture->array_stride},
                      {"stride", texture->stride},
                      {"texel_bytes", texture->texel_bytes},
                      {"format", texture->format},
                      {"tiling", texture->tiling},
                      {"problem", texture->problem}},
                     texture->rgba);
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
  const auto question_lock = inspector.begin_question(*patches);
  const uint32_t number = numbers.get("job");
  if (!numbers.wrong().empty()) return wrong(400, numbers.wrong());
  if (question == "job") return job(inspector, number);
  if (question == "time") return time(inspector, number);
  if (question == "listing") return listing(inspector, number);
  if (question == "picture") return picture(inspector, number, numbers);
  if (question == "heat") return heat(inspector, number, numbers, parameters);
  if (question == "memory") return memory(inspector, number, numbers);
  if (question == "explain") return explain(inspector, number, numbers);
  if (question == "history") return history(inspector, number, numbers);
  if (question == "steps") return steps(inspector, number, numbers, parameters);
  if (question == "texture") return texture(inspector, number, numbers);
  return wrong(404, "no such question");
}

}  // namespace v3d::inspect
