/// The report lists the GPU errors that the programs which a command started have had, whichever daemons
/// served them.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/gpu_errors.h"
#include "ioctl/base/unique_fd.h"
#include "tools/cli/run/run_program.h"

namespace v3d::tools {

/// The file to which daemons report (daemon/run_report.h), of this process, and as long as this lives.
class RunReport {
 public:
  RunReport();
  /// False: the host gives no file for it.
  bool works() const { return static_cast<bool>(file_); }
  /// What $V3DEMU_RUN is for programs that report here, and to the run of which this one is a part.
  std::string names() const;
  /// Has what is started from now on report here.
  void set_variable() const;
  int descriptor() const { return file_.get(); }

  struct Errors {
    std::array<uint64_t, daemon::kNumGpuErrorKinds> counts{};
    std::vector<std::string> first;  ///< a few, as lines for people
    bool all = true;                 ///< false: there may be more, for which the file had no room
    uint64_t total() const;
  };
  Errors read() const;
  /// Sums up on stderr, if there were any. @return  whether there were
  bool tell(const std::string& command) const;

 private:
  ioctl::UniqueFd file_;
};

/// Runs options.command in a process of its own, and sums up. @return  for exit(): of the program, or
/// kGpuErrorStatus if that is 0 and there were GPU errors. Where a signal ended the program, it ends this
/// process, too.
int run_for_status(const RunOptions& options);
inline constexpr int kGpuErrorStatus = 3;

/// For a command that becomes the program: a process of its own sums up when this one has ended.
void sum_up_behind(const RunOptions& options);

}  // namespace v3d::tools
