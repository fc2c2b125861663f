/// @file A GPU that writes every job to a capture before another one runs it.
#include <atomic>
#include <map>
#include <memory>
#include <utility>

#include "daemon/capture.h"
#include "daemon/capture_window.h"
#include "daemon/gpus.h"
#include "ioctl/firmware/user_program_gpu.h"

namespace v3d::daemon {
namespace {

class CaptureContext : public ioctl::GpuContext, public ioctl::UserProgramGpu {
 public:
  /// @param alone  of all contexts
  CaptureContext(CaptureWriter& writer, const CaptureWindow& window, std::mutex& alone,
                 chip::Generation generation, std::unique_ptr<ioctl::GpuContext> inner)
      : writer_(writer), window_(window), alone_(alone), generation_(generation), inner_(std::move(inner)) {}
  ~CaptureContext() override { writer_.forget(inner_->space()); }

  mmu::AddressSpace& space() override { return inner_->space(); }
  void set_payer(const std::shared_ptr<MemoryPayer>& payer) override { inner_->set_payer(payer); }

  device::JobResult run_bin(const device::ClJob& job, JobControl& control,
                            std::shared_ptr<const draw::BinResult>* result) override {
    const auto alone = be_alone(control);
    const bool taken = takes(job);
    const uint32_t submission = taken ? ++submissions_ : 0;
    const auto captured = taken ? begin(CapturedJob::of(job, false, submission)) : Lock();
    device::JobResult end = inner_->run_bin(job, control, result);
    const std::lock_guard lock(mutex_);
    binned_[result->get()] = submission;
    return end;
  }
  device::JobResult run_render(const device::ClJob& job, JobControl& control,
                               std::shared_ptr<const draw::BinResult> bin) override {
    const auto alone = be_alone(control);
    uint32_t submission = 0;
    const bool taken = find_submission(bin.get(), &submission) ? submission != 0 : takes(job);
    const auto captured = taken ? begin(CapturedJob::of(job, true, submission)) : Lock();
    return inner_->run_render(job, control, std::move(bin));
  }
  device::JobResult run_csd(const device::CsdJob& job, JobControl& control) override {
    const auto alone = be_alone(control);
    const auto captured = takes_other() ? begin(CapturedJob::of(job)) : Lock();
    return inner_->run_csd(job, control);
  }
  device::JobResult run_tfu(const device::TfuJob& job, JobControl& control) override {
    const auto alone = be_alone(control);
    const auto captured = takes_other() ? begin(CapturedJob::of(job)) : Lock();
    return inner_->run_tfu(job, control);
  }
  /// Two jobs of the capture, since the frame is run as these; what the first one finds, the second does.
  device::JobResult run_surfaces(const device::SurfaceJob& job, JobControl& control) override {
    const auto alone = be_alone(control);
    device::ClJob cl{.bcl_start = job.list_start, .bcl_end = job.list_end};
    cl.surfaces = std::make_shared<const device::SurfaceJob>(job);
    Lock captured;
    if (takes(cl)) {
      const bool bins = job.list_start != job.list_end;
      const uint32_t submission = bins ? ++submissions_ : 0;
      if (bins) begin(CapturedJob::of(cl, false, submission));
      captured = begin(CapturedJob::of(cl, true, submission));
    }
    return inner_->run_surfaces(job, control);
  }
  device::JobResult run_user_programs(csd::UserQpus& qpus, csd::UserQueue& queue, bool alone,
                                      JobControl& control) override {
    const auto single = be_alone(control);
    CapturedPrograms programs{.alone = alone,
                              .fresh = qpus.is_fresh(),
                              .reserved_qpus = queue.reserved_qpus(),
                              .programs = queue.queued()};
    FirstPrograms first(queue, programs.programs.size());
    const auto captured = takes_other() ? begin(CapturedJob::of(std::move(programs))) : Lock();
    return dynamic_cast<ioctl::UserProgramGpu&>(*inner_).run_user_programs(qpus, first, alone, control);
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  /// No other job runs until the lock is gone. One that stood still would keep all others from it.
  Lock be_alone(JobControl& control) {
    control.insist();
    return Lock(alone_);
  }
  /// The job goes into the capture.
  Lock begin(const CapturedJob& job) {
    Lock captured = writer_.begin(space(), job);
    space().take_faults();  // ours, in memory that the client has given back meanwhile
    return captured;
  }

  /// Of a submission, by the first of its jobs.
  bool takes(const device::ClJob& job) {
    std::vector<FrameCounter::Target> targets = targets_of(space().memory(), generation_, job);
    space().take_faults();  // ours, not the job's
    const std::lock_guard lock(mutex_);
    return window_.takes(frames_.draw(std::move(targets)));
  }
  bool takes_other() {
    const std::lock_guard lock(mutex_);
    return window_.takes(frames_.current());
  }

  /// @param submission  0: it was not captured. @return  whether a bin job with that result is known
  bool find_submission(const draw::BinResult* bin, uint32_t* submission) {
    const std::lock_guard lock(mutex_);
    const auto found = binned_.find(bin);
    if (!bin || found == binned_.end()) return false;
    *submission = found->second;
    binned_.erase(found);
    return true;
  }

  CaptureWriter& writer_;
  const CaptureWindow& window_;
  std::mutex& alone_;
  const chip::Generation generation_;
  const std::unique_ptr<ioctl::GpuContext> inner_;
  std::atomic<uint32_t> submissions_{0};
  std::mutex mutex_;  // protects what follows
  FrameCounter frames_;
  std::map<const draw::BinResult*, uint32_t> binned_;
};

class CaptureGpu : public ioctl::Gpu {
 public:
  CaptureGpu(std::unique_ptr<CaptureWriter> writer, const CaptureWindow& window,
             std::unique_ptr<ioctl::Gpu> inner)
      : writer_(std::move(writer)), window_(window), inner_(std::move(inner)) {}

  const ioctl::Vc4Board* vc4_board() const override { return inner_->vc4_board(); }
  const chip::Profile& profile() const override { return inner_->profile(); }
  absl::StatusOr<std::unique_ptr<ioctl::GpuContext>> create_context() override {
    auto context = inner_->create_context();
    if (!context.ok()) return context.status();
    return std::make_unique<CaptureContext>(*writer_, window_, alone_, profile().generation,
                                            *std::move(context));
  }
  bool takes_all_processors() const override { return inner_->takes_all_processors(); }
  void give_memory_back() override { inner_->give_memory_back(); }
  std::string status() const override { return inner_->status(); }

 private:
  const std::unique_ptr<CaptureWriter> writer_;
  const CaptureWindow& window_;
  std::mutex alone_;
  const std::unique_ptr<ioctl::Gpu> inner_;
};

}  // namespace

std::unique_ptr<ioctl::Gpu> make_capture_gpu(std::unique_ptr<CaptureWriter> writer,
                                             const CaptureWindow& window, std::unique_ptr<ioctl::Gpu> inner) {
  return std::make_unique<CaptureGpu>(std::move(writer), window, std::move(inner));
}

}  // namespace v3d::daemon
