#include "tools/inspect/inspector.h"

#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/csd/configuration.h"
#include "gpu/device/device.h"
#include "gpu/perf/record/sampling.h"
#include "gpu/qpu/flow/flow.h"
#include "tools/cli/captures/captures.h"
#include "tools/cli/captures/clif.h"
#include "tools/cli/captures/job_listing.h"

namespace v3d::inspect {

using daemon::CapturedJob;

namespace {

/// While it lives, tiles draw a part of what was binned for them.
class PartOfLists {
 public:
  /// @param bin  may be null  @param limit  limit(number of the list, list)
  template <typename Limit>
  PartOfLists(draw::BinResult* bin, const Limit& limit) : bin_(bin) {
    if (bin == nullptr) return;
    whole_ = bin->tiles;
    for (size_t n = 0; n < bin->tiles.size(); ++n) limit(n, bin->tiles[n]);
  }
  ~PartOfLists() {
    if (bin_ != nullptr) bin_->tiles = std::move(whole_);
  }
  PartOfLists(const PartOfLists&) = delete;
  PartOfLists& operator=(const PartOfLists&) = delete;

 private:
  draw::BinResult* const bin_;
  std::vector<std::vector<draw::ListEntry>> whole_;
};

/// Only so many draws.
PartOfLists lists_of(uint64_t draws, draw::BinResult* bin) {
  return {bin, [draws](size_t, std::vector<draw::ListEntry>& list) {
            std::erase_if(list, [draws](const draw::ListEntry& entry) { return entry.draw >= draws; });
          }};
}

/// Whether four threads share a QPU while the program at an address runs; nothing: the job runs no such
/// program.
std::optional<bool> four_threads_of(const CapturedJob& job, const draw::BinResult* bin, uint32_t code,
                                    const chip::Profile& profile) {
  if (job.kind == CapturedJob::kCsd) {
    const csd::Configuration dispatch = csd::decode(job.csd().cfg, profile);
    if (dispatch.code == code) return dispatch.four_threads;
  }
  if (bin == nullptr) return std::nullopt;
  for (const draw::Draw& draw : bin->draws)
    for (const draw::ShaderCode* program : {&draw.record->cs, &draw.record->vs, &draw.record->gs_bin,
                                            &draw.record->gs_render, &draw.record->fs})
      if (program->code == code && code != 0) return program->four_threads;
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Inspector>> Inspector::open(const std::string& path, qpu::Compiler* compiler) {
  const auto capture = tools::capture_path(path);
  if (!capture.ok()) return capture.status();
  auto position = CapturedPosition::open(*capture, compiler);
  if (!position.ok()) return position.status();
  return std::unique_ptr<Inspector>(new Inspector(*std::move(position)));
}

std::unique_lock<std::mutex> Inspector::begin_question(std::vector<PatchedWord> patches, bool yields) {
  if (!yields) {
    const std::lock_guard lock(turns_);
    ++hurried_;
    if (predicted_ != nullptr) predicted_->cancel();
  }
  std::unique_lock question(questions_);
  if (!yields) {
    const std::lock_guard lock(turns_);
    --hurried_;
  }
  const std::lock_guard lock(mutex_);
  if (position_->set_patches(std::move(patches))) times_.clear();
  return question;
}

absl::Status Inspector::seek_render(uint32_t job) {
  if (absl::Status status = position_->seek(job); !status.ok()) return status;
  if (position_->job().kind == CapturedJob::kRender) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("job %d renders nothing", job));
}

absl::Status Inspector::seek_with_draw(uint32_t job, uint32_t draw) {
  if (absl::Status status = seek_render(job); !status.ok()) return status;
  const std::shared_ptr<draw::BinResult> bin = position_->bin();
  if (bin && draw < bin->draws.size()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrFormat("no draw %d in job %d", draw, job));
}

/// Of bin jobs, too.
absl::Status Inspector::seek_with_draws(uint32_t job) {
  if (absl::Status status = position_->seek(job); !status.ok()) return status;
  if (position_->job().kind == CapturedJob::kBin && !position_->bin()) {
    position_->run({.alone = true});
    position_->restore();
  }
  return absl::OkStatus();
}

absl::Status Inspector::with_draws(uint32_t job, const std::function<void(const draw::BinResult* bin)>& see) {
  const std::lock_guard lock(mutex_);
  if (absl::Status status = seek_with_draws(job); !status.ok()) return status;
  see(position_->bin().get());
  return absl::OkStatus();
}

absl::StatusOr<BufferPicture> Inspector::picture(uint32_t job, uint64_t draws, uint32_t layer, uint8_t buffer,
                                                 uint32_t sample) {
  const std::lock_guard lock(mutex_);
  if (absl::Status status = seek_render(job); !status.ok()) return status;
  const PartOfLists part = lists_of(draws, position_->bin().get());
  TilePictures pictures(layer, buffer, sample);
  position_->run({.units = &pictures});
  position_->restore();
  return pictures.take();
}

absl::StatusOr<HeatPicture> Inspector::heat(uint32_t job, uint64_t draws, uint32_t layer, Heat heat) {
  const std::lock_guard lock(mutex_);
  if (absl::Status status = seek_render(job); !status.ok()) return status;
  const PartOfLists part = lists_of(draws, position_->bin().get());
  HeatMap map(heat, layer, position_->bin().get());
  position_->run({.units = &map});
  position_->restore();
  return map.take();
}

absl::StatusOr<VertexTable> Inspector::vertices(uint32_t job, uint32_t draw, uint32_t first, uint32_t count) {
  const std::lock_guard lock(mutex_);
  if (absl::Status status = seek_with_draw(job, draw); !status.ok()) return status;
  auto table = read_vertices(
      position_->space().memory(), profile(), *position_->bin(), draw, first, count,
      [this](const draw::Draw& part, vpm::Phase phase) { return position_->shade(part, phase); });
  position_->restore();
  return table;
}

absl::StatusOr<std::vector<DrawTexture>> Inspector::textures(uint32_t job, uint32_t draw) {
  const std::lock_guard lock(mutex_);
  if (absl::Status status = seek_with_draw(job, draw); !status.ok()) return status;
  const SampleOfDraw sample(*position_->bin(), draw);
  JobControl control;
  DrawTextures textures(control);
  position_->run({.alone = true, .interpreted = true, .threads = &textures, .control = &control});
  position_->restore();
  return textures.take();
}

std::string Inspector::follow(const PixelPlace& place, PixelHistory& history, JobControl* control) {
  const std::shared_ptr<draw::BinResult> bin = position_->bin();
  const PartOfLists part(bin.get(), [&](size_t number, std::vector<draw::ListEntry>& list) {
    const uint32_t column = place.x / bin->tile_width, row = place.y / bin->tile_height;
    if (number % bin->tiles_x != column || number / bin->tiles_x % bin->tiles_y != row) list.clear();
  });
  const Ran ran = position_->run({.alone = true, .units = &history, .control = control});
  position_->restore();
  return ran.message;
}

absl::StatusOr<History> Inspector::history(const PixelPlace& place) {
  const std::lock_guard lock(mutex_);
  if (absl::Status status = seek_render(place.job); !status.ok()) return status;
  PixelHistory history(position_->bin().get(), place.layer, place.x, place.y, place.sample);
  const std::string message = follow(place, history, nullptr);
  return History{history.take(), history.is_cut(), history.config(), message};
}

absl::StatusOr<Steps> Inspector::fragment_steps(const PixelPlace& place, const StepsWanted& wanted) {
  const std::lock_guard lock(mutex_);
  if (absl::Status status = seek_render(place.job); !status.ok()) return status;
  JobControl control;
  ThreadSteps steps(profile().generation, wanted, &control);
  PixelHistory history(position_->bin().get(), place.layer, place.x, place.y, place.sample, &steps);
  follow(place, history, &control);
  return steps.take();
}

absl::StatusOr<Steps> Inspector::steps(uint32_t job, const StepsWanted& wanted) {
  const std::lock_guard lock(mutex_);
  if (absl::Status status = position_->seek(job); !status.ok()) return status;
  JobControl control;
  ThreadSteps watch(profile().generation, wanted, &control);
  position_->run({.alone = true, .threads = &watch, .control = &control});
  position_->restore();
  Steps steps = watch.take();
  const CapturedJob& captured = position_->job();
  if (captured.kind == CapturedJob::kCsd && !steps.threads)
    steps.threads = csd::decode(captured.csd().cfg, profile()).batches;
  if (const auto bin = position_->bin(); bin && wanted.stage == "vertex" && !steps.threads)
    steps.threads = vertex_threads(*bin, static_cast<uint32_t>(bin->draws.size()));
  return steps;
}

absl::StatusOr<Inspector::Time> Inspector::time(uint32_t job) {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, time] : times_)
    if (number == job) return time;
  if (absl::Status status = position_->seek(job); !status.ok()) return status;
  Time time;
  JobControl control;
  if (position_->job().kind == CapturedJob::kUser)
    time.why_not = "user programs are not run here";
  else if (set_predicted(&control))
    time = predict(control);
  set_predicted(nullptr);
  if (control.cancelled()) return absl::UnavailableError("other questions come first");
  if (times_.size() == kMostTimes) times_.pop_front();
  times_.emplace_back(job, time);
  return time;
}

/// @return  false: others wait, so that the job need not begin
bool Inspector::set_predicted(JobControl* control) {
  const std::lock_guard lock(turns_);
  predicted_ = control;
  if (control != nullptr && hurried_ > 0) control->cancel();
  return hurried_ == 0;
}

Inspector::Time Inspector::predict(JobControl& control) {
  const CapturedJob& captured = position_->job();
  ThreadPool pool(0);
  device::Device device(profile(), pool);
  device.set_timing(timing::kWhole);
  position_->restore();
  device::Context& context = position_->context();
  device::JobResult result;
  std::shared_ptr<const draw::BinResult> bin;
  switch (captured.kind) {
    case CapturedJob::kBin:
      result = device.run_bin(context, captured.cl(), control, &bin);
      break;
    case CapturedJob::kRender:
      result = device.run_render(context, captured.cl(), control, position_->bin());
      break;
    case CapturedJob::kCsd:
      result = device.run_csd(context, captured.csd(), control);
      break;
    default:
      result = device.run_tfu(context, captured.tfu(), control);
  }
  position_->restore();
  return {result.prediction, result.end_name(),
          result.message.empty() ? result.why_not_predicted() : result.message};
}

absl::StatusOr<std::vector<std::string>> Inspector::listing(uint32_t job) {
  const std::lock_guard lock(mutex_);
  if (absl::Status status = position_->seek(job); !status.ok()) return status;
  std::vector<std::string> lines;
  tools::list_job(position_->job(), position_->space(), profile(), [&lines](std::string_view line) {
    if (lines.size() < kMostLines) lines.emplace_back(line);
  });
  return lines;
}

absl::StatusOr<tools::explain::Explanation> Inspector::explain(uint32_t job, uint32_t code) {
  const std::lock_guard lock(mutex_);
  if (absl::Status status = seek_with_draws(job); !status.ok()) return status;
  const auto four_threads = four_threads_of(position_->job(), position_->bin().get(), code, profile());
  if (!four_threads)
    return absl::NotFoundError(absl::StrFormat("job %d runs no program at 0x%08x", job, code));
  if (!qpu::isa(profile().generation).has_words) return tools::explain::explain(profile(), {}, false);
  mmu::AddressSpace& space = position_->context().space();  // with the edits
  const auto word = [&](int32_t index) -> std::optional<uint64_t> {
    const uint32_t address = code + static_cast<uint32_t>(index) * 8;
    if (index < 0 || !space.is_mapped(address)) return std::nullopt;
    return space.memory().load<uint64_t>(address);
  };
  const qpu::flow::Flow flow =
      qpu::flow::analyse({.generation = profile().generation, .final_section = false, .entry = code}, word);
  std::vector<uint64_t> words;
  for (int32_t n = 0; n < flow.end_index; ++n)
    if (const auto one = word(n)) words.push_back(*one);
  position_->restore();
  return tools::explain::explain(profile(), words, *four_threads);
}

absl::StatusOr<TexturePicture> Inspector::texture(uint32_t job, const UsedTexture& used, uint32_t level) {
  const std::lock_guard lock(mutex_);
  if (absl::Status status = position_->seek(job); !status.ok()) return status;
  TexturePicture picture = read_texture(position_->space().memory(), profile(), used, level);
  position_->space().take_faults();
  return picture;
}

absl::StatusOr<MemoryView> Inspector::memory(uint32_t job, uint32_t address) {
  const std::lock_guard lock(mutex_);
  return view_memory(*position_, job, address);
}

}  // namespace v3d::inspect
