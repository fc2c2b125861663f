/// These functions run a capture on the timing model and collect what that says.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "daemon/capture.h"
#include "gpu/device/device.h"
#include "tools/cli/captures/captures.h"
#include "tools/cli/profiling/profile.h"

namespace v3d::tools::profiling {

/// One capture, job by job.
class Collector {
 public:
  /// @param reader  outlives the collector
  explicit Collector(daemon::CaptureReader& reader);

  /// Runs the next job. NotFound at the end of the capture, other errors as CaptureReader::next().
  absl::Status run_next();
  /// The jobs so far and their shaders; neither frames nor times.
  Profile take() { return std::move(profile_); }

 private:
  void add_prediction(const timing::Prediction& prediction, Memory memory, Job* job);
  void add_program(const timing::Prediction::ProgramTime& program, Memory memory, Job* job);
  bool is_still(Shader& shader, const timing::Prediction::ProgramTime& program, Memory memory) const;
  size_t find_shader(const timing::Prediction::ProgramTime& program, uint32_t client, Memory memory);

  daemon::CaptureReader& reader_;
  ThreadPool pool_{0};  // jobs that are timed run on a worker of their own
  device::Device device_;
  CapturedJobs jobs_;
  /// By client, stage and address: those that lay there one after the other.
  std::map<std::tuple<uint32_t, std::string, GpuAddr>, std::vector<size_t>> shaders_;
  Profile profile_;
};

}  // namespace v3d::tools::profiling
