#include <optional>

#include "daemon/gpus.h"
#include "ioctl/firmware/user_program_gpu.h"

namespace v3d::daemon {
namespace {

class IdleContext : public ioctl::GpuContext, public ioctl::UserProgramGpu {
 public:
  explicit IdleContext(std::unique_ptr<mmu::AddressSpace> space) : space_(std::move(space)) {}

  mmu::AddressSpace& space() override { return *space_; }
  device::JobResult run_bin(const device::ClJob&, JobControl&,
                            std::shared_ptr<const draw::BinResult>*) override {
    return {};
  }
  device::JobResult run_render(const device::ClJob&, JobControl&,
                               std::shared_ptr<const draw::BinResult>) override {
    return {};
  }
  device::JobResult run_csd(const device::CsdJob&, JobControl&) override { return {}; }
  device::JobResult run_tfu(const device::TfuJob&, JobControl&) override { return {}; }
  device::JobResult run_surfaces(const device::SurfaceJob&, JobControl&) override { return {}; }
  device::JobResult run_user_programs(csd::UserQpus&, csd::UserQueue& queue, bool, JobControl&) override {
    for (csd::UserProgram program; queue.take(&program);) queue.end(program, 0, false);
    return {};
  }

 private:
  const std::unique_ptr<mmu::AddressSpace> space_;
};

class IdleGpu : public ioctl::Gpu {
 public:
  explicit IdleGpu(const Board& board) : profile_(*board.profile), vc4_board_(vc4_board_of(board)) {}

  const chip::Profile& profile() const override { return profile_; }
  const ioctl::Vc4Board* vc4_board() const override { return vc4_board_ ? &*vc4_board_ : nullptr; }
  absl::StatusOr<std::unique_ptr<ioctl::GpuContext>> create_context() override {
    auto space = mmu::AddressSpace::create();
    if (!space.ok()) return space.status();
    return std::make_unique<IdleContext>(*std::move(space));
  }

 private:
  const chip::Profile& profile_;
  const std::optional<ioctl::Vc4Board> vc4_board_;
};

}  // namespace

std::unique_ptr<ioctl::Gpu> make_idle_gpu(const Board& board) { return std::make_unique<IdleGpu>(board); }

}  // namespace v3d::daemon
