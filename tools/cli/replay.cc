/// v3demu replay: the jobs of a capture again, without the program that submitted them.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/capture.h"
#include "daemon/debug_watch.h"
#include "daemon/json_writer.h"
#include "daemon/perf_map.h"
#include "gpu/base/log.h"
#include "gpu/chip/generation.h"
#include "gpu/chip/profile.h"
#include "gpu/perf/counters.h"
#include "gpu/perf/record/sampling.h"
#include "gpu/perf/timing/parameters.h"
#include "gpu/perf/timing/report.h"
#include "gpu/qpu/isa/instruction.h"
#include "gpu/qpu/jit/jit.h"
#include "gpu/qpu/trace/watch.h"
#include "tools/cli/captures/after_comparison.h"
#include "tools/cli/captures/captures.h"
#include "tools/cli/captures/clif.h"
#include "tools/cli/captures/compiler.h"
#include "tools/cli/captures/job_listing.h"
#include "tools/cli/captures/nonzero_counters.h"
#include "tools/cli/captures/render_images.h"
#include "tools/cli/commands.h"
#include "tools/cli/files/files.h"
#include "tools/cli/files/png_file.h"
#include "tools/inspect/failure_page.h"

namespace v3d::tools {
namespace {

using daemon::CapturedJob;
using device::JobResult;

struct Options {
  std::string file;
  std::string images;      ///< folder; empty: none
  uint32_t repeat = 1;     ///< runs of each job, for timing
  bool red_first = false;  ///< in pictures of VideoCore IV
  bool hash = false;
  bool compare = false;  ///< with what the board's memory held
  bool json = false;     ///< of `compare`
  bool counters = false;
  bool time = false;                 ///< predict what jobs take on the board
  bool first_submit = false;         ///< counts
  bool sample = false;               ///< times of part of the tiles and batches
  std::vector<std::string> set;      ///< constants of the timing model
  std::string variants;              ///< a file of constants of the timing model; empty: none
  int from = 1;                      ///< number of the first job that is predicted
  int clock_mhz = 0;                 ///< of the timing model; 0: the board's
  bool explains = false;             ///< jobs that do not end well
  std::optional<std::string> trace;  ///< a selection, or empty for the default one
};

/// Of all mapped memory that is not zero.
uint64_t memory_hash(mmu::AddressSpace& space) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const auto& range : space.mapped_ranges())
    for (uint64_t offset = 0; offset < range.size; offset += 8) {
      const auto address = static_cast<GpuAddr>(range.address + offset);
      const auto word = space.memory().load<uint64_t>(address);
      if (word) hash = ((hash ^ address) * 0x100000001b3 ^ word) * 0x100000001b3;
    }
  return hash;
}

class Replay {
 public:
  Replay(const Options& options, daemon::CaptureReader& reader)
      : options_(options),
        reader_(reader),
        // Threads run one after the other, so that the same ones are traced every time, and workgroups that
        // leave something in shared memory leave it in the same places.
        pool_(options.trace || options.hash || options.compare
                  ? 0
                  : static_cast<int>(std::thread::hardware_concurrency()) - 1),
        profile_(profile_of(options, reader)),
        device_(profile_, pool_),
        jobs_(device_, options.counters) {
    device_.set_first_submit(options.first_submit);
    device_.set_compares_memory(options.hash || options.compare);
    begin_comparisons();
  }

  void set_parameters(const timing::Parameters& parameters) { device_.set_timing_parameters(parameters); }
  void set_variants(std::vector<timing::Parameters> variants) {
    device_.set_timing_variants(std::move(variants));
  }
  void watch(std::unique_ptr<qpu::Watch> watch) { device_.set_watch(std::move(watch)); }

  /// False when a job did not end well.
  bool run(const CapturedJob& job) {
    device::Context& context = reader_.context(job.context);
    reader_.restore_found();
    ++number_;
    const bool timed = options_.time && number_ >= options_.from;
    if (timed && number_ == options_.from)
      device_.set_timing(options_.sample ? timing::kSampled : timing::kWhole);
    const auto start = std::chrono::steady_clock::now();
    const JobResult result = jobs_.run(job, context, options_.repeat);
    const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
    if (!options_.json) print(job, result, timed, taken.count() / options_.repeat);
    if (job.kind == CapturedJob::kRender && !options_.images.empty()) save_images(job, context);
    if (options_.compare) last_ = {job, result};
    return result.end == JobResult::End::kDone && result.broken_rules.empty();
  }

  /// Compares memory with what was recorded after the job that ran last, where something was.
  absl::Status compare() {
    while (true) {
      const auto after = reader_.take_after();
      if (!after.ok()) return after.status();
      if (!after->has_value()) break;
      compare_with(**after);
    }
    return absl::OkStatus();
  }
  /// After the last job. False: something differs, or there was nothing to compare.
  bool print_comparisons() {
    if (compared_ == 0)
      fprintf(stderr,
              "v3demu replay: %s says nothing of memory after its jobs: libv3drec.so has not recorded it\n",
              options_.file.c_str());
    if (options_.json)
      std::printf("%s\n", json_.end_array().end_object().take().c_str());
    else if (compared_)
      std::printf("%d of %d jobs compared: %d equal, %d different\n", compared_, number_,
                  compared_ - different_, different_);
    return compared_ > 0 && different_ == 0;
  }

 private:
  void print(const CapturedJob& job, const JobResult& result, bool timed, double ms) {
    device::Context& context = reader_.context(job.context);
    std::printf("job %d: %-7s client %u  %-9s", number_, kind_name(job), job.context, result.end_name());
    if (!options_.time)
      std::printf(" %8.3f ms", ms);
    else if (timed)
      print_predicted(result);
    if (options_.hash)
      std::printf("  memory %016llx", static_cast<unsigned long long>(memory_hash(context.space())));
    if (result.faults.count)
      std::printf("  %llu MMU faults, first at 0x%08x", static_cast<unsigned long long>(result.faults.count),
                  result.faults.first_address);
    std::printf("%s%s", result.fault_place.empty() ? "" : ", ", result.fault_place.c_str());
    std::printf("%s%s\n", result.message.empty() ? "" : "  ", result.message.c_str());
    for (const std::string& rule : result.broken_rules) std::printf("  broken rule: %s\n", rule.c_str());
    if (result.prediction) print_report(*result.prediction, context.space());
    if (options_.counters) print_counters(result.counts);
    for (size_t i = 0; i < result.variants.size(); ++i)
      std::printf("  line %zu: %llu ns\n", i + 1, static_cast<unsigned long long>(result.variants[i]));
  }

  /// What tools/evidence must know of comparisons besides their jobs. A recording does not name its board.
  void begin_comparisons() {
    json_.begin_object().field("program", "v3demu replay --compare").field("format", 1);
    json_.field("version", V3DEMU_VERSION).field("profile", profile_.name).key("chip").begin_object();
    json_.field("version", chip::version_number(profile_.generation)).field("revision", profile_.revision);
    json_.field("qpus", profile_.qpu_count()).end_object().key("jobs").begin_array();
  }

  void compare_with(const daemon::CapturedAfter& after) {
    mmu::AddressSpace& space = reader_.context(after.context).space();
    const bool draws = last_.job.kind == CapturedJob::kRender && last_.job.context == after.context;
    const AfterComparison comparison = compare_after(
        reader_, after, space,
        draws ? images_of(last_.job, reader_.context(after.context)) : std::vector<StoredImage>{});
    ++compared_;
    different_ += !comparison.equal();
    if (!options_.json) {
      std::fputs(text_of(comparison, number_, options_.file).c_str(), stdout);
      return;
    }
    json_.on_new_line().begin_object().field("job", number_);
    json_.field("kind", kind_name(last_.job));
    json_.field("client", after.context).field("end", last_.result.end_name());
    write_json(comparison, &json_);
    json_.end_object();
  }

  static chip::Profile profile_of(const Options& options, const daemon::CaptureReader& reader) {
    chip::Profile profile = reader.profile();
    if (options.clock_mhz) profile.clock_mhz = options.clock_mhz;
    return profile;
  }
  /// Nothing that depends on the host.
  static void print_predicted(const JobResult& result) {
    if (result.prediction)
      std::printf(" predicted %.3f ms, %.3f ms with its submit",
                  static_cast<double>(result.prediction->ns() - result.prediction->submit_ns) * 1e-6,
                  static_cast<double>(result.prediction->ns()) * 1e-6);
    else if (!result.no_prediction.empty())
      std::printf(" no prediction: %s", result.no_prediction.c_str());
  }

  /// Those of the chip that are not 0.
  void print_counters(const perf::Counts& counts) const {
    for (const auto& [number, name, value] : nonzero_counters(reader_.profile().generation, counts))
      std::printf("  counter %2zu  %-52s %llu\n", number, name, static_cast<unsigned long long>(value));
  }

  void print_report(const timing::Prediction& prediction, mmu::AddressSpace& space) const {
    const auto text_of = [&](const timing::Prediction::ProgramTime& program, uint32_t number) {
      return qpu::disassemble(reader_.profile().generation,
                              space.memory().load<uint64_t>(program.code + 8 * number));
    };
    std::fputs(timing::report(prediction, text_of).c_str(), stdout);
  }

  std::vector<StoredImage> images_of(const CapturedJob& job, device::Context& context) {
    if (job.surfaces) return stored_images(*job.surfaces, !options_.red_first);
    return stored_images(context.space().memory(), reader_.profile().generation, job.cl().rcl_start,
                         job.cl().rcl_end, &byte_orders_[job.context]);
  }

  void save_images(const CapturedJob& job, device::Context& context) {
    std::string error;
    for (const StoredImage& stored : images_of(job, context)) {
      const Picture picture = read_image(context.space(), stored, &error);
      const std::string path = options_.images + "/job" + std::to_string(number_) + "-" +
                               std::to_string(stored.packet.buffer) + ".png";
      if (picture.rgba.empty()) {
        std::printf("  no picture of buffer %u: %s\n", stored.packet.buffer, error.c_str());
        continue;
      }
      const absl::Status saved = save_rgba(path, picture.width, picture.height, picture.rgba.data());
      if (saved.ok())
        std::printf("  %s  %ux%u\n", path.c_str(), picture.width, picture.height);
      else
        std::printf("  cannot write %s\n", std::string(saved.message()).c_str());
    }
  }

  const Options& options_;
  daemon::CaptureReader& reader_;
  ThreadPool pool_;
  const chip::Profile profile_;
  device::Device device_;
  CapturedJobs jobs_;
  std::map<uint32_t, ByteOrders> byte_orders_;  // by context
  int number_ = 0;
  // Of comparisons: the job that ran last, and counts.
  struct {
    CapturedJob job;
    JobResult result;
  } last_;
  int compared_ = 0, different_ = 0;
  daemon::JsonWriter json_;
};

/// The board's constants with what the options set. Nothing, with a message: one of these cannot be.
std::optional<timing::Parameters> parameters_of(const Options& options, const chip::Profile& profile) {
  timing::Parameters parameters = timing::parameters_of(profile);
  for (const std::string& assignment : options.set) {
    const std::string error = timing::set_parameter(assignment, &parameters);
    if (error.empty()) continue;
    fprintf(stderr, "v3demu replay: --set %s: %s\n", assignment.c_str(), error.c_str());
    return std::nullopt;
  }
  return parameters;
}

/// Each line has assignments that come on top of these. Nothing, with a message: one of them cannot be.
std::optional<std::vector<timing::Parameters>> variants_of(const std::string& path,
                                                           const timing::Parameters& parameters) {
  std::vector<timing::Parameters> variants;
  if (path.empty()) return variants;
  std::ifstream file(path);
  std::string line, assignment;
  while (std::getline(file, line)) {
    variants.push_back(parameters);
    std::istringstream words(line);
    while (words >> assignment) {
      const std::string error = timing::set_parameter(assignment, &variants.back());
      if (error.empty()) continue;
      fprintf(stderr, "v3demu replay: %s, line %zu: %s: %s\n", path.c_str(), variants.size(),
              assignment.c_str(), error.c_str());
      return std::nullopt;
    }
  }
  return variants;
}

int explain(const Options& options, qpu::Compiler* compiler) {
  const auto path = capture_path(options.file);
  const auto pages = path.ok() ? inspect::explain_failures(*path, compiler)
                               : absl::StatusOr<inspect::FailurePages>(path.status());
  if (!pages.ok()) {
    fprintf(stderr, "v3demu replay: %s\n", std::string(pages.status().message()).c_str());
    return 1;
  }
  std::printf("%s%u of %u jobs do not end well\n", pages->text.c_str(), pages->failed, pages->jobs);
  return pages->failed == 0 ? 0 : 1;
}

int replay(const Options& options) {
  const auto environment = compiler_of_environment();
  if (!environment.ok()) {
    fprintf(stderr, "v3demu replay: %s\n", std::string(environment.status().message()).c_str());
    return 1;
  }
  const std::unique_ptr<qpu::jit::JitCompiler>& compiler = *environment;
  std::unique_ptr<daemon::PerfMap> perf_map;
  if (compiler && debug_on(Debug::kJit))
    compiler->set_lister([](const std::string& text) { log_debug(Debug::kJit, "%s", text); });
  if (compiler && variable("V3DEMU_PERF_MAP") == "1") perf_map = daemon::PerfMap::create();
  if (perf_map)
    compiler->set_listener([&perf_map](const qpu::jit::CodeMemory& code, const std::string& name) {
      perf_map->add(code.begin(), code.size(), name);
    });
  if (options.explains) return explain(options, compiler.get());
  auto reader = open_capture(options.file, compiler.get());
  if (!reader.ok()) {
    fprintf(stderr, "v3demu replay: %s\n", std::string(reader.status().message()).c_str());
    return 1;
  }
  std::error_code error;
  if (!options.images.empty()) std::filesystem::create_directories(options.images, error);
  Replay replay(options, **reader);
  const auto parameters = parameters_of(options, (*reader)->profile());
  if (!parameters) return 1;
  replay.set_parameters(*parameters);
  auto variants = variants_of(options.variants, *parameters);
  if (!variants) return 1;
  replay.set_variants(*std::move(variants));
  bool traced = false;
  if (options.trace) {
    std::string why;
    qpu::WatchOptions watch;
    watch.trace = qpu::TraceSelection::parse(*options.trace, &why);
    if (!watch.trace) {
      fprintf(stderr, "v3demu replay: %s\n", why.c_str());
      return 1;
    }
    watch.trace_sink = [&traced](std::string_view text) {
      traced = true;
      std::printf("%.*s\n", static_cast<int>(text.size()), text.data());
    };
    replay.watch(std::make_unique<qpu::Watch>((*reader)->profile().generation, std::move(watch)));
  } else if (!options.time) {
    replay.watch(daemon::debug_watch((*reader)->profile().generation,
                                     {variable("V3DEMU_TRACE_QPU"), variable("V3DEMU_HAZARDS")},
                                     compiler.get()));
  }
  bool good = true;
  while (true) {
    auto job = (*reader)->next();
    if (absl::IsNotFound(job.status())) {
      if (options.compare) good = replay.print_comparisons() && good;
      warn_of_old_format("replay", options.file, **reader);
      if (options.trace && !traced)
        fprintf(stderr, "v3demu replay: nothing that ran is of the selection %s\n", options.trace->c_str());
      return good ? 0 : 1;
    }
    if (!job.ok()) {
      fprintf(stderr, "v3demu replay: %s: %s\n", options.file.c_str(),
              std::string(job.status().message()).c_str());
      return 1;
    }
    good = replay.run(*job) && good;
    const absl::Status compared = options.compare ? replay.compare() : absl::OkStatus();
    if (!compared.ok()) {
      fprintf(stderr, "v3demu replay: %s: %s\n", options.file.c_str(),
              std::string(compared.message()).c_str());
      return 1;
    }
  }
}

}  // namespace

void complete_trace_option(std::vector<std::string>* words) {
  if (words->empty() || (words->front() != "replay" && words->front() != "exec")) return;
  std::replace(words->begin(), words->end(), std::string("--trace-qpu"), std::string("--trace-qpu=batch=0"));
}

void add_replay(CLI::App* app, int* exit_code) {
  static Options options;
  CLI::App* command = app->add_subcommand("replay", "Run the jobs of a capture again, without the program");
  command->add_option("file", options.file, "The capture, or what Mesa prints with V3D_DEBUG=clif")
      ->required();
  command->add_option("--images", options.images, "Save what render jobs store as PNG in this folder")
      ->option_text("FOLDER");
  command
      ->add_flag(
          "--red-first", options.red_first,
          "Of VideoCore IV, whose jobs do not say it: the first byte of a pixel is red in pictures, not "
          "blue as on screens")
      ->needs("--images");
  command
      ->add_option("--repeat", options.repeat,
                   "Run each job so often, a million times at most; its mean time is printed")
      ->option_text("N")
      ->check(CLI::Range(1, 1000000));
  command
      ->add_flag("--time", options.time,
                 "Print what each job would take on the board, bound by what, and its slowest instructions")
      ->excludes("--repeat");
  command
      ->add_flag("--sample", options.sample,
                 "Times from a part of the tiles and batches, as while a program runs, not from all of them")
      ->needs("--time");
  command
      ->add_flag("--first-submit", options.first_submit,
                 "The first job of each client takes longer to submit, as that of a process does")
      ->needs("--time");
  command
      ->add_option("--set", options.set,
                   "A constant of the timing model, NAME=VALUE; \"v3demu timing\" lists them")
      ->option_text("NAME=VALUE")
      ->needs("--time")
      ->allow_extra_args(false);
  command
      ->add_option(
          "--variants", options.variants,
          "Also tell what each job would take with the constants NAME=VALUE of each line of this file")
      ->option_text("FILE")
      ->needs("--time")
      ->check(CLI::ExistingFile);
  command->add_option("--from", options.from, "Predict only this job, by its number, and those after it")
      ->option_text("JOB")
      ->needs("--time")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--clock", options.clock_mhz,
                   "Predict for this clock in MHz, 1 to 10000, instead of the board's")
      ->option_text("MHZ")
      ->needs("--time")
      ->check(CLI::Range(1, 10000));
  command->add_flag("--hash", options.hash,
                    "Print a hash of the client's memory after each job, which runs on one thread");
  CLI::Option* const compare =
      command->add_flag("--compare", options.compare,
                        "Compare memory after each job with what is recorded of it, by libv3drec.so on a "
                        "board: which pixels of "
                        "which image and which words differ, and by how much; the status is 1 if any does");
  compare->excludes("--repeat")->excludes("--time");
  command->add_flag("--json", options.json, "Print the comparisons as JSON, and nothing else")
      ->needs(compare)
      ->excludes("--images");
  CLI::Option* const explains = command->add_flag(
      "--explain-hang", options.explains,
      "Print a page for each of the first four jobs that hang, are wrong or access memory that is not "
      "mapped: its thread, instruction and lanes, the memory around, the jobs beside it; the status is "
      "1 if there is one");
  for (const char* other : {"--images", "--repeat", "--time", "--hash", "--compare"})
    explains->excludes(other);
  command->add_flag("--counters", options.counters,
                    "Print the performance counters of each job that are not 0; with --time those of the "
                    "timing model as well");
  command
      ->add_option(
          "--trace-qpu", options.trace,
          std::string("Show what QPU threads do, instruction by instruction; default the first batch of "
                      "every program of every job. ") +
              qpu::TraceSelection::kHelp)
      ->option_text("[=SELECTION]")
      ->excludes("--repeat")
      ->excludes("--time");
  command->callback([exit_code] { *exit_code = replay(options); });
}

}  // namespace v3d::tools
