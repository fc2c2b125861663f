/// Input: repeated {u8 0, u32 address, u16 n, n bytes of memory} and {u8 kind 1 to 4, u32 words[12]}: a job
/// as a capture holds it (daemon/capture.h). make_job_seeds.py makes inputs of captures.
#include <array>

#include "daemon/capture.h"
#include "gpu/cle/executor.h"
#include "gpu/csd/dispatch.h"
#include "gpu/draw/bin_result.h"
#include "gpu/tfu/tfu.h"
#include "tests/fuzz/fuzz_job.h"
#include "tests/fuzz/input.h"

namespace v3d::fuzz {
namespace {

using daemon::CapturedJob;

void write_memory(JobMemory& memory, Input& input) {
  const auto address = input.take<uint32_t>();
  const Bytes bytes = input.take_bytes(input.take<uint16_t>());
  constexpr uint64_t kEnd = uint64_t{JobMemory::kBase} + JobMemory::kSize;
  if (address >= JobMemory::kBase && address + bytes.size() <= kEnd)
    memory.memory().write(address, bytes.data(), bytes.size());
}

void run(JobMemory& memory, const CapturedJob& captured, std::shared_ptr<draw::BinResult>* bin) {
  FuzzJob job(memory, chip::Generation::k71);
  switch (captured.kind) {
    case CapturedJob::kBin:
      *bin = cle::run_bin_list(job.job(), captured.cl().bcl_start, captured.cl().bcl_end);
      return;
    case CapturedJob::kRender:
      return cle::run_render_list(job.job(), captured.cl().rcl_start, captured.cl().rcl_end,
                                  captured.cl().qma, bin->get());
    case CapturedJob::kCsd:
      v3d::csd::dispatch(job.job(), captured.csd().cfg, captured.csd().indirect, &memory.space());
      return;
    default: {
      const device::TfuJob t = captured.tfu();
      return v3d::tfu::run(job.job(), {t.icfg, t.iia, t.iis, t.ica, t.iua, t.ioa, t.ios, t.ioc, t.coef});
    }
  }
}

}  // namespace

void jobs(Bytes bytes) {
  static JobMemory memory;
  memory.reset({});
  Input input(bytes);
  std::shared_ptr<draw::BinResult> bin;
  for (int jobs = 0; jobs < 4 && !input.empty();) {
    const unsigned kind = input.take<uint8_t>() % 5;
    if (kind == 0) {
      write_memory(memory, input);
      continue;
    }
    CapturedJob job;
    job.kind = kind - 1;
    const auto words = input.take<std::array<uint32_t, 12>>();
    std::copy(words.begin(), words.end(), job.words.begin());
    run(memory, job, &bin);
    ++jobs;
  }
}

}  // namespace v3d::fuzz
