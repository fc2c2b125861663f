/// The options are what the command line of v3demud says.
#pragma once

#include <string>
#include <vector>

#include "daemon/board.h"
#include "daemon/capture_window.h"
#include "daemon/debug_watch.h"
#include "daemon/server.h"
#include "daemon/settings.h"
#include "daemon/timing_mode.h"
#include "gpu/qpu/jit/jit.h"

namespace v3d::daemon {

struct Options {
  std::string socket;  ///< empty: that of the settings in default_runtime_folder()
  Settings settings;   ///< what the rest says of them
  Board board;
  std::string debug;  ///< categories, as parse_debug() takes them
  std::string capture;
  CaptureFrames capture_frames;
  bool capture_trigger = false;     ///< nothing is captured before the first "capture toggle"
  std::vector<std::string> limits;  ///< as set_limit() takes them
  WatchSelection watch;
  double exit_when_idle = -1;  ///< Server::Options
  double reset_after = 1;      ///< seconds
  int threads = 0;             ///< 0: one for each core
  uint32_t vblank_hz = 60;     ///< 0: flips do not wait
  qpu::jit::Engine engine = qpu::jit::Engine::kAuto;
  TimingMode timing = TimingMode::kOff;
  bool perf_map = false;
  std::string host_profile;  ///< file for host_profile_text() of the daemon's life; empty: none
  uint32_t left_out = 0;     ///< v3d::g_left_out
  bool foreground = false;
  bool shed = false;  ///< shed_surroundings()
  bool no_execute = false;
};

/// What the command line does not say, the environment does. Exits on wrong usage, and after --help,
/// --version and --debug help.
Options parse_options(int argc, char** argv);

}  // namespace v3d::daemon
