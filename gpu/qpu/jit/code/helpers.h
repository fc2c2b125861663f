/// Helpers are what compiled code calls: the interpreter's functions, with one way to pass operands. What
/// they throw waits in the frame until the code is left.
#pragma once

#include "gpu/qpu/jit/code/frame.h"
#include "gpu/qpu/run/alu.h"

namespace v3d::qpu::jit {

/// An operation of an ALU: reads a, b and exec of the frame; sets result, and x if `flag` is not null.
void evaluate(Frame* frame, AluFn alu, FlagFn flag);
/// The same for an operation of the active lanes, to which it narrows exec.
void evaluate_active(Frame* frame, AluFn alu, FlagFn flag);

/// A write of a and exec to a port. @param effect, takes_uniform, waddr  the Port
/// @return 0, or 1 if the thread hangs: see Frame::error
uint32_t write_to_port(Frame* frame, uint32_t effect, uint32_t takes_uniform, uint32_t waddr);

/// The same for those that start texture lookups. Those that follow with the same plan have code then, if it
/// can.
uint32_t start_lookup(Frame* frame, uint32_t effect, uint32_t takes_uniform, uint32_t waddr);

/// The same for writes to the tile buffer.
uint32_t write_to_tlb(Frame* frame, uint32_t takes_uniform);

/// The next word of the tile buffer, to result.
void load_tlb(Frame* frame, uint32_t with_config);

}  // namespace v3d::qpu::jit
