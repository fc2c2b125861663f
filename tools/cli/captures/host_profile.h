/// `v3demu profile --host` says where the time of jobs goes on this host.
#pragma once

#include <cstdint>
#include <string>

#include "tools/cli/run/run_program.h"

namespace v3d::tools {

struct HostProfileOptions {
  std::string leave_out;  ///< parse_left_out()
  bool perf_map = false;
  uint32_t repeat = 1;  ///< runs of each job of a capture
};

/// Runs a program with a daemon of its own and prints the profile of its jobs. @return  for exit()
int host_profile_of_program(const RunOptions& run, const HostProfileOptions& options);
/// The same of the jobs of a capture, run in this process. @return  for exit()
int host_profile_of_capture(const std::string& file, const HostProfileOptions& options);

}  // namespace v3d::tools
