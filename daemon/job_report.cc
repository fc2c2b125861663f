#include "daemon/job_report.h"

#include <cerrno>
#include <exception>

#include "absl/strings/str_format.h"
#include "gpu/base/log.h"

namespace v3d::daemon {
namespace {

using ioctl::Job;
using ioctl::User;

const char* behind(const std::string& text) { return text.empty() ? "" : ", "; }

void report_faults(const Job& job, const User& user, const device::JobResult& result) {
  const mmu::Faults& faults = result.faults;
  ioctl::ClientInfo& client = *job.client;
  client.mmu_faults += faults.count;
  const uint64_t jobs = ++client.faulty_jobs;
  log_warning(
      "MMU error from client %s of %s (pid %d) at 0x%x, pte invalid (%d accesses in job %d; faulty job "
      "%d)%s%s",
      ioctl::queue_name(job.queue), user.program, user.pid, faults.first_address, faults.count,
      job.done->seqno(), jobs, behind(result.fault_place), result.fault_place);
}

void report_failure(const Job& job, const User& user, const std::string& message) {
  const uint64_t failures = ++job.client->failed_jobs;
  log_error("%s job %d of %s (pid %d) failed: %s (failed job %d)", ioctl::queue_name(job.queue),
            job.done->seqno(), user.program, user.pid, message, failures);
}

void report_hang(const Job& job, const User& user, const std::string& message) {
  const uint64_t failures = ++job.client->failed_jobs;
  log_error("%s job %d of %s (pid %d) hangs, resetting: %s (failed job %d)", ioctl::queue_name(job.queue),
            job.done->seqno(), user.program, user.pid, message, failures);
}

/// What cannot be remembered for want of memory is in the log, or was not logged either.
void remember(GpuErrors* errors, const Job& job, const User& user, const device::JobResult& result) {
  using End = device::JobResult::End;
  if (!errors) return;
  try {
    if (result.faults.count)
      errors->add(
          GpuErrorKind::kFault, job, user,
          absl::StrFormat("%d %s to memory that is not mapped, the first at 0x%08x%s%s", result.faults.count,
                          result.faults.count == 1 ? "access" : "accesses", result.faults.first_address,
                          behind(result.fault_place), result.fault_place));
    if (const size_t count = result.broken_rules.size(); count != 0)
      errors->add(GpuErrorKind::kRule, job, user,
                  count == 1 ? result.broken_rules[0]
                             : absl::StrFormat("%s; and %d more", result.broken_rules[0], count - 1));
    if (result.end == End::kError) errors->add(GpuErrorKind::kRefused, job, user, result.message);
    if (result.end == End::kHang) errors->add(GpuErrorKind::kHang, job, user, result.message);
  } catch (const std::exception&) {
  }
}

}  // namespace

int settle(const Job& job, const User& user, const device::JobResult& result, GpuErrors* errors) {
  using End = device::JobResult::End;
  remember(errors, job, user, result);
  if (result.faults.count) report_faults(job, user, result);
  switch (result.end) {
    case End::kDone:
      return 0;
    case End::kError:
      report_failure(job, user, result.message);
      return ECANCELED;
    case End::kHang:
      report_hang(job, user, result.message);
      return ECANCELED;
    case End::kCancelled:
      return ESRCH;
  }
  return ECANCELED;
}

}  // namespace v3d::daemon
