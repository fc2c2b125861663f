#include "tools/cli/captures/job_listing.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "daemon/captured_programs.h"
#include "gpu/cle/dump.h"
#include "gpu/cle/surfaces.h"
#include "gpu/csd/configuration.h"
#include "gpu/tfu/tfu.h"
#include "tools/cli/captures/program_listing.h"

namespace v3d::tools {

using daemon::CapturedJob;

namespace {

class JobListing {
 public:
  JobListing(const chip::Profile& profile, const std::function<void(std::string_view line)>& line)
      : profile_(profile), line_(line) {}

  void list(Memory memory, GpuAddr start, GpuAddr end) const {
    std::map<std::pair<std::string, GpuAddr>, ListedProgram> programs;
    cle::dump_list(memory, start, end, profile_,
                   {.line = [&](std::string_view line) { line_(absl::StrFormat("  %s", line)); },
                    .shader =
                        [&](std::string_view stage, const auto& shader) {
                          ListedProgram& program = programs[{std::string(stage), shader.code}];
                          program.stage = stage;
                          program.code = shader.code;
                          program.final_section = shader.final_section;
                          program.uniforms.insert(shader.uniforms);
                        }});
    for (const auto& [key, one] : programs) program(memory, one);
  }

  void frame(const device::SurfaceJob& frame) const {
    for (const std::string& line : cle::describe_surfaces(frame)) line_("  " + line);
    if (frame.list_start != frame.list_end)
      line_(absl::StrFormat("  draw what the list at 0x%08x has binned in %d x %d tiles", frame.list_start,
                            frame.tiles_x, frame.tiles_y));
  }

  void dispatch(Memory memory, const device::CsdJob& job) const {
    const csd::Configuration c = csd::decode(job.cfg, profile_);
    line_(absl::StrFormat("  workgroups %d x %d x %d, size %d, %d per supergroup of %d batches, %d batches%s",
                          c.wg_count[0], c.wg_count[1], c.wg_count[2], c.wg_size, c.wgs_per_sg,
                          c.batches_per_sg, c.batches, job.indirect ? ", indirect" : ""));
    line_(absl::StrFormat("  %s threads, uniforms at 0x%08x", c.four_threads ? "4" : "2", c.uniforms));
    program(memory, {"compute", c.code, c.single_segment, {c.uniforms}});
  }

  void user_programs(Memory memory, const daemon::CapturedPrograms& job) const {
    line_(absl::StrFormat("  %d programs, started %s%s", job.programs.size(),
                          job.alone ? "by the firmware" : "by registers",
                          job.fresh ? "" : ", after those of jobs before"));
    if (job.reserved_qpus) line_(absl::StrFormat("  none on QPUs 0x%x", job.reserved_qpus));
    std::map<GpuAddr, ListedProgram> programs;
    for (const csd::UserProgram& started : job.programs) {
      const GpuAddr code = started.code & ~7u;
      ListedProgram& one = programs[code];
      one = {"user", code, false, std::move(one.uniforms)};
      one.uniforms.insert(started.uniforms & ~3u);
    }
    for (const auto& [code, one] : programs) program(memory, one);
  }

  void tfu(const device::TfuJob& j) const {
    line_(absl::StrFormat(
        "  icfg 0x%08x iia 0x%08x iis 0x%08x ica 0x%08x iua 0x%08x ioa 0x%08x ios %dx%d ioc 0x%08x", j.icfg,
        j.iia, j.iis, j.ica, j.iua, j.ioa, j.ios & 0xffff, j.ios >> 16, j.ioc));
    line_("  " + tfu::description({j.icfg, j.iia, j.iis, j.ica, j.iua, j.ioa, j.ios, j.ioc, j.coef},
                                  profile_.generation));
  }

 private:
  void program(Memory memory, const ListedProgram& program) const {
    const std::string text = program_listing(memory, profile_.generation, program);
    for (size_t start = 0; start < text.size();) {
      const size_t end = std::min(text.find('\n', start), text.size());
      line_(std::string_view(text).substr(start, end - start));
      start = end + 1;
    }
  }

  const chip::Profile& profile_;
  const std::function<void(std::string_view line)>& line_;
};

}  // namespace

const char* kind_name(const CapturedJob& job) {
  constexpr const char* kNames[] = {"bin", "render", "compute", "tfu", "user"};
  return kNames[job.kind];
}

void list_job(const CapturedJob& job, mmu::AddressSpace& space, const chip::Profile& profile,
              const std::function<void(std::string_view line)>& line) {
  const Memory memory = space.memory();
  const JobListing listing(profile, line);
  switch (job.kind) {
    case CapturedJob::kBin:
      listing.list(memory, job.cl().bcl_start, job.cl().bcl_end);
      break;
    case CapturedJob::kRender:
      job.surfaces ? listing.frame(*job.surfaces)
                   : listing.list(memory, job.cl().rcl_start, job.cl().rcl_end);
      break;
    case CapturedJob::kCsd:
      listing.dispatch(memory, job.csd());
      break;
    case CapturedJob::kUser:
      listing.user_programs(memory, *job.programs);
      break;
    default:
      listing.tfu(job.tfu());
  }
  space.take_faults();  // ours, not the job's
}

}  // namespace v3d::tools
