/// @file SUBMIT_CPU: arguments (drm-abi.md 2.10).
#include "ioctl/v3d/submit_cpu.h"

#include <algorithm>
#include <cerrno>
#include <new>

#include "ioctl/v3d/handlers.h"

namespace v3d::ioctl {
namespace {

/// Perfmon ids of one submit, in all. They are copied per query, and queries may share one array.
constexpr uint64_t kMaxPerfmonIds = 1 << 20;

/// 0 or ENOMEM.
int charge_queries(Call& call, uint32_t count, uint64_t bytes, CpuSubmission* cpu) {
  if (count > kMaxUserArray) return ENOMEM;
  return call.account.charge(Resource::kJobBytes, count * bytes, &cpu->bytes);
}

int get_timestamp_queries(Call& call, uint64_t offsets, uint64_t syncs, uint32_t count, CpuSubmission* cpu,
                          std::vector<TimestampQuery>* queries) {
  if (const int error = charge_queries(call, count, sizeof(TimestampQuery), cpu)) return error;
  for (uint32_t i = 0; i < count; ++i) {
    TimestampQuery query = {};
    uint32_t sync;
    if (!call.user.get(offsets, i, &query.offset) || !call.user.get(syncs, i, &sync)) return EFAULT;
    query.syncobj = call.file.find_syncobj(sync);
    if (!query.syncobj) return ENOENT;
    queries->push_back(std::move(query));
  }
  return 0;
}

int get_performance_queries(Call& call, uint64_t syncs, uint64_t id_pointers, uint32_t count,
                            uint32_t nperfmons, CpuSubmission* cpu, std::vector<PerformanceQuery>* queries) {
  if (uint64_t{count} * nperfmons > kMaxPerfmonIds) return ENOMEM;
  if (const int error =
          charge_queries(call, count, sizeof(PerformanceQuery) + nperfmons * sizeof(uint32_t), cpu))
    return error;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t sync;
    uint64_t ids;
    if (!call.user.get(syncs, i, &sync) || !call.user.get(id_pointers, i, &ids)) return EFAULT;
    PerformanceQuery query;
    for (uint32_t j = 0; j < nperfmons; ++j) {
      uint32_t id;
      if (!call.user.get(ids, j, &id)) return EFAULT;
      query.perfmon_ids.push_back(id);
    }
    query.syncobj = call.file.find_syncobj(sync);
    if (!query.syncobj) return ENOENT;
    queries->push_back(std::move(query));
  }
  return 0;
}

template <typename Args>
CopyLayout copy_layout(const Args& args) {
  return {args.do_64bit != 0, args.do_partial != 0, args.availability_bit != 0, args.offset, args.stride};
}

int get_indirect_csd(Call& call, uint64_t address, CpuSubmission* cpu) {
  drm::IndirectCsd args;
  if (!call.user.get(address, &args)) return EFAULT;
  auto& work = cpu->work.emplace<IndirectCsdWork>();
  work.offset = args.offset;
  work.wg_size = args.wg_size;
  std::copy(std::begin(args.wg_uniform_offsets), std::end(args.wg_uniform_offsets), work.wg_uniform_offsets);
  work.indirect = call.file.find_bo(args.indirect);
  if (!work.indirect) return ENOENT;  // assumed: the kernel does not look
  work.args = args.submit;
  if (call.kernel.abi().cpu_bos_checked_first) return 0;
  return make_csd_jobs(call, work.args, nullptr, true, &work.jobs);
}

int get_timestamp(Call& call, uint64_t address, CpuSubmission* cpu) {
  drm::TimestampQuery args;
  if (!call.user.get(address, &args)) return EFAULT;
  if (args.pad) return EINVAL;
  return get_timestamp_queries(call, args.offsets, args.syncs, args.count, cpu,
                               &cpu->work.emplace<TimestampWork>().queries);
}

int get_reset_timestamp(Call& call, uint64_t address, CpuSubmission* cpu) {
  drm::ResetTimestampQuery args;
  if (!call.user.get(address, &args)) return EFAULT;
  if (const int error = charge_queries(call, args.count, sizeof(TimestampQuery), cpu)) return error;
  auto& work = cpu->work.emplace<ResetTimestampWork>();
  for (uint32_t i = 0; i < args.count; ++i) {
    uint32_t sync;
    if (!call.user.get(args.syncs, i, &sync)) return EFAULT;
    std::shared_ptr<Syncobj> syncobj = call.file.find_syncobj(sync);
    if (!syncobj) return ENOENT;
    work.queries.push_back({args.offset + 8 * i, std::move(syncobj)});
  }
  return 0;
}

int get_copy_timestamp(Call& call, uint64_t address, CpuSubmission* cpu) {
  drm::CopyTimestampQuery args;
  if (!call.user.get(address, &args)) return EFAULT;
  if (args.pad) return EINVAL;
  auto& work = cpu->work.emplace<CopyTimestampWork>();
  work.layout = copy_layout(args);
  return get_timestamp_queries(call, args.offsets, args.syncs, args.count, cpu, &work.queries);
}

int get_reset_performance(Call& call, uint64_t address, CpuSubmission* cpu) {
  drm::ResetPerformanceQuery args;
  if (!call.user.get(address, &args)) return EFAULT;
  return get_performance_queries(call, args.syncs, args.kperfmon_ids, args.count, args.nperfmons, cpu,
                                 &cpu->work.emplace<ResetPerformanceWork>().queries);
}

int get_copy_performance(Call& call, uint64_t address, CpuSubmission* cpu) {
  drm::CopyPerformanceQuery args;
  if (!call.user.get(address, &args)) return EFAULT;
  if (args.pad) return EINVAL;
  auto& work = cpu->work.emplace<CopyPerformanceWork>();
  work.layout = copy_layout(args);
  work.nperfmons = args.nperfmons;
  work.ncounters = args.ncounters;
  return get_performance_queries(call, args.syncs, args.kperfmon_ids, args.count, args.nperfmons, cpu,
                                 &work.queries);
}

/// By id; bos is the length that the BO list of the submit must have.
struct CpuExtension {
  int (*get)(Call&, uint64_t, CpuSubmission*);
  uint32_t bos;
};
constexpr CpuExtension kCpuExtensions[] = {
    [drm::kExtCpuIndirectCsd - drm::kExtCpuIndirectCsd] = {get_indirect_csd, 1},
    [drm::kExtCpuTimestampQuery - drm::kExtCpuIndirectCsd] = {get_timestamp, 1},
    [drm::kExtCpuResetTimestampQuery - drm::kExtCpuIndirectCsd] = {get_reset_timestamp, 1},
    [drm::kExtCpuCopyTimestampQuery - drm::kExtCpuIndirectCsd] = {get_copy_timestamp, 2},
    [drm::kExtCpuResetPerformanceQuery - drm::kExtCpuIndirectCsd] = {get_reset_performance, 0},
    [drm::kExtCpuCopyPerformanceQuery - drm::kExtCpuIndirectCsd] = {get_copy_performance, 1},
};

bool fits(const Bo& bo, uint64_t offset, uint64_t bytes) { return offset + bytes <= bo.size(); }

bool queries_fit(const Bo& bo, const std::vector<TimestampQuery>& queries) {
  return std::all_of(queries.begin(), queries.end(),
                     [&](const TimestampQuery& query) { return fits(bo, query.offset, 8); });
}

/// Whether the last of some records of so many slots lies inside. Nothing here can exceed 64 bits.
bool records_fit(const Bo& bo, const CopyLayout& layout, uint64_t count, uint64_t slots) {
  return count == 0 ||
         fits(bo, layout.offset + (count - 1) * layout.stride, slots * (layout.do_64bit ? 8 : 4));
}

bool stays_inside(const std::monostate&, const Job&) { return true; }
bool stays_inside(const ResetPerformanceWork&, const Job&) { return true; }
bool stays_inside(const TimestampWork& work, const Job& job) {
  return queries_fit(*job.bos[0], work.queries);
}
bool stays_inside(const ResetTimestampWork& work, const Job& job) {
  return queries_fit(*job.bos[0], work.queries);
}
bool stays_inside(const CopyTimestampWork& work, const Job& job) {
  return queries_fit(*job.bos[1], work.queries) &&
         records_fit(*job.bos[0], work.layout, work.queries.size(), work.layout.availability_bit ? 2 : 1);
}
bool stays_inside(const CopyPerformanceWork& work, const Job& job) {
  uint64_t slots = uint64_t{work.nperfmons} * drm::kMaxPerfmonCounters;
  if (work.layout.availability_bit) slots = std::max(slots, uint64_t{work.ncounters} + 1);
  return records_fit(*job.bos[0], work.layout, work.queries.size(), slots);
}
bool stays_inside(const IndirectCsdWork& work, const Job& job) {
  return fits(*job.bos[0], work.offset, 12) &&
         std::all_of(std::begin(work.wg_uniform_offsets), std::end(work.wg_uniform_offsets),
                     [&](uint32_t word) {
                       return word == 0xffffffff || fits(*work.indirect, uint64_t{word} * 4, 4);
                     });
}

/// Whether all that the job will touch lies inside its BOs (v3d_cpu_job_bounds_check).
bool stays_inside(const CpuSubmission& cpu, const Job& job) {
  return std::visit([&](const auto& work) { return stays_inside(work, job); }, cpu.work);
}

}  // namespace

int get_cpu_extension(Call& call, uint32_t id, uint64_t address, CpuSubmission* cpu) {
  if (id - drm::kExtCpuIndirectCsd >= std::size(kCpuExtensions)) return EINVAL;
  if (!cpu || !std::holds_alternative<std::monostate>(cpu->work)) return EINVAL;
  return kCpuExtensions[id - drm::kExtCpuIndirectCsd].get(call, address, cpu);
}

int submit_cpu(Call& call, drm::SubmitCpu& args) {
  if (args.flags && !(args.flags & drm::kSubmitExtension)) return EINVAL;
  Extensions extensions;
  const auto cpu = std::make_shared<CpuSubmission>();
  if (args.flags & drm::kSubmitExtension)
    if (const int error = get_extensions(call, args.extensions, &extensions, cpu.get())) return error;
  if (std::holds_alternative<std::monostate>(cpu->work)) return EINVAL;
  // The alternatives of the variant stand in the order of the ids.
  if (args.bo_handle_count != kCpuExtensions[cpu->work.index() - 1].bos) return EINVAL;

  const Abi& abi = call.kernel.abi();
  JobPtr job;
  if (const int error = make_job(call, Queue::kCpu, 0, &extensions, &job)) return error;
  if (args.bo_handle_count) {
    if (const int error = look_up_bos(call, args.bo_handles, args.bo_handle_count, job.get())) return error;
    if (const int error = check_reservations(abi, *job)) return error;
    if (abi.cpu_offsets_checked && !stays_inside(*cpu, *job)) return EINVAL;
  }

  std::vector<JobPtr> jobs = {job};
  if (auto* indirect = std::get_if<IndirectCsdWork>(&cpu->work)) {
    if (abi.cpu_bos_checked_first)
      if (const int error = make_csd_jobs(call, indirect->args, nullptr, true, &indirect->jobs)) return error;
    jobs.push_back(indirect->jobs.csd);
    jobs.push_back(indirect->jobs.clean);
  }
  job->run = [cpu, self = job.get(), &profile = call.kernel.gpu().profile(),
              file = call.file.weak_from_this()](JobControl& control) {
    device::JobResult result;
    try {
      run_cpu_work(*cpu, *self, profile, file, control);
    } catch (const std::bad_alloc&) {
      result.end = device::JobResult::End::kError;
      result.message = "out of memory";
    }
    return result;
  };
  return commit(call, jobs, extensions);
}

}  // namespace v3d::ioctl
