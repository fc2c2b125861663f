/// These functions make the GPUs that the daemon can stand in for.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "daemon/board.h"
#include "daemon/debug_watch.h"
#include "daemon/timing_mode.h"
#include "gpu/qpu/jit/jit.h"
#include "ioctl/base/gpu.h"

namespace v3d::daemon {

/// Nothing of one whose display is a device of its own.
std::optional<ioctl::Vc4Board> vc4_board_of(const Board& board);

/// The GPU model (device::Device) on all cores.
/// @param workers  threads besides those of the queues
/// @param patience  seconds of GPU time without progress after which a job is reset
/// @param watch  what the debug categories of QPU threads show
/// @param engine  how QPU programs run
/// @param perf_map  write a PerfMap of those that are compiled
/// @param timing  whether the times of jobs are predicted; pace is the scheduler's affair
std::unique_ptr<ioctl::Gpu> make_device_gpu(const Board& board, int workers, double patience,
                                            const WatchSelection& watch, qpu::jit::Engine engine,
                                            bool perf_map, TimingMode timing);

/// What compiled programs did and what they left to the interpreter, and lookups without generated code, in
/// lines. @param compiler  null: programs are interpreted
std::string engine_text(const qpu::jit::JitCompiler* compiler);

/// Accepts every job and executes nothing (--no-execute): for measuring drivers and this daemon alone.
std::unique_ptr<ioctl::Gpu> make_idle_gpu(const Board& board);

class CaptureWriter;
class CaptureWindow;
/// Writes every job that the window takes, with the memory that it finds, to a capture (capture.h) and has
/// `inner` run it. The capture ends with the GPU.
std::unique_ptr<ioctl::Gpu> make_capture_gpu(std::unique_ptr<CaptureWriter> writer,
                                             const CaptureWindow& window, std::unique_ptr<ioctl::Gpu> inner);

}  // namespace v3d::daemon
