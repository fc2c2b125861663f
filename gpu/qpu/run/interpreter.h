/// Executes programs, one thread of 16 lanes at a time.
#pragma once

#include <string>

#include "gpu/qpu/run/thread.h"

namespace v3d::qpu {

class Program;

/// Runs the thread from thread.pc until something stops it. On Stop::kHang the reason is in thread.hang.
Stop run(const Program& program, Thread& thread);

/// Of a thread that stopped with Stop::kHang: "invalid instruction at pc 0x00001008, word
/// 0x0000000000000000".
std::string hang_text(const Thread& thread);

}  // namespace v3d::qpu
