/// Input: SUBMIT_CL, whose sizes are cut to what follows, then the list, the records and the uniforms, and
/// what the BOs hold. The BOs and programs are always the same. What passes the checks is executed.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "gpu/cle/executor.h"
#include "gpu/cle/surfaces.h"
#include "gpu/draw/bin_result.h"
#include "ioctl/abi/vc4.h"
#include "ioctl/vc4/binning.h"
#include "ioctl/vc4/surfaces.h"
#include "tests/fuzz/fuzz_job.h"
#include "tests/fuzz/input.h"
#include "tests/ioctl/vc4/words.h"

namespace v3d::fuzz {
namespace {

using namespace ioctl::vc4;
using namespace ioctl::vc4::test;

/// Where the copy is that the GPU reads; the BOs are below.
constexpr uint32_t kCopy = 0x300000;

struct Objects {
  Objects() {
    words = {program({}),
             program({signal(2)}),
             program({write(kTmu0T), write(kTmu0S)}),
             program({write(kTmu0T), write(kTmu0S + 2), write(kTmu0B), write(kTmu0S), read_uniform()}),
             program({at_least_zero(33), at_most_uniform(34, 1), add_uniform(kTmu0S, 2)}),
             program({read_uniform(), nop(), nop(), branch(-5), nop(), nop(), nop()}),
             program(position_program())};
    for (const auto& of_program : words) programs.push_back(*analyse_program(of_program));
    for (const uint32_t pages : {1, 4, 64, 512}) add(pages * 4096, nullptr);
    for (const Program& program : programs) add(4096, &program);
    if (next > kCopy) std::abort();
  }
  /// Reads four rows of attributes and writes seven.
  static std::vector<uint64_t> position_program() {
    constexpr uint32_t kVpm = 48, kVpmSetup = 49;
    std::vector<uint64_t> words = {load_immediate(kVpmSetup, 0x00401a00)};
    words.push_back(load_immediate(kVpmSetup, 0x00001a00) | uint64_t{1} << 44);
    for (int row = 0; row < 4; ++row)
      words.push_back(Instruction{
          .cond_add = 1, .waddr_add = kVpm, .op_add = 21, .raddr_a = kVpm, .add_a = kMuxA, .add_b = kMuxA}
                          .word());
    for (int row = 0; row < 3; ++row) words.push_back(load_immediate(kVpm, 0x3f800000));
    return words;
  }
  void add(uint32_t bytes, const Program* program) {
    bos.push_back({next, bytes, program});
    next += bytes;
  }
  void put(const Binning& binning, Bytes contents, Memory memory) const {
    for (size_t n = 0; n < words.size(); ++n)
      memory.write(bos[bos.size() - words.size() + n].address, words[n].data(),
                   words[n].size() * sizeof words[n][0]);
    memory.write(kCopy, binning.bytes.data(), binning.bytes.size());
    for (uint32_t at = 0; at < 3; ++at)
      memory.write(bos[at].address, contents.data(), std::min<size_t>(contents.size(), bos[at].size));
  }

  uint32_t next = 0x2000;  // after the first page that there is
  std::vector<std::vector<uint64_t>> words;
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

/// As device::run_surfaces() does.
void execute(device::SurfaceJob frame, const Binning& binning, const Objects& objects, Bytes contents) {
  static JobMemory memory;
  memory.reset({});
  objects.put(binning, contents, memory.memory());
  FuzzJob job(memory, chip::Generation::k21);
  std::shared_ptr<const draw::BinResult> bin;
  if (binning.list_bytes != 0) {
    frame.list_start = kCopy;
    frame.list_end = kCopy + binning.list_bytes;
    frame.tiles_x = binning.tiles_x;
    frame.tiles_y = binning.tiles_y;
    bin = cle::run_bin_list(job.job(), frame.list_start, frame.list_end);
  }
  cle::ClearValues clear;
  cle::run_surfaces(job.job(), frame, bin.get(), &clear);
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
    auto checked = check_binning(source, objects.bos, kCopy, args.pad2 & 1);
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
  execute(job, binning, objects, input.rest());
}

}  // namespace v3d::fuzz
