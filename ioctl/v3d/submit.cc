#include "ioctl/v3d/submit.h"

#include <algorithm>
#include <cerrno>
#include <new>

#include "ioctl/core/gpu_run.h"
#include "ioctl/v3d/submit_cpu.h"

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

/// What a handle is worth that names no syncobj. 0 means none.
int missing_sync(const Call& call, uint32_t handle) {
  return handle && call.kernel.abi().missing_syncs_fail ? ENOENT : 0;
}

/// A syncobj without a fence is EINVAL (drm_syncobj_find_fence).
int add_in_sync(Call& call, uint32_t handle, Job* job) {
  const std::shared_ptr<Syncobj> syncobj = call.file.find_syncobj(handle);
  if (!syncobj) return missing_sync(call, handle);
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

int get_gpu_extensions(Call& call, uint32_t flags, uint64_t chain, uint32_t out_sync,
                       Extensions* extensions) {
  if (flags & drm::kSubmitExtension)
    if (const int error = get_extensions(call, chain, extensions, nullptr)) return error;
  if (extensions->multi_sync) return 0;
  std::shared_ptr<Syncobj> syncobj = call.file.find_syncobj(out_sync);
  if (!syncobj) return missing_sync(call, out_sync);
  extensions->out_syncs.push_back(std::move(syncobj));
  return 0;
}

std::shared_ptr<BoSpace> space_for_jobs(Call& call) {
  std::shared_ptr<BoSpace> space = call.file.bo_space(call.account);
  if (space) space->settle();
  return space;
}

int make_job(Call& call, Queue queue, uint32_t in_sync, const Extensions* extensions, JobPtr* out) {
  auto job = std::make_shared<Job>(queue);
  if (const int error = call.account.charge(Resource::kJobs, 1, &job->charge)) return error;
  job->derived = job->charge.sibling(Resource::kDerivedBytes);
  job->client = call.file.client();
  job->user = job->client->user();
  if (extensions && extensions->multi_sync) {
    if (extensions->wait_stage == static_cast<uint32_t>(queue)) {
      if (const int error = job->charge_dependencies(call.account, extensions->in_sync_count)) return error;
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
  if (const int error = call.account.charge(Resource::kJobBytes, count * sizeof job->bos[0], &job->bytes))
    return error;
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

int check_reservations(const Abi& abi, const Job& job) {
  if (abi.bos_may_repeat) return 0;
  std::vector<const Reservation*> seen;
  seen.reserve(job.bos.size());
  for (const auto& bo : job.bos) seen.push_back(&bo->reservation());
  std::sort(seen.begin(), seen.end());
  return std::adjacent_find(seen.begin(), seen.end()) == seen.end() ? 0 : EALREADY;
}

int attach_perfmon(Call& call, uint32_t id, const std::vector<JobPtr>& jobs) {
  if (id == 0) return 0;
  if (call.kernel.perfmons().has_global()) return EAGAIN;
  const std::shared_ptr<Perfmon> perfmon = call.file.find_perfmon(id);
  if (!perfmon) return ENOENT;
  for (const JobPtr& job : jobs) job->perfmon = perfmon;
  return 0;
}

namespace {

/// Whether other files may wait for jobs that use it. While it becomes known to one, who submits at that time
/// may be before or after that.
bool is_shared(const Bo& bo) { return bo.imported() || bo.buffer().use_count() > 1; }

/// The reservations of a submission: each job's, with those that other files know apart.
struct Reservations {
  explicit Reservations(const std::vector<JobPtr>& jobs) {
    for (const JobPtr& job : jobs) {
      auto& [own, shared] = of_jobs.emplace_back();
      for (const auto& bo : job->bos) (is_shared(*bo) ? shared : own).push_back(&bo->reservation());
    }
  }
  std::vector<Reservation*> all_shared() const {
    std::vector<Reservation*> all;
    for (const OfJob& job : of_jobs) all.insert(all.end(), job.shared.begin(), job.shared.end());
    return all;
  }
  struct OfJob {
    std::vector<Reservation*> own, shared;
  };
  std::vector<OfJob> of_jobs;
};

void wait_for(const std::vector<Reservation*>& reservations, Job* job) {
  for (Reservation* reservation : reservations)
    for (FencePtr& fence : reservation->fences(true)) job->add_dependency(std::move(fence));
}

/// Their fences, and what else they depend on.
void make_fences(Call& call, const std::vector<JobPtr>& jobs) {
  Kernel& kernel = call.kernel;
  const Abi& abi = kernel.abi();
  const bool has_global = kernel.perfmons().has_global();
  FencePtr previous;
  for (const JobPtr& job : jobs) {
    if (job->run && job->queue != Queue::kCpu)
      job->run = [&kernel, self = job.get(), run = std::move(job->run)](JobControl& control) {
        return run_on_gpu(kernel, *self, run, control);
      };
    if (previous) job->add_dependency(previous);
    previous = job->done = call.file.next_fence(job->queue);
    if (abi.perfmons_run_alone && has_global)
      call.file.perfmon_order.pass(*job);
    else if (abi.perfmons_run_alone)
      call.file.perfmon_order.add(*job);
    // A queue is in order within a file.
    job->drop_dependencies(
        [&](const FencePtr& d) { return call.file.owns_context(job->queue, d->context()); });
  }
}

/// Under the file's submit mutex. What the kernel does under the locks of all BOs at once is one step here
/// for those that other files know; a file's own ones keep nobody else waiting. It may name any number of
/// either.
/// @return ENOMEM, and nothing has happened: the account has no room for what the jobs depend on
int commit_locked(Call& call, const std::vector<JobPtr>& jobs, const Extensions& extensions) {
  Kernel& kernel = call.kernel;
  const FencePtr& last = jobs.back()->done;
  const auto fence_of = [&](const JobPtr& job) -> const FencePtr& {
    return kernel.abi().last_fence_for_all ? last : job->done;
  };
  const Reservations reservations(jobs);
  for (size_t i = 0; i < jobs.size(); ++i) wait_for(reservations.of_jobs[i].own, jobs[i].get());
  {
    const HeldReservations held(reservations.all_shared());
    for (size_t i = 0; i < jobs.size(); ++i) wait_for(reservations.of_jobs[i].shared, jobs[i].get());
    for (const JobPtr& job : jobs)
      if (const int error = job->charge_dependencies(call.account)) return error;
    make_fences(call, jobs);
    for (size_t i = 0; i < jobs.size(); ++i)
      for (Reservation* shared : reservations.of_jobs[i].shared) shared->add_last(fence_of(jobs[i]));
  }
  // Fences stand in the reservations before the jobs can end.
  for (size_t i = 0; i < jobs.size(); ++i)
    for (Reservation* own : reservations.of_jobs[i].own) own->add_last(fence_of(jobs[i]));
  kernel.host().push(jobs);
  for (const auto& syncobj : extensions.out_syncs) syncobj->replace(last);
  return 0;
}

/// Whatever comes of it, the jobs are queued.
void hold_back(Call& call, const FencePtr& due) {
  call.kernel.host().before_wait();
  try {
    static_cast<void>(wait_for_all({due}, call.waiter, monotonic_ns() + Backlog::kPatienceNs));
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace

int commit(Call& call, const std::vector<JobPtr>& jobs, const Extensions& extensions) {
  FencePtr due;
  {
    const std::lock_guard lock(call.file.submit_mutex);
    try {
      if (const int error = commit_locked(call, jobs, extensions)) return error;
    } catch (const std::bad_alloc&) {
      // Nobody waits for ever for a fence that stands somewhere already, of a job that was never queued.
      for (const JobPtr& job : jobs)
        if (job->done) job->done->signal(ENOMEM);
      call.kernel.host().run_small(jobs);
      throw;
    }
    due = call.file.backlog.add(jobs.back()->done);
  }
  call.kernel.host().run_small(jobs);
  if (due) hold_back(call, due);
  return 0;
}

}  // namespace v3d::ioctl
