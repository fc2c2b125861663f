/// Operations of QPUs of V3D 4.2 and 7.1 on nodes of a graph, where a front end has an operation's number.
#pragma once

#include "gpu/qpu/graph/value.h"
#include "gpu/qpu/isa/isa.h"

namespace v3d::qpu::graph {

/// @param a, b  unpacked. @return  no node: the operation has no expression (gpu/qpu/run/alu_lanes.h)
Value alu_result(qpu::Op op, const Value& a, const Value& b);
/// A mask. @param result  of the operation
Value alu_flag(qpu::Op op, Flag flag, const Value& a, const Value& b, const Value& result);
Value alu_operand(Unpack unpack, const Value& v);
/// Those of gpu/qpu/run/sfu.h that are computed on doubles. @return  no node: it is none of these
Value special_function(qpu::Op op, const Value& x);

}  // namespace v3d::qpu::graph
