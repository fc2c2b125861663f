/// v3demu exec: a QPU program on buffers, without a driver.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/board.h"
#include "daemon/json_writer.h"
#include "gpu/chip/profile.h"
#include "gpu/perf/timing/prediction.h"
#include "gpu/perf/timing/report.h"
#include "gpu/qpu/check/broken_rules.h"
#include "gpu/qpu/isa/instruction.h"
#include "gpu/qpu/trace/watch.h"
#include "tools/cli/assembly_options.h"
#include "tools/cli/captures/compiler.h"
#include "tools/cli/captures/nonzero_counters.h"
#include "tools/cli/commands.h"
#include "tools/cli/files/files.h"
#include "tools/cli/kernels/kernel.h"
#include "tools/cli/kernels/kernel_options.h"

namespace v3d::tools {
namespace {

struct Options {
  KernelOptions kernel;
  bool time = false, counters = false, json = false;
  std::optional<std::string> trace;
};

/// What one run after another found out.
struct Report {
  std::vector<std::string> hazards;
  std::string trace;
  KernelRun run, timed;  ///< the second one where a time or counters were asked for
};

int fail(const std::string& what) {
  fprintf(stderr, "v3demu exec: %s\n", what.c_str());
  return 1;
}

absl::StatusOr<Report> run(const Options& options, const Kernel& kernel, const chip::Profile& profile) {
  Report report;
  const auto compiler = compiler_of_environment();
  if (!compiler.ok()) return compiler.status();
  for (const qpu::BrokenRule& b : qpu::broken_rules(profile.generation, kernel.four_threads, kernel.words))
    report.hazards.push_back(b.text);
  qpu::WatchOptions watch;
  watch.compiler = compiler->get();
  watch.hazard_sink = [&report](std::string_view text) { report.hazards.emplace_back(text); };
  if (options.trace) {
    std::string error;
    watch.trace = qpu::TraceSelection::parse(*options.trace, &error);
    if (!watch.trace) return absl::InvalidArgumentError(error);
    watch.trace_sink = [&report](std::string_view text) { report.trace.append(text).append("\n"); };
  }
  auto watched = run_kernel(kernel, profile, compiler->get(),
                            std::make_unique<qpu::Watch>(profile.generation, std::move(watch)), false);
  if (!watched.ok()) return watched.status();
  report.run = *std::move(watched);
  if (!options.time && !options.counters) return report;
  auto timed = run_kernel(kernel, profile, compiler->get(), nullptr, true);
  if (!timed.ok()) return timed.status();
  report.timed = *std::move(timed);
  return report;
}

void print(const Options& options, const Kernel& kernel, const chip::Profile& profile, const Report& report) {
  const device::JobResult& result = report.run.result;
  std::fputs(report.trace.c_str(), stdout);
  for (const std::string& hazard : report.hazards) std::printf("hazard: %s\n", hazard.c_str());
  std::printf("%s%s%s\n", result.end_name(), result.message.empty() ? "" : ": ", result.message.c_str());
  if (result.faults.count)
    std::printf("MMU fault: %llu access%s to memory that is not mapped, the first at 0x%08x, %s\n",
                static_cast<unsigned long long>(result.faults.count), result.faults.count == 1 ? "" : "es",
                result.faults.first_address, result.fault_place.c_str());
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    const Array& array = report.run.buffers[i];
    std::printf("%s: %s at 0x%08x%s: %s\n", kernel.buffers[i].name.c_str(), array.text().c_str(),
                kernel.buffers[i].address, array.data == kernel.buffers[i].array.data ? ", unchanged" : "",
                elements_text(array).c_str());
  }
  const device::JobResult& timed = report.timed.result;
  if (options.time && timed.prediction) {
    const auto text_of = [&](const timing::Prediction::ProgramTime&, uint32_t number) {
      return number < kernel.words.size() ? qpu::disassemble(profile.generation, kernel.words[number])
                                          : std::string();
    };
    std::printf("on the board: %.3f us, %.3f us with its submit\n",
                static_cast<double>(timed.prediction->ns() - timed.prediction->submit_ns) * 1e-3,
                static_cast<double>(timed.prediction->ns()) * 1e-3);
    std::fputs(timing::report(*timed.prediction, text_of).c_str(), stdout);
  } else if (options.time) {
    std::printf("no prediction: %s\n", timed.no_prediction.c_str());
  }
  if (options.counters)
    for (const auto& [number, name, value] : nonzero_counters(profile.generation, timed.counts))
      std::printf("  %-52s %llu\n", name, static_cast<unsigned long long>(value));
}

void print_json(const Options& options, const Kernel& kernel, const chip::Profile& profile,
                const Report& report) {
  const device::JobResult &result = report.run.result, &timed = report.timed.result;
  daemon::JsonWriter json;
  json.begin_object().field("end", result.end_name()).field("message", std::string_view(result.message));
  json.field("faults", result.faults.count).field("first_fault", result.faults.first_address);
  json.field("fault_place", std::string_view(result.fault_place)).key("hazards").begin_array();
  for (const std::string& hazard : report.hazards) json.value(std::string_view(hazard));
  json.end_array().key("buffers").begin_object();
  for (const KernelBuffer& buffer : kernel.buffers)
    json.key(buffer.name).begin_object().field("address", buffer.address).end_object();
  json.end_object();
  if (timed.prediction)
    json.field("ns", timed.prediction->ns() - timed.prediction->submit_ns)
        .field("submit_ns", timed.prediction->submit_ns);
  if (options.counters) {
    json.key("counters").begin_object();
    for (const auto& [number, name, value] : nonzero_counters(profile.generation, timed.counts))
      json.field(name, value);
    json.end_object();
  }
  if (options.trace) json.field("trace", std::string_view(report.trace));
  std::printf("%s\n", json.end_object().take().c_str());
}

int execute(const Options& options) {
  const chip::Profile& profile = *chip::find_profile(options.kernel.device);
  if (!chip::pipeline(profile.generation).has_compute_jobs)
    return fail(
        absl::StrCat(options.kernel.device, " has no compute jobs: docs/qpu.md tells how its programs run"));
  const auto kernel = read_kernel(options.kernel, profile.generation);
  if (!kernel.ok()) return fail(std::string(kernel.status().message()));
  const auto outputs = read_outputs(options.kernel, *kernel);
  if (!outputs.ok()) return fail(std::string(outputs.status().message()));
  const auto report = run(options, *kernel, profile);
  if (!report.ok()) return fail(std::string(report.status().message()));
  if (options.json)
    print_json(options, *kernel, profile, *report);
  else
    print(options, *kernel, profile, *report);
  for (const auto& [number, path] : *outputs)
    if (const absl::Status written = write_file(path, npy_of(report->run.buffers[number])); !written.ok())
      return fail(std::string(written.message()));
  return report->run.result.end == device::JobResult::End::kDone && report->run.result.faults.count == 0 ? 0
                                                                                                         : 1;
}

}  // namespace

void add_exec(CLI::App* app, int* exit_code) {
  static Options options;
  CLI::App* command = app->add_subcommand("exec", "Run a QPU program on buffers, without a driver");
  command
      ->add_option("kernel", options.kernel.file,
                   "Assembly, or words where the name ends with .bin; - is the standard input")
      ->required();
  command->add_option("--device", options.kernel.device, "The board: " + daemon::device_names())
      ->option_text("NAME")
      ->check(CLI::Validator(why_no_board, ""));
  command
      ->add_option("--buf", options.kernel.buffers,
                   "A buffer: NAME=FILE.npy, or NAME=TYPE[SHAPE] like y=f32[1024], which is zero, or with "
                   "=VALUE behind it "
                   "has that value everywhere, with =count 0, 1, 2 ...; types: " +
                       element_type_names())
      ->option_text("NAME=...")
      ->allow_extra_args(false);
  command
      ->add_option(
          "--uniform", options.kernel.uniforms,
          "The next uniform: an integer, a float like 2.0, or NAME or NAME+BYTES, an address in a buffer. "
          "Without any: those of .uniform in the text, else the addresses of the buffers")
      ->option_text("WORD")
      ->allow_extra_args(false);
  command
      ->add_option("--out", options.kernel.outputs, "Save a buffer when the program has ended: NAME=FILE.npy")
      ->option_text("NAME=FILE")
      ->allow_extra_args(false);
  CLI::Option* const threads = command->add_option(
      "--threads", options.kernel.threads, "So many threads of sixteen invocations in all, in workgroups");
  threads->option_text("N")->check(CLI::Range(1, 1 << 20));
  command
      ->add_option("--workgroup", options.kernel.workgroup,
                   "Invocations of a workgroup, 1 to 256 (default: 16)")
      ->option_text("SIZE")
      ->check(CLI::Range(1, 256));
  command->add_option("--workgroups", options.kernel.workgroups, "How many workgroups there are")
      ->option_text("X[,Y[,Z]]")
      ->excludes(threads);
  command->add_flag("--four-threads", options.kernel.four_threads,
                    "Four threads share a QPU, each with 32 registers, not two with 64");
  command->add_flag("--time", options.time, "Print what it would take on the board, and where it waits");
  command->add_flag("--counters", options.counters, "Print the performance counters that are not 0");
  command->add_flag("--json", options.json, "Print what there is to tell as JSON");
  command
      ->add_option("--trace-qpu", options.trace,
                   std::string("Show what threads do, instruction by instruction; default the first one. ") +
                       qpu::TraceSelection::kHelp)
      ->option_text("[=SELECTION]");
  command->callback([exit_code] { *exit_code = execute(options); });
}

}  // namespace v3d::tools
