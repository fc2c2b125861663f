/// These functions run a program with a daemon of its own that writes every job to a file.
#pragma once

#include <string>

#include "tools/cli/run/run_program.h"

namespace v3d::tools {

/// Which jobs of the program; without more all.
struct CaptureExtent {
  std::string frames = {};  ///< "A-B" (daemon::CaptureFrames); empty: all
  bool by_trigger = false;  ///< CaptureTrigger
};

struct CaptureEnd {
  std::string summary = {};  ///< if the file holds every job, one at least: its name, jobs and size
  int status = 1;  ///< for exit(): of the program, or 1 if that is 0 and the capture is not complete
  bool complete() const { return !summary.empty(); }
};

/// Says on stderr, as the command options.name, why a capture is not complete. Changes the environment of
/// this process.
CaptureEnd capture_program(const RunOptions& options, const std::string& file,
                           const CaptureExtent& extent = {});

}  // namespace v3d::tools
