/// @file SUBMIT_CL: looks up, copies, checks and relocates, and hands one job to the scheduler
/// (vc4-abi.md 2.3, 2.4, 6.1; Linux vc4_gem.c).
///
/// What the kernel waits for inside the ioctl is waited for by the job here.
#include <algorithm>
#include <cerrno>
#include <functional>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "gpu/base/log.h"
#include "gpu/device/surface_job.h"
#include "ioctl/core/gpu_run.h"
#include "ioctl/vc4/binning.h"
#include "ioctl/vc4/device.h"
#include "ioctl/vc4/handlers.h"
#include "ioctl/vc4/surfaces.h"

namespace v3d::ioctl::vc4 {
namespace {

using Args = drm::vc4::SubmitCl;

/// What the kernel keeps for each shader record (struct vc4_shader_state).
constexpr uint64_t kRecordStateBytes = 8;

/// What a job holds until it is gone.
struct Held {
  ~Held() {
    for (Object* object : used) object->end_use();
  }
  std::vector<std::shared_ptr<Bo>> bos;
  std::vector<Object*> used;  ///< of these
  std::vector<std::shared_ptr<const Program>> programs;
  std::shared_ptr<Bo> copy;  ///< null: no binning list
  ContiguousMemory::Piece piece;
};

struct Submission {
  explicit Submission(Call& c) : call(c) {}

  Call& call;
  std::shared_ptr<Held> held = std::make_shared<Held>();
  JobPtr job = std::make_shared<Job>(Queue::kRender);
  std::vector<JobBo> bos;
  Surfaces surfaces;
  std::vector<bool> is_written;  ///< of the BOs
};

int refuse(Call& call, const absl::Status& why) {
  if (client_of(call).says_refusal())
    log_warning("%s (pid %d): VC4_SUBMIT_CL: %s", call.file.client()->program, call.file.client()->pid,
                std::string(why.message()));
  return EINVAL;
}

int look_up_bos(Submission& s, const Args& args) {
  if (args.bo_handle_count == 0) return EINVAL;
  if (args.bo_handle_count > kMaxUserArray) return ENOMEM;
  Call& call = s.call;
  Held& held = *s.held;
  if (const int error = call.account.charge(
          Resource::kJobBytes, args.bo_handle_count * (sizeof held.bos[0] + sizeof s.bos[0]), &s.job->bytes))
    return error;
  std::vector<uint32_t> handles(args.bo_handle_count);
  if (!call.user.read(args.bo_handles, handles.data(), handles.size() * sizeof handles[0])) return EFAULT;
  for (const uint32_t handle : handles) {
    held.bos.push_back(call.file.find_bo(handle));
    if (!held.bos.back()) return call.kernel.abi().vc4_missing_bo_error;
  }
  held.used.reserve(held.bos.size());
  for (const auto& bo : held.bos) {
    Object& object = object_of(call, *bo);
    if (!object.use()) {
      // Memory that was given up is not rendered with.
      return refuse(call, absl::InvalidArgumentError("a BO that is marked as not needed"));
    }
    held.used.push_back(&object);
    held.programs.push_back(object.program());
    s.bos.push_back({bo->address(), bo->size(), object.program().get()});
  }
  s.is_written.resize(s.bos.size());
  return 0;
}

int find_perfmon(Submission& s, const Args& args) {
  if (args.perfmonid == 0) return 0;
  s.job->perfmon = s.call.file.find_perfmon(args.perfmonid);
  return s.job->perfmon ? 0 : ENOENT;
}

int find_in_sync(Submission& s, const Args& args) {
  if (args.in_sync == 0) return 0;
  const std::shared_ptr<Syncobj> syncobj = s.call.file.find_syncobj(args.in_sync);
  if (!syncobj) return ENOENT;
  FencePtr fence = syncobj->fence();
  if (!fence) return EINVAL;
  s.job->add_dependency(std::move(fence));
  return 0;
}

/// Copies of what the client brings.
struct Source {
  std::vector<uint8_t> list, records, uniforms;
};

int read_source(Call& call, const Args& args, Source* source) {
  const auto read = [&](uint64_t from, uint32_t bytes, std::vector<uint8_t>* to) {
    to->resize(bytes);
    return bytes == 0 || call.user.read(from, to->data(), bytes);
  };
  return read(args.bin_cl, args.bin_cl_size, &source->list) &&
                 read(args.shader_rec, args.shader_rec_size, &source->records) &&
                 read(args.uniforms, args.uniforms_size, &source->uniforms)
             ? 0
             : EFAULT;
}

/// Memory for the checked copy, in the file's address space.
int make_copy(Submission& s, uint64_t bytes) {
  const uint64_t size = (bytes + mmu::kPageSize - 1) / mmu::kPageSize * mmu::kPageSize;
  if (const int error = device_of(s.call).memory()->take(size, KernelLabel::kBinList, &s.held->piece))
    return error;
  return s.call.file.create_bo(s.call.account, size, true, &s.held->copy) == 0 ? 0 : ENOMEM;
}

int bin(Submission& s, const Args& args, Binning* binning) {
  const BinningLayout layout = layout_of(args.bin_cl_size, args.shader_rec_size, args.uniforms_size);
  if (layout.size + kRecordStateBytes * args.shader_rec_count > UINT32_MAX) return EINVAL;
  if (layout.size > kMaxCopyBytes) return ENOMEM;
  // The client's bytes, and the checked ones.
  Charge charge;
  if (const int error = s.call.account.charge(Resource::kJobBytes, 2 * layout.size, &charge)) return error;
  Source source;
  if (const int error = read_source(s.call, args, &source)) return error;
  if (const int error = make_copy(s, layout.size)) return error;
  auto checked = check_binning({source.list, source.records, source.uniforms, args.shader_rec_count}, s.bos,
                               s.held->copy->address(), s.call.kernel.abi().vc4_too_many_tiles_refused);
  if (!checked.ok()) return refuse(s.call, checked.status());
  *binning = *std::move(checked);
  uint8_t* const memory = s.held->copy->host(0, layout.size);
  if (!memory) return ENOMEM;
  std::copy(binning->bytes.begin(), binning->bytes.end(), memory);
  return 0;
}

int describe_frame(Submission& s, const Args& args, const Binning& binning) {
  auto surfaces = check_surfaces(args, s.bos, binning.tiles_x, binning.tiles_y);
  if (!surfaces.ok()) return refuse(s.call, surfaces.status());
  s.surfaces = *std::move(surfaces);
  for (const uint32_t bo : s.surfaces.written) s.is_written[bo] = true;
  if (s.held->copy) place_list(binning, s.held->copy->address(), &s.surfaces.job);
  return 0;
}

int check_reservations(const Submission& s) {
  std::vector<const Reservation*> seen;
  seen.reserve(s.held->bos.size());
  for (const auto& bo : s.held->bos) seen.push_back(&bo->reservation());
  std::sort(seen.begin(), seen.end());
  return std::adjacent_find(seen.begin(), seen.end()) == seen.end() ? 0 : EALREADY;
}

int prepare_run(Submission& s) {
  const std::shared_ptr<BoSpace> space = s.call.file.bo_space(s.call.account);
  if (!space) return ENOMEM;
  space->settle();
  Job& job = *s.job;
  if (const int error = s.call.account.charge(Resource::kJobs, 1, &job.charge)) return error;
  job.derived = job.charge.sibling(Resource::kDerivedBytes);
  job.client = s.call.file.client();
  job.user = job.client->user();
  job.space = space;
  job.bos = s.held->bos;
  const std::function<device::JobResult(JobControl&)> run = [space, frame = s.surfaces.job,
                                                             held = s.held](JobControl& control) {
    return space->gpu().run_surfaces(frame, control);
  };
  job.run = [&kernel = s.call.kernel, self = &job, run](JobControl& control) {
    using End = device::JobResult::End;
    device::JobResult result = run_on_gpu(kernel, *self, run, control);
    // Whoever waits hears nothing of a reset (vc4-abi.md 6.3).
    if (result.end == End::kHang || result.end == End::kError) self->done->signal();
    return result;
  };
  return 0;
}

/// A file's own jobs run in their order. Those of others run beside them, so that what the one queue of the
/// hardware orders is ordered by fences here.
void wait_for_jobs_on(Submission& s, const std::vector<size_t>& bos) {
  for (const size_t i : bos)
    for (FencePtr& fence : s.held->bos[i]->reservation().fences(s.is_written[i]))
      s.job->add_dependency(std::move(fence));
}

void add_fence_to(Submission& s, const std::vector<size_t>& bos) {
  for (const size_t i : bos) s.held->bos[i]->reservation().add(s.job->done, s.is_written[i]);
}

/// Under the file's submit mutex. To look at the fences of BOs that other files know and to add one is one
/// step; a file's own BOs keep nobody else waiting. It may name any number of either.
/// @param due  what the submitter should wait for, or null
/// @return ENOMEM, and nothing has happened: the account has no room for what the job depends on
int commit_locked(Submission& s, Syncobj* out_sync, FencePtr* due) {
  Kernel& kernel = s.call.kernel;
  Client& client = client_of(s.call);
  std::vector<size_t> own, shared;
  for (size_t i = 0; i < s.bos.size(); ++i) {
    const Bo& bo = *s.held->bos[i];
    (bo.imported() || bo.buffer().use_count() > 1 ? shared : own).push_back(i);
  }
  wait_for_jobs_on(s, own);
  {
    std::vector<Reservation*> reservations;
    reservations.reserve(shared.size());
    for (const size_t i : shared) reservations.push_back(&s.held->bos[i]->reservation());
    const HeldReservations held(std::move(reservations));
    wait_for_jobs_on(s, shared);
    if (s.job->charge_dependencies(s.call.account) != 0) return ENOMEM;
    s.job->drop_dependencies(
        [context = client.context()](const FencePtr& fence) { return fence->context() == context; });
    s.job->done = client.next_fence(device_of(s.call));
    add_fence_to(s, shared);
  }
  add_fence_to(s, own);
  kernel.host().push({s.job});
  if (out_sync) out_sync->replace(s.job->done);
  *due = s.call.file.backlog.add(s.job->done);
  return 0;
}

int commit(Submission& s, Syncobj* out_sync) {
  FencePtr due;
  try {
    const std::lock_guard lock(s.call.file.submit_mutex);
    if (const int error = commit_locked(s, out_sync, &due)) return error;
  } catch (const std::bad_alloc&) {
    // Nobody waits for ever for a job that was never queued.
    if (s.job->done) s.job->done->signal(ENOMEM);
    throw;
  }
  s.call.kernel.host().run_small({s.job});
  if (due) {
    s.call.kernel.host().before_wait();
    static_cast<void>(wait_for_all({due}, s.call.waiter, monotonic_ns() + Backlog::kPatienceNs));
  }
  return 0;
}

}  // namespace

int submit_cl(Call& call, Args& args) {
  if ((args.flags & ~drm::vc4::kSubmitFlags) || args.pad2 != 0) return EINVAL;
  Submission s(call);
  if (const int error = look_up_bos(s, args)) return error;
  if (const int error = find_perfmon(s, args)) return error;
  if (const int error = find_in_sync(s, args)) return error;
  Binning binning;
  if (args.bin_cl_size != 0)
    if (const int error = bin(s, args, &binning)) return error;
  if (const int error = describe_frame(s, args, binning)) return error;
  if (const int error = check_reservations(s)) return error;
  std::shared_ptr<Syncobj> out_sync;
  if (args.out_sync != 0 && !(out_sync = call.file.find_syncobj(args.out_sync))) return EINVAL;
  if (const int error = prepare_run(s)) return error;
  if (const int error = commit(s, out_sync.get())) return error;
  args.seqno = s.job->done->seqno();
  return 0;
}

}  // namespace v3d::ioctl::vc4
