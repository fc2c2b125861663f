/// Calls are what code of graphs calls: the interpreter's functions, with one way to pass operands.
#pragma once

#include <cstdint>

#include "gpu/qpu/graph/graph.h"
#include "gpu/qpu/run/vc4_thread.h"

namespace v3d::qpu::jit {

/// @param value, exec  operands of those that have them
/// @return  null, or why the thread hangs, or kThrown: what is thrown waits in vc4::t_thrown
using CallFn = const char* (*)(vc4::Thread* thread, const Lanes* value, uint32_t exec, uint32_t immediate,
                               Lanes* result);
/// Of an operation that kCalls.
CallFn find_call(graph::Op op);

/// a = a op b, exactly, or op a. @param op  kSum, kProduct or kIntegerOf
using ExactFn = void (*)(Lanes* a, const Lanes* b);
ExactFn find_exact(graph::Op op);

}  // namespace v3d::qpu::jit
