/// The commands that read captures share these functions.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "daemon/capture.h"
#include "gpu/csd/user_programs.h"
#include "gpu/device/device.h"
#include "gpu/perf/timing/prediction.h"

namespace v3d::tools {

/// On stderr, after the last job of a file whose format cannot tell whether it is complete.
inline void warn_of_old_format(const char* command, const std::string& file,
                               const daemon::CaptureReader& reader) {
  if (reader.format() >= 2) return;
  std::fprintf(stderr,
               "v3demu %s: %s: format %d has no end record: whether the capture is complete is not known\n",
               command, file.c_str(), reader.format());
}

/// User programs count as compute.
timing::JobKind kind_of(const daemon::CapturedJob& job);

/// Runs the jobs of a capture in their order.
class CapturedJobs {
 public:
  /// @param counted  somebody looks at the performance counters of the results
  explicit CapturedJobs(device::Device& device, bool counted = false) : device_(device) {
    control_.set_counted(counted);
  }

  /// @param times  1 or more, one after the other  @return  of the last time
  device::JobResult run(const daemon::CapturedJob& job, device::Context& context, uint32_t times = 1);

 private:
  device::JobResult run_once(const daemon::CapturedJob& job, device::Context& context);
  device::JobResult run_programs(const daemon::CapturedJob& job, device::Context& context);

  device::Device& device_;
  JobControl control_;
  /// Of submissions, by context and number, whose render job is still to come.
  std::map<std::pair<uint32_t, uint32_t>, std::shared_ptr<const draw::BinResult>> binned_;
  std::map<uint32_t, csd::UserQpus> qpus_;  ///< by context, as user programs left them
};

}  // namespace v3d::tools
