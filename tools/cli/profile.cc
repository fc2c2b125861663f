/// v3demu profile: what the jobs of a program, or of a capture, would take on the board, and why.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gpu/base/left_out.h"
#include "tools/cli/capture.h"
#include "tools/cli/captures/captures.h"
#include "tools/cli/captures/clif.h"
#include "tools/cli/captures/host_profile.h"
#include "tools/cli/commands.h"
#include "tools/cli/files/files.h"
#include "tools/cli/files/new_file.h"
#include "tools/cli/files/script.h"
#include "tools/cli/profiling/collect.h"
#include "tools/cli/profiling/schedule.h"
#include "tools/cli/profiling/writers.h"
#include "tools/cli/run_options.h"

namespace v3d::tools {
namespace {

namespace fs = std::filesystem;
using profiling::Profile;

struct Options {
  RunOptions run;
  std::string file;    ///< the capture; empty: of the program
  std::string folder;  ///< for all that can be had
  std::string html, json, trace;
  std::string page;  ///< what html is made of
  bool by_submission = false;
  std::vector<std::string> compared;  ///< two files, before and after
  std::string fail_above, budget, table;
  bool host = false;
  HostProfileOptions of_host;
};

int fail(const std::string& what) {
  fprintf(stderr, "v3demu profile: %s\n", what.c_str());
  return 1;
}

absl::StatusOr<Profile> collect(const std::string& file, profiling::FramesBy frames) {
  auto reader = open_capture(file);
  if (!reader.ok()) return reader.status();
  profiling::Collector collector(**reader);
  const bool watched = isatty(STDERR_FILENO) != 0;
  absl::Status status;
  for (uint32_t job = 1; (status = collector.run_next()).ok(); ++job)
    if (watched) fprintf(stderr, "\rv3demu profile: job %u ", job);
  if (watched) fputs("\r\x1b[K", stderr);
  if (!absl::IsNotFound(status))
    return absl::Status(status.code(), absl::StrCat(file, ": ", status.message()));
  warn_of_old_format("profile", file, **reader);
  Profile profile = collector.take();
  group_frames(frames, &profile);
  schedule(&profile);
  return profile;
}

/// False, with a message, when it cannot be written.
bool save(const std::string& path, const std::string& text) {
  const absl::Status saved = write_file(path, text);
  return saved.ok() || fail(absl::StrCat("cannot write ", saved.message())) == 0;
}

int profile_capture(const Options& options, const std::string& file) {
  const auto frames =
      options.by_submission ? profiling::FramesBy::kSubmission : profiling::FramesBy::kTargets;
  const auto profile = collect(file, frames);
  if (!profile.ok()) return fail(std::string(profile.status().message()));
  if (options.json != "-") fputs(to_text(*profile).c_str(), stdout);
  bool saved = options.html.empty() || save(options.html, to_html(*profile, options.page));
  saved = (options.json.empty() || save(options.json, to_json(*profile))) && saved;
  saved = (options.trace.empty() || save(options.trace, to_trace(*profile))) && saved;
  return saved ? 0 : 1;
}

/// Sets files beside each other, or beside the budget.
int gate(const Options& options, std::vector<std::string> files) {
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) files.insert(files.end(), {name, value});
  };
  add("--fail-above", options.fail_above);
  add("--budget", options.budget);
  add("--output", options.table);
  return run_script("profile", "profile_gate", files);
}

/// As profile_capture(), and then the budget, if there is one.
int profile_to_budget(Options options, const std::string& file) {
  if (options.budget.empty()) return profile_capture(options, file);
  const TemporaryFolder folder("v3demu-profile");
  if (folder.path.empty()) return fail(absl::StrCat("no temporary folder: ", strerror(errno)));
  if (options.json.empty()) options.json = folder.path / "profile.json";
  const int profiled = profile_capture(options, file);
  return profiled ? profiled : gate(options, {options.json});
}

int profile_program(const Options& options) {
  const TemporaryFolder folder("v3demu-profile");
  if (folder.path.empty()) return fail(absl::StrCat("no temporary folder: ", strerror(errno)));
  const std::string file =
      options.folder.empty() ? folder.path / "capture.v3dcap" : fs::path(options.folder) / "capture.v3dcap";
  const CaptureEnd captured = capture_program(options.run, file);
  if (!captured.complete()) return captured.status;
  const int profiled = profile_to_budget(options, file);
  return captured.status ? captured.status : profiled;
}

/// Before anything runs: false, with a message, if a page is asked for and there is none to make it of. Of -o
/// it is one of several things.
bool find_export(Options* options) {
  if (options->html.empty() && options->folder.empty()) return true;
  const std::string path = find_page("inspect") + "/export.html";
  std::optional<std::string> page = read_file(path);
  if (page) {
    options->page = *std::move(page);
    if (options->html.empty()) options->html = fs::path(options->folder) / "profile.html";
    return true;
  }
  fail(absl::StrCat("no page: no ", path,
                    "; it is made by the build where Node.js and npm are (packages nodejs and npm), and they "
                    "reach the npm registry"));
  return options->html.empty();
}

/// What -o asks for, where nothing else is said.
bool make_folder(Options* options) {
  if (options->folder.empty()) return true;
  std::error_code error;
  const fs::path folder = options->folder;
  fs::create_directories(folder, error);
  if (error)
    return fail(absl::StrCat("cannot make the folder ", options->folder, ": ", error.message())) == 0;
  if (options->json.empty()) options->json = folder / "profile.json";
  if (options->trace.empty()) options->trace = folder / "trace.json";
  return true;
}

int profile(Options* options, bool has_program) {
  if (!options->compared.empty()) {
    if (has_program || !options->file.empty())
      throw CLI::ValidationError("--compare", "takes two files, and no program");
    return gate(*options, options->compared);
  }
  if (!options->fail_above.empty() || (!options->table.empty() && options->budget.empty()))
    throw CLI::RequiresError(options->fail_above.empty() ? "--table" : "--fail-above", "--compare");
  if (!options->budget.empty() && options->json == "-")
    throw CLI::ValidationError("--budget", "is told on the standard output, where --json - writes");
  if (has_program == !options->file.empty())
    throw CLI::RequiredError("either a capture or, after --, a program to run");
  if (!has_program && !options->run.board.device.empty())
    throw CLI::ValidationError("--device", "the board of a capture is that on which it was taken");
  if (options->host) {
    const std::string needless = options->folder + options->html + options->json + options->trace;
    if (!needless.empty()) throw CLI::ValidationError("--host", "is told as text, on the standard output");
    return has_program ? host_profile_of_program(options->run, options->of_host)
                       : host_profile_of_capture(options->file, options->of_host);
  }
  if (!find_export(options) || !make_folder(options)) return 1;
  return has_program ? profile_program(*options) : profile_to_budget(*options, options->file);
}

}  // namespace

void add_profile(CLI::App* app, int* exit_code) {
  static Options options;
  options.run.name = "profile";
  CLI::App* command =
      app->add_subcommand("profile", "Predict what a program, or a capture, takes on the board");
  command->add_option("file", options.file, "A capture, in place of a program");
  command
      ->add_option(
          "-o,--output", options.folder,
          "Write profile.html, profile.json, trace.json and, of a program, capture.v3dcap to this folder")
      ->option_text("FOLDER");
  command->add_option("--html", options.html, "A page with timeline, tables and shaders")
      ->option_text("FILE");
  command->add_option("--json", options.json, "All of it as JSON; to the standard output in place of text: -")
      ->option_text("FILE");
  command->add_option("--perfetto", options.trace, "A trace for ui.perfetto.dev and chrome://tracing")
      ->option_text("FILE");
  command
      ->add_option("--compare", options.compared,
                   "Set two captures or files of --json beside each other, before and after a change")
      ->option_text("A B")
      ->expected(2);
  command
      ->add_option("--fail-above", options.fail_above,
                   "With --compare: status 3 if a frame, draw or shader takes so much longer")
      ->option_text("PERCENT");
  command->add_option("--budget", options.budget, "Status 3 if a frame takes longer, such as 16.6ms")
      ->option_text("TIME");
  command->add_option("--table", options.table, "What --compare and --budget tell, to a file too (Markdown)")
      ->option_text("FILE");
  static std::string frames_by = "targets";
  command
      ->add_option("--frames-by", frames_by,
                   "What a frame is: targets (it ends where the next image of its size and format is drawn, "
                   "default) or submit (each submission with a render job)")
      ->option_text("RULE")
      ->check(CLI::IsMember({"targets", "submit"}));
  CLI::Option* const host = command->add_flag(
      "--host", options.host, "Tell where the time goes on this host instead: by block, program and draw");
  command
      ->add_option("--leave-out", options.of_host.leave_out,
                   "With --host: stages not to execute, to see what they cost: " + stage_names())
      ->option_text("LIST")
      ->needs(host)
      ->check([](const std::string& list) { return std::string(parse_left_out(list).status().message()); });
  command
      ->add_flag("--perf-map", options.of_host.perf_map,
                 "With --host: name compiled QPU programs for perf in /tmp/perf-PID.map")
      ->needs(host);
  CLI::Option* const repeat =
      command
          ->add_option("--repeat", options.of_host.repeat,
                       "With --host, of a capture: run each job so often, a million times at most")
          ->option_text("N")
          ->needs(host)
          ->check(CLI::Range(1, 1000000));
  add_run_options(command, &options.run);
  command->callback([exit_code, repeat] {
    options.by_submission = frames_by == "submit";
    options.run.command = program_behind_options();
    if (*repeat && !options.run.command.empty()) throw CLI::ValidationError("--repeat", "is for captures");
    *exit_code = profile(&options, !options.run.command.empty());
  });
}

}  // namespace v3d::tools
