/// v3demu ci: a job of Mesa's continuous integration on the emulated board. The tool behind it is
/// tools/mesa_ci, which shares its runner with tools/conformance; here is what it can be asked for.

#include <CLI/CLI.hpp>
#include <array>
#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

#include "tools/cli/commands.h"
#include "tools/cli/files/files.h"
#include "tools/cli/files/script.h"

namespace v3d::tools {
namespace {

struct Option {
  const char* name;
  const char* value;  ///< what it takes, in help; null: nothing, it is a flag
  const char* what;
};

constexpr Option kOptions[] = {
    {"--mesa", "TREE", "Mesa's source tree, whose job files and lists count"},
    {"--drivers", "PREFIX", "Where the drivers to test are installed (default: those of v3demu run)"},
    {"--suites", "FOLDER", "Where packaging/suites put the suites (default: suites in v3demu's cache)"},
    {"--output", "FOLDER", "Where results.csv, failures.csv, junit.xml and logs go (default: results)"},
    {"--shard", "INDEX/TOTAL",
     "The part to run (default: CI_NODE_INDEX and CI_NODE_TOTAL, else the first of the job's)"},
    {"--fraction", "N", "One of N cases of that part"},
    {"--jobs", "N", "Processes at a time (default: one for each processor)"},
    {"--timeout", "SECONDS", "How long a case may take (default: 240)"},
    {"--fails", "FILE", "A list of your own: NAME,STATUS; it counts before that of the board"},
    {"--flakes", "FILE", "A list of your own: patterns of cases that may fail"},
    {"--skips", "FILE", "A list of your own: patterns of cases not to run"},
    {"--include", "PATTERN", "Of that part the cases alone whose names have it; may be repeated"},
    {"--traces", "FOLDER",
     "Where the traces of a job that replays some lie (default: traces in the folder of --suites)"},
    {"--references", "FOLDER", "Pictures of last frames, as NAME.png, for traces whose checksum is another"},
    {"--tolerance", "PERCENT",
     "How many of a frame's pixels may be off a picture there by more than 8 of 255 (default: 0)"},
    {"--runner", "NAME", "auto (deqp-runner where it is in the PATH, default), deqp-runner or own"},
    {"--journal", "FILE", "Results as they come; the same run, started again, goes on from there"},
    {"--merge", "FOLDER", "Make one result of those of shards, in place of a run; may be repeated"},
    {"--available", nullptr, "Run the job's suites that are here, though some are not"},
    {"--list", nullptr, "List the jobs of the tree, and why some cannot be run"},
    {"--dry-run", nullptr, "Tell what would be run"},
    {"--progress", nullptr, "Report progress though standard error is no terminal"}};

std::array<std::vector<std::string>, std::size(kOptions)> g_values;
std::array<bool, std::size(kOptions)> g_flags;

int run_job(const std::string& job) {
  std::vector<std::string> words;
  bool has_suites = false;
  for (size_t i = 0; i < std::size(kOptions); ++i) {
    const std::string name = kOptions[i].name;
    if (g_flags[i]) words.push_back(name);
    for (const std::string& value : g_values[i]) words.insert(words.end(), {name, value});
    has_suites = has_suites || (name == "--suites" && !g_values[i].empty());
  }
  if (!has_suites) words.insert(words.end(), {"--suites", cache_folder() + "/suites"});
  if (!job.empty()) words.insert(words.end(), {"--", job});
  return run_script("ci", "mesa_ci", words);
}

}  // namespace

void add_ci(CLI::App* app, int* exit_code) {
  static std::string job;
  CLI::App* command =
      app->add_subcommand("ci", "Run a job of Mesa's continuous integration on the emulated board");
  command->add_option("job", job, "Its name in Mesa's tree, such as v3d-rpi5-gl:arm64");
  for (size_t i = 0; i < std::size(kOptions); ++i) {
    const Option& option = kOptions[i];
    if (option.value)
      command->add_option(option.name, g_values[i], option.what)
          ->option_text(option.value)
          ->allow_extra_args(false);
    else
      command->add_flag(option.name, g_flags[i], option.what);
  }
  command->callback([exit_code] { *exit_code = run_job(job); });
}

}  // namespace v3d::tools
