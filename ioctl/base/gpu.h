/// A Gpu is what ioctl handlers and job runners use: device::Device in the daemon, a fake in tests.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "gpu/base/memory_payer.h"
#include "gpu/device/device.h"
#include "gpu/device/surface_job.h"

namespace v3d::ioctl {

/// The address space of one drm_file and the jobs that run in it (device::Context). The functions block until
/// the job has ended; they may be called from several threads at once within the limits of device::Context.
class GpuContext {
 public:
  virtual ~GpuContext() = default;
  virtual mmu::AddressSpace& space() = 0;
  virtual device::JobResult run_bin(const device::ClJob& job, JobControl& control,
                                    std::shared_ptr<const draw::BinResult>* result) = 0;
  virtual device::JobResult run_render(const device::ClJob& job, JobControl& control,
                                       std::shared_ptr<const draw::BinResult> bin) = 0;
  virtual device::JobResult run_csd(const device::CsdJob& job, JobControl& control) = 0;
  /// Whether it surely takes no longer than to wake a thread for it, or so.
  virtual bool is_brief(const device::CsdJob&) const { return false; }
  virtual device::JobResult run_tfu(const device::TfuJob& job, JobControl& control) = 0;
  /// A frame of VideoCore IV.
  virtual device::JobResult run_surfaces(const device::SurfaceJob& job, JobControl& control) = 0;
  /// Who pays for what is kept of its programs. Before there are jobs.
  virtual void set_payer(const std::shared_ptr<MemoryPayer>& /*payer*/) {}
};

/// A board with VideoCore IV, whose display and GPU are one device with the driver vc4.
struct Vc4Board {
  std::array<uint32_t, 3> ident;  ///< V3D_IDENT0 to 2
  uint64_t memory;                ///< bytes for all buffers: the contiguous memory that Linux has set aside
};

class Gpu {
 public:
  virtual ~Gpu() = default;
  virtual const chip::Profile& profile() const = 0;
  virtual absl::StatusOr<std::unique_ptr<GpuContext>> create_context() = 0;
  /// Null: a board with V3D and a device of its own for the display.
  virtual const Vc4Board* vc4_board() const { return nullptr; }
  /// Whether jobs use all processors of the host now.
  virtual bool takes_all_processors() const { return false; }
  /// Lets go of what is kept for jobs to come that they can do without. Any thread, while jobs run.
  virtual void give_memory_back() {}
  /// For people: lines about the engine that runs jobs, or nothing.
  virtual std::string status() const { return {}; }
};

}  // namespace v3d::ioctl
