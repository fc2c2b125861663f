/// Executes programs, one thread of 16 lanes at a time.
#pragma once

#include "gpu/qpu/run/thread.h"

namespace v3d::qpu {

class Program;

/// Runs the thread from thread.pc until something stops it. On Stop::kHang the reason is on the log.
Stop run(const Program& program, Thread& thread);

}  // namespace v3d::qpu
