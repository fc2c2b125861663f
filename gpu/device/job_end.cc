#include "gpu/device/job_end.h"

#include <optional>
#include <string>

#include "absl/strings/str_format.h"
#include "gpu/base/log.h"
#include "gpu/mmu/fault_place.h"
#include "gpu/perf/counters.h"
#include "gpu/qpu/run/place_text.h"

namespace v3d::device {
namespace {

std::string text_of(const JobContext& job, const mmu::AddressSpace& space, const mmu::FaultPlace& place) {
  std::optional<uint64_t> word;  // of a program that may have been its own victim
  if (space.is_mapped(place.instruction)) word = job.memory.load<uint64_t>(place.instruction & ~7u);
  return absl::StrFormat("in the %s program at 0x%08x, at %s", place.stage, place.program,
                         qpu::pc_text(job.profile->generation, place.instruction, word));
}

}  // namespace

JobResult result_of(const JobContext& job, mmu::AddressSpace& space) {
  JobResult r;
  if (job.error->failed()) {
    r.message = job.error->message();
    r.end = job.error->kind() == JobError::Kind::kHang ? JobResult::End::kHang : JobResult::End::kError;
  } else if (job.cancel->load(std::memory_order_relaxed)) {
    r.end = JobResult::End::kCancelled;
  }
  r.faults = space.take_faults();
  if (r.faults.count)
    log_debug(Debug::kMmu, "%d accesses to unmapped pages, the first at %#x", r.faults.count,
              r.faults.first_address);
  const mmu::FaultPlace place = mmu::take_fault_place(space);
  if (r.faults.count && place.stage) r.fault_place = text_of(job, space, place);
  r.counts = job.counts->total();
  perf::derive(&r.counts);
  return r;
}

}  // namespace v3d::device
