/// @file What CPU jobs do (drm-abi.md 5; Linux v3d_sched.c, v3d_cpu_job_run).
#include <cstring>

#include "ioctl/core/file.h"
#include "ioctl/v3d/submit_cpu.h"

namespace v3d::ioctl {
namespace {

/// Slot `index` of a result record: 8 or 4 bytes.
void write_slot(const Bo& bo, uint64_t record, uint64_t index, bool do_64bit, uint64_t value) {
  const uint64_t bytes = do_64bit ? 8 : 4;
  if (uint8_t* to = bo.host(record + index * bytes, bytes)) std::memcpy(to, &value, bytes);
}

bool is_available(const Syncobj& syncobj) {
  const FencePtr fence = syncobj.fence();
  return fence && fence->is_signalled();
}

void run(IndirectCsdWork& work, const Job& job, const chip::Profile& profile, const std::weak_ptr<File>&,
         JobControl&) {
  uint32_t counts[3];
  const uint8_t* from = job.bos[0]->host(work.offset, sizeof counts);
  if (!from) return;
  std::memcpy(counts, from, sizeof counts);
  auto& cfg = work.jobs.registers->cfg;
  for (size_t i = 0; i < 3; ++i) cfg[i] = counts[i] << 16;
  if (!counts[0] || !counts[1] || !counts[2]) return;  // the CSD job skips itself

  // 32-bit arithmetic, as in the kernel.
  const uint32_t batches = (work.wg_size + 15) / 16 * (counts[0] * counts[1] * counts[2]);
  cfg[4] = profile.csd_batches_exact() ? batches : batches - 1;
  for (size_t i = 0; i < 3; ++i) {
    const uint32_t word = work.wg_uniform_offsets[i];
    if (word == 0xffffffff) continue;
    if (uint8_t* to = work.indirect->host(uint64_t{word} * 4, 4)) std::memcpy(to, &counts[i], 4);
  }
}

void run(TimestampWork& work, const Job& job, const chip::Profile&, const std::weak_ptr<File>&,
         JobControl& control) {
  bool first = true;
  for (const TimestampQuery& query : work.queries) {
    control.checkpoint();
    // The first query of a multiview set has the time, the others 0.
    const auto value = first ? static_cast<uint64_t>(monotonic_ns()) : 0;
    first = false;
    if (uint8_t* to = job.bos[0]->host(query.offset, 8)) std::memcpy(to, &value, 8);
    query.syncobj->replace(job.done);
  }
}

void run(ResetTimestampWork& work, const Job& job, const chip::Profile&, const std::weak_ptr<File>&,
         JobControl& control) {
  for (const TimestampQuery& query : work.queries) {
    control.checkpoint();
    if (uint8_t* to = job.bos[0]->host(query.offset, 8)) std::memset(to, 0, 8);
    query.syncobj->replace(nullptr);
  }
}

void run(CopyTimestampWork& work, const Job& job, const chip::Profile&, const std::weak_ptr<File>&,
         JobControl& control) {
  const CopyLayout& layout = work.layout;
  uint64_t record = layout.offset;
  for (const TimestampQuery& query : work.queries) {
    control.checkpoint();
    const bool available = is_available(*query.syncobj);
    const uint8_t* from = job.bos[1]->host(query.offset, 8);
    if ((available || layout.do_partial) && from) {
      uint64_t value;
      std::memcpy(&value, from, 8);
      write_slot(*job.bos[0], record, 0, layout.do_64bit, value);
    }
    if (layout.availability_bit) write_slot(*job.bos[0], record, 1, layout.do_64bit, available);
    record += layout.stride;
  }
}

void run(ResetPerformanceWork& work, const Job&, const chip::Profile&, const std::weak_ptr<File>& weak_file,
         JobControl& control) {
  const std::shared_ptr<File> file = weak_file.lock();
  for (const PerformanceQuery& query : work.queries) {
    control.checkpoint();
    for (const uint32_t id : query.perfmon_ids)
      if (const auto perfmon = file ? file->find_perfmon(id) : nullptr) perfmon->reset();
    query.syncobj->replace(nullptr);
  }
}

void run(CopyPerformanceWork& work, const Job& job, const chip::Profile&,
         const std::weak_ptr<File>& weak_file, JobControl& control) {
  const std::shared_ptr<File> file = weak_file.lock();
  const CopyLayout& layout = work.layout;
  uint64_t record = layout.offset;
  for (const PerformanceQuery& query : work.queries) {
    control.checkpoint();
    const bool available = is_available(*query.syncobj);
    uint64_t slot = 0;  // each perfmon has 32, however few it uses
    for (const uint32_t id : query.perfmon_ids) {
      const auto perfmon = file && (available || layout.do_partial) ? file->find_perfmon(id) : nullptr;
      if (perfmon) {
        uint64_t i = slot;
        for (const uint64_t value : perfmon->values())
          write_slot(*job.bos[0], record, i++, layout.do_64bit, value);
        if (file->abi().reading_stops_perfmon) perfmon->stop();
      }
      slot += drm::kMaxPerfmonCounters;
    }
    // May fall on a value of a second perfmon, as in the kernel.
    if (layout.availability_bit) write_slot(*job.bos[0], record, work.ncounters, layout.do_64bit, available);
    record += layout.stride;
  }
}

void run(std::monostate, const Job&, const chip::Profile&, const std::weak_ptr<File>&, JobControl&) {}

}  // namespace

void run_cpu_work(CpuSubmission& cpu, const Job& job, const chip::Profile& profile,
                  const std::weak_ptr<File>& file, JobControl& control) {
  std::visit([&](auto& work) { run(work, job, profile, file, control); }, cpu.work);
}

}  // namespace v3d::ioctl
