/// Input: SUBMIT_CL, whose sizes are cut to what follows, then the list, the records and the uniforms. The
/// BOs and programs are always the same.
#include <array>
#include <cstdlib>
#include <span>
#include <vector>

#include "ioctl/abi/vc4.h"
#include "ioctl/vc4/binning.h"
#include "ioctl/vc4/surfaces.h"
#include "tests/fuzz/input.h"
#include "tests/ioctl/vc4/words.h"

namespace v3d::fuzz {
namespace {

using namespace ioctl::vc4;
using namespace ioctl::vc4::test;

struct Objects {
  Objects() {
    for (const auto& words :
         {program({}), program({signal(2)}), program({write(kTmu0T), write(kTmu0S)}),
          program({write(kTmu0T), write(kTmu0S + 2), write(kTmu0B), write(kTmu0S), read_uniform()}),
          program({at_least_zero(33), at_most_uniform(34, 1), add_uniform(kTmu0S, 2)}),
          program({read_uniform(), nop(), nop(), branch(-5), nop(), nop(), nop()})})
      programs.push_back(*analyse_program(words));
    for (const uint64_t pages : {1, 4, 64, 512}) bos.push_back({next_address(), pages * 4096});
    for (const Program& program : programs) bos.push_back({next_address(), 4096, &program});
  }
  uint32_t next_address() const { return 0x1000000 * static_cast<uint32_t>(bos.size() + 1); }

  std::vector<Program> programs;
  std::vector<JobBo> bos;
};

void check_stays_in_bo(const device::SurfaceJob::Surface& surface, const Objects& objects) {
  if (!surface.present) return;
  for (const JobBo& bo : objects.bos)
    if (surface.address >= bo.address && surface.address - bo.address + surface.bytes == bo.size &&
        !bo.program)
      return;
  std::abort();
}

}  // namespace

void vc4_jobs(Bytes bytes) {
  static const Objects objects;
  Input input(bytes);
  const auto args = input.take<ioctl::drm::vc4::SubmitCl>();
  const BinningSource source = {input.take_bytes(args.bin_cl_size & 0xfff),
                                input.take_bytes(args.shader_rec_size & 0xfff),
                                input.take_bytes(args.uniforms_size & 0xfff), args.shader_rec_count};
  Binning binning;
  if (!source.list.empty()) {
    auto checked = check_binning(source, objects.bos, 0x80000000, args.pad2 & 1);
    if (!checked.ok()) return;
    binning = *std::move(checked);
    if (binning.list_bytes > source.list.size() || !binning.tiles_x || !binning.tiles_y) std::abort();
    for (const uint32_t bo : binning.reads)
      if (bo >= objects.bos.size() || objects.bos[bo].program) std::abort();
  }
  const auto surfaces = check_surfaces(args, objects.bos, binning.tiles_x, binning.tiles_y);
  if (!surfaces.ok()) return;
  const device::SurfaceJob& job = surfaces->job;
  for (const auto* surface : {&job.color_read, &job.zs_read, &job.color_write, &job.zs_write,
                              &job.msaa_color_write, &job.msaa_zs_write})
    check_stays_in_bo(*surface, objects);
}

}  // namespace v3d::fuzz
