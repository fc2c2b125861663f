/// v3demu replay: the jobs of a capture again, without the program that submitted them.

#include <png.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "daemon/capture.h"
#include "daemon/perf_map.h"
#include "gpu/base/log.h"
#include "gpu/perf/timing/parameters.h"
#include "gpu/perf/timing/report.h"
#include "gpu/qpu/isa/instruction.h"
#include "gpu/qpu/jit/jit.h"
#include "gpu/qpu/trace/watch.h"
#include "tools/captures.h"
#include "tools/commands.h"
#include "tools/render_images.h"

namespace v3d::tools {
namespace {

using daemon::CapturedJob;
using device::JobResult;

struct Options {
  std::string file;
  std::string images;   ///< folder; empty: none
  uint32_t repeat = 1;  ///< runs of each job, for timing
  bool hash = false;
  bool time = false;                 ///< predict what jobs take on the board
  std::vector<std::string> set;      ///< constants of the timing model
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

bool write_png(const std::string& path, const Picture& picture) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = picture.width;
  image.height = picture.height;
  image.format = PNG_FORMAT_RGBA;
  return png_image_write_to_file(&image, path.c_str(), 0, picture.rgba.data(), 0, nullptr) != 0;
}

class Replay {
 public:
  Replay(const Options& options, daemon::CaptureReader& reader)
      : options_(options),
        reader_(reader),
        // Traced threads run one after the other, so that the same ones are chosen every time.
        pool_(options.trace ? 0 : static_cast<int>(std::thread::hardware_concurrency()) - 1),
        device_(reader.profile(), pool_),
        jobs_(device_) {
    device_.set_timing(options.time);
  }

  void set_parameters(const timing::Parameters& parameters) { device_.set_timing_parameters(parameters); }
  void watch(std::unique_ptr<qpu::Watch> watch) { device_.set_watch(std::move(watch)); }

  /// False when a job did not end well.
  bool run(const CapturedJob& job) {
    device::Context& context = reader_.context(job.context);
    const auto start = std::chrono::steady_clock::now();
    const JobResult result = jobs_.run(job, context, options_.repeat);
    const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
    std::printf("job %d: %-7s client %u  %-9s", ++number_,
                timing::kind_name(static_cast<timing::JobKind>(job.kind)), job.context, result.end_name());
    if (!options_.time)
      std::printf(" %8.3f ms", taken.count() / options_.repeat);
    else
      print_predicted(result);
    if (options_.hash)
      std::printf("  memory %016llx", static_cast<unsigned long long>(memory_hash(context.space())));
    if (result.faults.count)
      std::printf("  %llu MMU faults, first at 0x%08x", static_cast<unsigned long long>(result.faults.count),
                  result.faults.first_address);
    std::printf("%s%s\n", result.message.empty() ? "" : "  ", result.message.c_str());
    if (result.prediction) print_report(*result.prediction, context.space());
    if (job.kind == CapturedJob::kRender && !options_.images.empty()) save_images(job, context);
    return result.end == JobResult::End::kDone;
  }

 private:
  /// Nothing that depends on the host.
  static void print_predicted(const JobResult& result) {
    if (result.prediction)
      std::printf(" predicted %.3f ms, %.3f ms with its submit",
                  static_cast<double>(result.prediction->ns() - result.prediction->submit_ns) * 1e-6,
                  static_cast<double>(result.prediction->ns()) * 1e-6);
    else if (!result.no_prediction.empty())
      std::printf(" no prediction: %s", result.no_prediction.c_str());
  }

  void print_report(const timing::Prediction& prediction, mmu::AddressSpace& space) const {
    const auto text_of = [&](const timing::Prediction::ProgramTime& program, uint32_t number) {
      return qpu::disassemble(reader_.profile().version,
                              space.memory().load<uint64_t>(program.code + 8 * number));
    };
    std::fputs(timing::report(prediction, text_of).c_str(), stdout);
  }

  void save_images(const CapturedJob& job, device::Context& context) {
    std::string error;
    for (const StoredImage& stored : stored_images(context.space().memory(), reader_.profile().version,
                                                   job.cl().rcl_start, job.cl().rcl_end)) {
      const Picture picture = read_image(context.space(), stored, &error);
      const std::string path = options_.images + "/job" + std::to_string(number_) + "-" +
                               std::to_string(stored.packet.buffer) + ".png";
      if (picture.rgba.empty())
        std::printf("  no picture of buffer %u: %s\n", stored.packet.buffer, error.c_str());
      else if (write_png(path, picture))
        std::printf("  %s  %ux%u\n", path.c_str(), picture.width, picture.height);
      else
        std::printf("  %s cannot be written\n", path.c_str());
    }
  }

  const Options& options_;
  daemon::CaptureReader& reader_;
  ThreadPool pool_;
  device::Device device_;
  CapturedJobs jobs_;
  int number_ = 0;
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

int replay(const Options& options) {
  const char* const named = std::getenv("V3DEMU_JIT");
  std::string no_engine;
  const auto engine = qpu::jit::find_engine(named ? named : "", &no_engine);
  if (!engine) {
    fprintf(stderr, "v3demu replay: V3DEMU_JIT: %s\n", no_engine.c_str());
    return 1;
  }
  const char* const wants_map = std::getenv("V3DEMU_PERF_MAP");
  std::unique_ptr<daemon::PerfMap> perf_map;
  const std::unique_ptr<qpu::jit::JitCompiler> compiler = qpu::jit::make_compiler(*engine);
  if (compiler && debug_on(Debug::kJit))
    compiler->set_lister([](const std::string& text) { log_debug(Debug::kJit, "%s", text); });
  if (compiler && wants_map && std::string_view(wants_map) == "1") perf_map = daemon::PerfMap::create();
  if (perf_map)
    compiler->set_listener([&perf_map](const qpu::jit::CodeMemory& code, const std::string& name) {
      perf_map->add(code.begin(), code.size(), name);
    });
  auto reader = daemon::CaptureReader::open(options.file, compiler.get());
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
  if (options.trace) {
    std::string why;
    qpu::WatchOptions watch;
    watch.trace = qpu::TraceSelection::parse(*options.trace, &why);
    if (!watch.trace) {
      fprintf(stderr, "v3demu replay: %s\n", why.c_str());
      return 1;
    }
    watch.trace_sink = [](std::string_view text) {
      std::printf("%.*s\n", static_cast<int>(text.size()), text.data());
    };
    replay.watch(std::make_unique<qpu::Watch>((*reader)->profile().version, std::move(watch)));
  }
  bool good = true;
  while (true) {
    auto job = (*reader)->next();
    if (absl::IsNotFound(job.status())) {
      warn_of_old_format("replay", options.file, **reader);
      return good ? 0 : 1;
    }
    if (!job.ok()) {
      fprintf(stderr, "v3demu replay: %s: %s\n", options.file.c_str(),
              std::string(job.status().message()).c_str());
      return 1;
    }
    good = replay.run(*job) && good;
  }
}

}  // namespace

void complete_trace_option(std::vector<std::string>* words) {
  if (words->empty() || words->front() != "replay") return;
  std::replace(words->begin(), words->end(), std::string("--trace-qpu"), std::string("--trace-qpu=batch=0"));
}

void add_replay(CLI::App* app, int* exit_code) {
  static Options options;
  CLI::App* command = app->add_subcommand("replay", "Run the jobs of a capture again, without the program");
  command->add_option("file", options.file, "The capture")->required();
  command->add_option("--images", options.images, "Save what render jobs store as PNG in this folder");
  command->add_option("--repeat", options.repeat, "Run each job so often; its mean time is printed")
      ->check(CLI::Range(1, 1000000));
  command
      ->add_flag("--time", options.time,
                 "Print what each job would take on the board, bound by what, and its slowest instructions")
      ->excludes("--repeat");
  command
      ->add_option("--set", options.set,
                   "A constant of the timing model, NAME=VALUE; \"v3demu timing\" lists them")
      ->needs("--time")
      ->allow_extra_args(false);
  command->add_flag("--hash", options.hash, "Print a hash of the client's memory behind each job");
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
