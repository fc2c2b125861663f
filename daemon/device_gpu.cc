#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/gpus.h"
#include "daemon/perf_map.h"
#include "daemon/prediction_tally.h"
#include "gpu/base/log.h"
#include "gpu/chip/board.h"
#include "gpu/device/run_surfaces.h"
#include "gpu/perf/record/sampling.h"
#include "gpu/qpu/run/program_cache.h"
#include "gpu/tmu/lookup/unit.h"
#include "ioctl/firmware/user_program_gpu.h"

namespace v3d::daemon {
namespace {

/// A line, if there were any.
std::string lookups_not_generated() {
  const auto counts = tmu::lookups_not_generated();
  std::string text;
  for (size_t n = 1; n < counts.size(); ++n)
    if (counts[n] != 0)
      absl::StrAppendFormat(&text, "%s%d (%s)",
                            text.empty() ? "texture lookups without generated code: " : ", ", counts[n],
                            tmu::name(static_cast<tmu::NotGenerated>(n)));
  return text.empty() ? text : text + "\n";
}

class DeviceContext : public ioctl::GpuContext, public ioctl::UserProgramGpu {
 public:
  /// @param tally  null: no times are predicted
  DeviceContext(device::Device& device, std::unique_ptr<device::Context> context, PredictionTally* tally)
      : device_(device), context_(std::move(context)), tally_(tally) {}

  mmu::AddressSpace& space() override { return context_->space(); }
  void set_payer(const std::shared_ptr<MemoryPayer>& payer) override {
    context_->programs().set_payer(payer);
  }
  device::JobResult run_bin(const device::ClJob& job, JobControl& control,
                            std::shared_ptr<const draw::BinResult>* result) override {
    return told(ioctl::Queue::kBin, device_.run_bin(*context_, job, control, result));
  }
  device::JobResult run_render(const device::ClJob& job, JobControl& control,
                               std::shared_ptr<const draw::BinResult> bin) override {
    return told(ioctl::Queue::kRender, device_.run_render(*context_, job, control, bin));
  }
  device::JobResult run_csd(const device::CsdJob& job, JobControl& control) override {
    return told(ioctl::Queue::kCsd, device_.run_csd(*context_, job, control));
  }
  bool is_brief(const device::CsdJob& job) const override { return device_.is_brief(*context_, job); }
  device::JobResult run_tfu(const device::TfuJob& job, JobControl& control) override {
    return told(ioctl::Queue::kTfu, device_.run_tfu(*context_, job, control));
  }
  device::JobResult run_surfaces(const device::SurfaceJob& job, JobControl& control) override {
    return told(ioctl::Queue::kRender, device::run_surfaces(device_, *context_, job, control));
  }
  device::JobResult run_user_programs(csd::UserQpus& qpus, csd::UserQueue& queue, bool alone,
                                      JobControl& control) override {
    return told(ioctl::Queue::kCsd, device_.run_user_programs(*context_, qpus, queue, alone, control));
  }

 private:
  device::JobResult told(ioctl::Queue queue, device::JobResult result) {
    if (!tally_) return result;
    if (result.later)
      result.later = [tally = tally_, queue, predict = std::move(result.later)](device::JobResult& r) {
        predict(r);
        tally->add(queue, r);
      };
    tally_->begin();
    if (!result.later) tally_->add(queue, result);
    return result;
  }

  device::Device& device_;
  const std::unique_ptr<device::Context> context_;
  PredictionTally* const tally_;
};

class DeviceGpu : public ioctl::Gpu {
 public:
  DeviceGpu(const Board& board, int workers, double patience, const WatchSelection& watch,
            qpu::jit::Engine engine, bool perf_map, TimingMode timing)
      : timing_(timing),
        pool_(workers),
        compiler_(qpu::jit::make_compiler(engine)),
        device_(*board.profile, pool_, patience),
        vc4_board_(vc4_board_of(board)) {
    if (timing != TimingMode::kOff) device_.set_timing(timing::kSampled, device::Device::Predict::kLater);
    device_.set_watch(debug_watch(board.profile->generation, watch, compiler_.get()));
    if (compiler_ && debug_on(Debug::kJit))
      compiler_->set_lister([](const std::string& text) { log_debug(Debug::kJit, "%s", text); });
    if (perf_map && compiler_) perf_map_ = PerfMap::create();
    if (perf_map_)
      compiler_->set_listener(
          [map = perf_map_.get()](const qpu::jit::CodeMemory& code, const std::string& name) {
            map->add(code.begin(), code.size(), name);
          });
  }

  const chip::Profile& profile() const override { return device_.profile(); }
  const ioctl::Vc4Board* vc4_board() const override { return vc4_board_ ? &*vc4_board_ : nullptr; }
  absl::StatusOr<std::unique_ptr<ioctl::GpuContext>> create_context() override {
    auto context = device::Context::create(device_.profile(), compiler_.get());
    if (!context.ok()) return context.status();
    PredictionTally* const tally = timing_ == TimingMode::kOff ? nullptr : &tally_;
    return std::make_unique<DeviceContext>(device_, *std::move(context), tally);
  }
  bool takes_all_processors() const override {
    return pool_.is_busy() && pool_.concurrency() >= static_cast<int>(std::thread::hardware_concurrency());
  }
  void give_memory_back() override { device_.give_memory_back(); }
  std::string status() const override { return engine_text(compiler_.get()) + predictions(); }

 private:
  std::string predictions() const {
    if (timing_ == TimingMode::kOff) return "";
    return absl::StrFormat("timing %s: %s\n", timing_mode_name(timing_), tally_.text());
  }

  const TimingMode timing_;
  PredictionTally tally_;
  ThreadPool pool_;
  std::unique_ptr<PerfMap> perf_map_;                      // null: nobody asked
  const std::unique_ptr<qpu::jit::JitCompiler> compiler_;  // null: programs are interpreted
  device::Device device_;
  const std::optional<ioctl::Vc4Board> vc4_board_;
};

}  // namespace

std::string engine_text(const qpu::jit::JitCompiler* compiler) {
  std::string engine = "QPU programs are interpreted";
  if (compiler)
    engine = to_string(compiler->statistics());
  else if (!qpu::jit::best_target())
    absl::StrAppend(&engine, ": ", qpu::jit::why_no_target());
  return engine + "\n" + lookups_not_generated();
}

std::optional<ioctl::Vc4Board> vc4_board_of(const Board& board) {
  const chip::Profile& profile = *board.profile;
  if (!chip::has_driver_vc4(profile.generation)) return {};
  return ioctl::Vc4Board{{profile.core_ident0, profile.core_ident1, profile.core_ident2},
                         uint64_t{board.buffer_mib} << 20};
}

std::unique_ptr<ioctl::Gpu> make_device_gpu(const Board& board, int workers, double patience,
                                            const WatchSelection& watch, qpu::jit::Engine engine,
                                            bool perf_map, TimingMode timing) {
  return std::make_unique<DeviceGpu>(board, workers, patience, watch, engine, perf_map, timing);
}

}  // namespace v3d::daemon
