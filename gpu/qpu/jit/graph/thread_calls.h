/// What code of parts of threads (gpu/qpu/graph/thread_front_end.h) calls: the interpreter's functions, with
/// one way to pass operands.
#pragma once

#include <cstdint>

#include "gpu/qpu/graph/graph.h"
#include "gpu/qpu/jit/code/frame.h"
#include "gpu/qpu/run/thread.h"

namespace v3d::qpu::jit {

/// @param a, b, exec  operands of those that have them
/// @return  null, or why the thread hangs; what is thrown waits in Frame::exception
using ThreadCallFn = const char* (*)(Frame* frame, const Lanes* a, const Lanes* b, uint32_t exec,
                                     uint32_t immediate, Lanes* result);
/// Why a thread hangs.
inline constexpr char kEmptyQueue[] = "ldtmu without an outstanding lookup";
/// Of an operation that kCalls.
ThreadCallFn find_thread_call(graph::Op op);

}  // namespace v3d::qpu::jit
