/// What code of parts of threads (gpu/qpu/graph/thread_front_end.h) calls: the interpreter's functions, with
/// one way to pass operands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "gpu/qpu/graph/graph.h"
#include "gpu/qpu/jit/code/frame.h"
#include "gpu/qpu/run/thread.h"
#include "gpu/tmu/lookup/unit.h"

namespace v3d::qpu::jit {

/// @param a, b, exec  operands of those that have them
/// @return  null, or why the thread hangs; what is thrown waits in Frame::exception
using ThreadCallFn = const char* (*)(Frame* frame, const Lanes* a, const Lanes* b, uint32_t exec,
                                     uint32_t immediate, Lanes* result);
/// Words of the stream of uniforms that are taken before a node that reads or writes a port.
uint32_t uniforms_before(const graph::Node& node);

/// A parameter of a texture lookup, which waits in the thread for the rest.
struct WaitingParameter {
  size_t offset;  ///< of its lanes in Thread
  tmu::Parameter bit;
};
/// That the port of an effect writes, if it is one.
std::optional<WaitingParameter> waiting_parameter(Effect effect);

/// Why a thread hangs.
inline constexpr char kEmptyQueue[] = "ldtmu without an outstanding lookup";
/// Of an operation that kCalls.
ThreadCallFn find_thread_call(graph::Op op);

}  // namespace v3d::qpu::jit
