#include "ioctl/submit.h"

#include <algorithm>
#include <cerrno>

#include "ioctl/submit_cpu.h"

namespace v3d::ioctl {
namespace {

/// The kernel walks for ever; no sane chain has more than two.
constexpr int kMaxExtensions = 64;

int get_multi_sync(Call& call, uint64_t address, Extensions* extensions) {
  if (extensions->in_sync_count || !extensions->out_syncs.empty()) return EINVAL;
  drm::MultiSync args;
  if (!call.user.get(address, &args)) return EFAULT;
  if (args.pad) return EINVAL;
  if (!args.in_sync_count && !args.out_sync_count) return EINVAL;
  if (args.in_sync_count > kMaxUserArray || args.out_sync_count > kMaxUserArray) return ENOMEM;
  for (uint32_t i = 0; i < args.out_sync_count; ++i) {
    drm::Sem sem;
    if (!call.user.get(args.out_syncs, i, &sem)) return EFAULT;
    std::shared_ptr<Syncobj> syncobj = call.file.find_syncobj(sem.handle);
    if (!syncobj) return EINVAL;
    extensions->out_syncs.push_back(std::move(syncobj));
  }
  extensions->multi_sync = true;
  extensions->in_syncs = args.in_syncs;
  extensions->in_sync_count = args.in_sync_count;
  extensions->wait_stage = args.wait_stage;
  return 0;
}

/// Unknown handles are ignored; a syncobj without a fence is EINVAL (drm_syncobj_find_fence).
int add_in_sync(Call& call, uint32_t handle, Job* job) {
  const std::shared_ptr<Syncobj> syncobj = call.file.find_syncobj(handle);
  if (!syncobj) return 0;
  FencePtr fence = syncobj->fence();
  if (!fence) return EINVAL;
  job->add_dependency(std::move(fence));
  return 0;
}

}  // namespace

int get_extensions(Call& call, uint64_t chain, Extensions* extensions, CpuSubmission* cpu) {
  int count = 0;
  for (uint64_t address = chain; address != 0;) {
    drm::Extension header;
    if (!call.user.get(address, &header)) return EFAULT;
    if (++count > kMaxExtensions) return EINVAL;
    const int error = header.id == drm::kExtMultiSync ? get_multi_sync(call, address, extensions)
                                                      : get_cpu_extension(call, header.id, address, cpu);
    if (error) return error;
    address = header.next;
  }
  return 0;
}

int make_job(Call& call, Queue queue, uint32_t in_sync, const Extensions* extensions, JobPtr* out) {
  auto job = std::make_shared<Job>(queue);
  job->client = call.file.client();
  if (extensions && extensions->multi_sync) {
    if (extensions->wait_stage == static_cast<uint32_t>(queue)) {
      for (uint32_t i = 0; i < extensions->in_sync_count; ++i) {
        drm::Sem sem;
        if (!call.user.get(extensions->in_syncs, i, &sem)) return EFAULT;
        if (const int error = add_in_sync(call, sem.handle, job.get())) return error;
      }
    }
  } else if (const int error = add_in_sync(call, in_sync, job.get())) {
    return error;
  }
  *out = std::move(job);
  return 0;
}

int look_up_bos(Call& call, uint64_t handles, uint32_t count, Job* job) {
  if (count == 0) return EINVAL;
  if (count > kMaxUserArray) return ENOMEM;
  // All handles are read before the first is looked up.
  std::vector<uint32_t> values;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t value;
    if (!call.user.get(handles, i, &value)) return EFAULT;
    values.push_back(value);
  }
  job->bos.reserve(values.size());
  for (const uint32_t value : values) {
    std::shared_ptr<Bo> bo = call.file.find_bo(value);
    if (!bo) return ENOENT;
    job->bos.push_back(std::move(bo));
  }
  return 0;
}

int check_reservations(const Job& job) {
  std::vector<const Reservation*> seen;
  seen.reserve(job.bos.size());
  for (const auto& bo : job.bos) seen.push_back(&bo->reservation());
  std::sort(seen.begin(), seen.end());
  return std::adjacent_find(seen.begin(), seen.end()) == seen.end() ? 0 : EALREADY;
}

void commit(Call& call, const std::vector<JobPtr>& jobs, uint32_t out_sync, const Extensions& extensions) {
  const std::lock_guard lock(call.kernel.submit_mutex);
  FencePtr previous;
  for (const JobPtr& job : jobs) {
    for (const auto& bo : job->bos)
      for (FencePtr& fence : bo->reservation().fences(true)) job->add_dependency(std::move(fence));
    if (previous) job->add_dependency(previous);
    // A queue is in order within a file.
    std::erase_if(job->dependencies,
                  [&](const FencePtr& d) { return call.file.owns_context(job->queue, d->context()); });
    previous = job->done = call.file.next_fence(job->queue);
  }
  // Fences stand in the reservations before the jobs can end.
  for (const JobPtr& job : jobs)
    for (const auto& bo : job->bos) bo->reservation().add(job->done, true);
  call.kernel.host().push(jobs);

  const FencePtr& last = jobs.back()->done;
  if (extensions.multi_sync) {
    for (const auto& syncobj : extensions.out_syncs) syncobj->replace(last);
  } else if (const auto syncobj = call.file.find_syncobj(out_sync)) {
    syncobj->replace(last);
  }
}

}  // namespace v3d::ioctl
