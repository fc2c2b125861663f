/// Runs a capture on the timing model and collects what that says.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "daemon/capture.h"
#include "gpu/device/device.h"
#include "tools/profiling/profile.h"

namespace v3d::tools::profiling {

/// One capture, job by job.
class Collector {
 public:
  /// @param reader  outlives the collector, and so does the pool
  Collector(daemon::CaptureReader& reader, ThreadPool& pool);

  /// Runs the next job. NotFound at the end of the capture, other errors as CaptureReader::next().
  absl::Status run_next();
  /// The jobs so far and their shaders; neither frames nor times.
  Profile take() { return std::move(profile_); }

 private:
  using Submission = std::pair<uint32_t, uint32_t>;  // context and number

  device::JobResult run(const daemon::CapturedJob& job, device::Context& context);
  void add_prediction(const timing::Prediction& prediction, Memory memory, Job* job);
  void add_program(const timing::Prediction::ProgramTime& program, Memory memory, Job* job);
  bool is_still(Shader& shader, const timing::Prediction::ProgramTime& program, Memory memory) const;
  size_t find_shader(const timing::Prediction::ProgramTime& program, uint32_t client, Memory memory);

  daemon::CaptureReader& reader_;
  device::Device device_;
  Turn turn_;
  std::map<Submission, std::shared_ptr<const draw::BinResult>> binned_;
  /// By client, stage and address: those that lay there one after the other.
  std::map<std::tuple<uint32_t, std::string, GpuAddr>, std::vector<size_t>> shaders_;
  Profile profile_;
};

}  // namespace v3d::tools::profiling
