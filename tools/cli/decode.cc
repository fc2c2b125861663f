/// v3demu decode: the jobs of a capture as text: control lists, records, shader programs.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <string>
#include <utility>

#include "daemon/capture.h"
#include "daemon/captured_programs.h"
#include "gpu/cle/dump.h"
#include "gpu/cle/surfaces.h"
#include "tools/cli/captures/captures.h"
#include "tools/cli/captures/program_listing.h"
#include "tools/cli/commands.h"

namespace v3d::tools {
namespace {

using daemon::CapturedJob;

constexpr const char* kKindNames[] = {"bin", "render", "compute", "tfu", "user"};

class Decoder {
 public:
  /// @param job  the only one, from 1; 0: all
  Decoder(const chip::Profile& profile, uint32_t job) : profile_(profile), job_(job) {}

  /// Whether the next one is to be printed; counts it.
  bool wants_next() { return ++number_ == job_ || job_ == 0; }
  bool is_done() const { return job_ != 0 && number_ >= job_; }
  uint32_t jobs() const { return number_; }

  void print(const CapturedJob& job, mmu::AddressSpace& space) {
    const Memory memory = space.memory();
    std::printf("job %u: %s, client %u", number_, kKindNames[job.kind], job.context);
    if (job.submission) std::printf(", submission %u", job.submission);
    std::printf("\n");
    switch (job.kind) {
      case CapturedJob::kBin:
        print_list(memory, job.cl().bcl_start, job.cl().bcl_end);
        break;
      case CapturedJob::kRender:
        if (job.surfaces)
          print_frame(*job.surfaces);
        else
          print_list(memory, job.cl().rcl_start, job.cl().rcl_end);
        break;
      case CapturedJob::kCsd:
        print_dispatch(memory, job.csd());
        break;
      case CapturedJob::kUser:
        print_programs(memory, *job.programs);
        break;
      default:
        print_tfu(job.tfu());
    }
    space.take_faults();  // ours, not the job's
  }

 private:
  void print_list(Memory memory, GpuAddr start, GpuAddr end) {
    std::map<std::pair<std::string, GpuAddr>, ListedProgram> programs;
    cle::dump_list(memory, start, end, profile_,
                   {.line =
                        [](std::string_view line) {
                          std::printf("  %.*s\n", static_cast<int>(line.size()), line.data());
                        },
                    .shader =
                        [&](std::string_view stage, const auto& shader) {
                          ListedProgram& program = programs[{std::string(stage), shader.code}];
                          program.stage = stage;
                          program.code = shader.code;
                          program.final_section = shader.final_section;
                          program.uniforms.insert(shader.uniforms);
                        }});
    for (const auto& [key, program] : programs) print_program(memory, program);
  }

  static void print_frame(const device::SurfaceJob& frame) {
    for (const std::string& line : cle::describe_surfaces(frame)) std::printf("  %s\n", line.c_str());
    if (frame.list_start != frame.list_end)
      std::printf("  draw what the list at 0x%08x has binned in %u x %u tiles\n", frame.list_start,
                  frame.tiles_x, frame.tiles_y);
  }

  void print_dispatch(Memory memory, const device::CsdJob& job) {
    const auto& c = job.cfg;
    const auto count = [](uint32_t cfg) { return cfg >> 16 ? cfg >> 16 : 65536u; };
    std::printf("  workgroups %u x %u x %u, size %u, %u per supergroup of %u batches, %u batches%s\n",
                count(c[0]), count(c[1]), count(c[2]), c[3] & 255 ? c[3] & 255 : 256,
                c[3] >> 8 & 15 ? c[3] >> 8 & 15 : 16, (c[3] >> 12 & 255) + 1, c[4],
                job.indirect ? ", indirect" : "");
    std::printf("  %s threads, uniforms at 0x%08x\n", c[5] & 1 ? "4" : "2", c[6]);
    print_program(memory, {"compute", c[5] & ~7u, (c[5] & 2) != 0, {c[6]}});
  }

  void print_programs(Memory memory, const daemon::CapturedPrograms& job) {
    std::printf("  %zu programs, started %s%s\n", job.programs.size(),
                job.alone ? "by the firmware" : "by registers",
                job.fresh ? "" : ", after those of jobs before");
    if (job.reserved_qpus) std::printf("  none on QPUs 0x%x\n", job.reserved_qpus);
    std::map<GpuAddr, ListedProgram> programs;
    for (const csd::UserProgram& started : job.programs) {
      const GpuAddr code = started.code & ~7u;
      ListedProgram& program = programs[code];
      program = {"user", code, false, std::move(program.uniforms)};
      program.uniforms.insert(started.uniforms & ~3u);
    }
    for (const auto& [code, program] : programs) print_program(memory, program);
  }

  void print_program(Memory memory, const ListedProgram& program) {
    std::fputs(program_listing(memory, profile_.generation, program).c_str(), stdout);
  }

  static void print_tfu(const device::TfuJob& j) {
    std::printf("  icfg 0x%08x iia 0x%08x iis 0x%08x ica 0x%08x iua 0x%08x ioa 0x%08x ios %ux%u ioc 0x%08x\n",
                j.icfg, j.iia, j.iis, j.ica, j.iua, j.ioa, j.ios & 0xffff, j.ios >> 16, j.ioc);
  }

  const chip::Profile& profile_;
  const uint32_t job_;
  uint32_t number_ = 0;
};

int decode(const std::string& file, uint32_t only) {
  auto reader = daemon::CaptureReader::open(file);
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
