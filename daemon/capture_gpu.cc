/// @file A GPU that writes every job to a capture before another one runs it.
#include <atomic>
#include <map>

#include "daemon/capture.h"
#include "daemon/gpus.h"
#include "gpu/base/log.h"

namespace v3d::daemon {
namespace {

class CaptureContext : public ioctl::GpuContext {
 public:
  // Each job is captured and runs alone: one that stood still would keep all others from it.
  CaptureContext(CaptureWriter& writer, std::unique_ptr<ioctl::GpuContext> inner)
      : writer_(writer), inner_(std::move(inner)) {}
  ~CaptureContext() override { writer_.forget(inner_->space()); }

  mmu::AddressSpace& space() override { return inner_->space(); }

  device::JobResult run_bin(const device::ClJob& job, Turn& turn,
                            std::shared_ptr<const draw::BinResult>* result) override {
    const uint32_t submission = ++submissions_;
    const auto alone = begin(turn, CapturedJob::of(job, false, submission));
    device::JobResult end = inner_->run_bin(job, turn, result);
    const std::lock_guard lock(mutex_);
    binned_[result->get()] = submission;
    return end;
  }
  device::JobResult run_render(const device::ClJob& job, Turn& turn,
                               std::shared_ptr<const draw::BinResult> bin) override {
    const auto alone = begin(turn, CapturedJob::of(job, true, submission_of(bin.get())));
    return inner_->run_render(job, turn, std::move(bin));
  }
  device::JobResult run_csd(const device::CsdJob& job, Turn& turn) override {
    const auto alone = begin(turn, CapturedJob::of(job));
    return inner_->run_csd(job, turn);
  }
  device::JobResult run_tfu(const device::TfuJob& job, Turn& turn) override {
    const auto alone = begin(turn, CapturedJob::of(job));
    return inner_->run_tfu(job, turn);
  }

 private:
  /// The job goes into the capture, and no other runs until the lock is gone.
  std::unique_lock<std::mutex> begin(Turn& turn, const CapturedJob& job) {
    turn.insist();
    return writer_.begin(space(), job);
  }

  uint32_t submission_of(const draw::BinResult* bin) {
    const std::lock_guard lock(mutex_);
    const auto found = binned_.find(bin);
    if (!bin || found == binned_.end()) return 0;
    const uint32_t submission = found->second;
    binned_.erase(found);
    return submission;
  }

  CaptureWriter& writer_;
  const std::unique_ptr<ioctl::GpuContext> inner_;
  std::atomic<uint32_t> submissions_{0};
  std::mutex mutex_;  // protects binned_
  std::map<const draw::BinResult*, uint32_t> binned_;
};

class CaptureGpu : public ioctl::Gpu {
 public:
  CaptureGpu(std::unique_ptr<CaptureWriter> writer, std::unique_ptr<ioctl::Gpu> inner)
      : writer_(std::move(writer)), inner_(std::move(inner)) {}

  const chip::Profile& profile() const override { return inner_->profile(); }
  absl::StatusOr<std::unique_ptr<ioctl::GpuContext>> create_context() override {
    auto context = inner_->create_context();
    if (!context.ok()) return context.status();
    return std::make_unique<CaptureContext>(*writer_, *std::move(context));
  }
  bool takes_all_processors() const override { return inner_->takes_all_processors(); }
  std::string status() const override { return inner_->status(); }

 private:
  const std::unique_ptr<CaptureWriter> writer_;
  const std::unique_ptr<ioctl::Gpu> inner_;
};

}  // namespace

std::unique_ptr<ioctl::Gpu> make_capture_gpu(std::unique_ptr<CaptureWriter> writer,
                                             std::unique_ptr<ioctl::Gpu> inner) {
  return std::make_unique<CaptureGpu>(std::move(writer), std::move(inner));
}

}  // namespace v3d::daemon
