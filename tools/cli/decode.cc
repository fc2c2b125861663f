/// v3demu decode: the jobs of a capture as text: control lists, records, shader programs.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <string_view>

#include "daemon/capture.h"
#include "tools/cli/captures/captures.h"
#include "tools/cli/captures/clif.h"
#include "tools/cli/captures/job_listing.h"
#include "tools/cli/commands.h"

namespace v3d::tools {
namespace {

using daemon::CapturedJob;

class Decoder {
 public:
  /// @param job  the only one, from 1; 0: all
  Decoder(const chip::Profile& profile, uint32_t job) : profile_(profile), job_(job) {}

  /// Whether the next one is to be printed; counts it.
  bool wants_next() { return ++number_ == job_ || job_ == 0; }
  bool is_done() const { return job_ != 0 && number_ >= job_; }
  uint32_t jobs() const { return number_; }

  void print(const CapturedJob& job, mmu::AddressSpace& space) {
    std::printf("job %u: %s, client %u", number_, kind_name(job), job.context);
    if (job.submission) std::printf(", submission %u", job.submission);
    std::printf("\n");
    list_job(job, space, profile_, [](std::string_view line) {
      std::printf("%.*s\n", static_cast<int>(line.size()), line.data());
    });
  }

 private:
  const chip::Profile& profile_;
  const uint32_t job_;
  uint32_t number_ = 0;
};

int decode(const std::string& file, uint32_t only) {
  auto reader = open_capture(file);
  if (!reader.ok()) {
    fprintf(stderr, "v3demu decode: %s\n", std::string(reader.status().message()).c_str());
    return 1;
  }
  Decoder decoder((*reader)->profile(), only);
  while (!decoder.is_done()) {
    auto job = (*reader)->next();
    if (absl::IsNotFound(job.status())) {
      warn_of_old_format("decode", file, **reader);
      if (only == 0) return 0;
      fprintf(stderr, "v3demu decode: %s: no job %u; it holds %u\n", file.c_str(), only, decoder.jobs());
      return 1;
    }
    if (!job.ok()) {
      fprintf(stderr, "v3demu decode: %s: %s\n", file.c_str(), std::string(job.status().message()).c_str());
      return 1;
    }
    if (decoder.wants_next()) decoder.print(*job, (*reader)->context(job->context).space());
  }
  return 0;
}

}  // namespace

void add_decode(CLI::App* app, int* exit_code) {
  static std::string file;
  CLI::App* command = app->add_subcommand("decode", "Print the jobs of a capture as text");
  command->add_option("file", file, "The capture")->required();
  static uint32_t job = 0;
  command->add_option("--job", job, "Print only this job, by its number")
      ->option_text("JOB")
      ->check(CLI::PositiveNumber);
  command->callback([exit_code] { *exit_code = decode(file, job); });
}

}  // namespace v3d::tools
