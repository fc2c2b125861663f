/// These are the operations of lane expressions (gpu/qpu/run/vc4_lanes.h and alu_lanes.h) on nodes of a
/// graph: evaluating an expression makes its nodes.
#pragma once

#include <cstdint>

#include "gpu/base/arithmetic.h"
#include "gpu/base/compare.h"
#include "gpu/qpu/graph/graph.h"

namespace v3d::qpu::graph {

struct Value {
  Graph* graph = nullptr;
  Id id = kNoNode;
};

inline Value constant(Graph& graph, uint32_t bits) { return {&graph, graph.constant(bits)}; }
inline Value make(Op op, Value a) {
  return {a.graph, a.graph->make({.op = op, .operands = {a.id, kNoNode, kNoNode}})};
}
inline Value make(Op op, Value a, Value b) {
  return {a.graph, a.graph->make({.op = op, .operands = {a.id, b.id, kNoNode}})};
}
inline Value make(Op op, Value a, Value b, Value c) {
  return {a.graph, a.graph->make({.op = op, .operands = {a.id, b.id, c.id}})};
}

#define V3D_GRAPH_OPERATOR(symbol, op)                                                             \
  inline Value operator symbol(Value a, Value b) { return make(op, a, b); }                        \
  inline Value operator symbol(Value a, uint32_t b) { return make(op, a, constant(*a.graph, b)); } \
  inline Value operator symbol(uint32_t a, Value b) { return make(op, constant(*b.graph, a), b); }
V3D_GRAPH_OPERATOR(+, Op::kAdd)
V3D_GRAPH_OPERATOR(-, Op::kSub)
V3D_GRAPH_OPERATOR(*, Op::kMul)
V3D_GRAPH_OPERATOR(&, Op::kAnd)
V3D_GRAPH_OPERATOR(|, Op::kOr)
V3D_GRAPH_OPERATOR(^, Op::kXor)
V3D_GRAPH_OPERATOR(<<, Op::kShl)
V3D_GRAPH_OPERATOR(>>, Op::kShr)
#undef V3D_GRAPH_OPERATOR
inline Value operator~(Value a) { return a ^ ~0u; }
inline Value operator-(Value a) { return 0u - a; }

inline Value equal_words(Value a, Value b) { return make(Op::kEqual, a, b); }
inline Value above(Value a, Value b) { return make(Op::kAbove, a, b); }
inline Value above_unsigned(Value a, Value b) { return make(Op::kAboveUnsigned, a, b); }
inline Value choose(Value mask, Value a, Value b) { return make(Op::kChoose, mask, a, b); }
inline Value least(Value a, Value b) { return make(Op::kMin, a, b); }
inline Value greatest(Value a, Value b) { return make(Op::kMax, a, b); }
inline Value shifted_right_signed(Value a, Value n) { return make(Op::kSar, a, n); }
inline Value leading_zeros(Value a) { return make(Op::kLeadingZeros, a); }
inline Value halves_product(Value a, Value b) { return make(Op::kMulHalves, a, b); }
inline Value halves_sum(Value a, Value b) { return make(Op::kAddHalves, a, b); }
inline Value halves_upper_byte(Value a) { return make(Op::kUpperBytes, a); }
inline Value bytes_least(Value a, Value b) { return make(Op::kMinBytes, a, b); }
inline Value bytes_greatest(Value a, Value b) { return make(Op::kMaxBytes, a, b); }
inline Value bytes_sum(Value a, Value b) { return make(Op::kAddBytes, a, b); }
inline Value bytes_difference(Value a, Value b) { return make(Op::kSubBytes, a, b); }
inline Value product_to_nearest(Value a, Value b) { return make(Op::kMulNearest, a, b); }
inline Value sum_to_nearest(Value a, Value b) { return make(Op::kAddNearest, a, b); }
inline Value exact_product(Value a, Value b) { return make(Op::kMulExact, a, b); }
inline Value rounded_down(Value a) { return make(Op::kFloor, a); }
inline Value truncated(Value a) { return make(Op::kTruncate, a); }
inline Value sum_toward_zero(Value a, Value b) { return make(Op::kSum, a, b); }
inline Value product_toward_zero(Value a, Value b) { return make(Op::kProduct, a, b); }
inline Value integer_of_float(const Value& a) { return make(Op::kIntegerOf, a); }
inline Value float_of_integer(Value a) { return make(Op::kFloatOf, a); }

// ---- Of V3D 4.2 and 7.1 (gpu/qpu/run/host_lanes.h)

inline Value make_with(Op op, Value a, uint32_t immediate) {
  return {a.graph, a.graph->make({.op = op, .operands = {a.id, kNoNode, kNoNode}, .immediate = immediate})};
}
inline Value float_sum(Value a, Value b) { return make(Op::kFloatSum, a, b); }
inline Value float_difference(Value a, Value b) { return make(Op::kFloatDifference, a, b); }
inline Value float_product(Value a, Value b) { return make(Op::kFloatProduct, a, b); }
inline Value float_quotient(Value a, Value b) { return make(Op::kFloatQuotient, a, b); }
inline Value max_floats(Value a, Value b) { return make(Op::kMaxFloats, a, b); }
inline Value min_floats(Value a, Value b) { return make(Op::kMinFloats, a, b); }
inline Value equal_floats(Value a, Value b) { return make(Op::kEqualFloats, a, b); }
inline Value below_floats(Value a, Value b) { return make(Op::kBelowFloats, a, b); }
inline Value at_most_floats(Value a, Value b) { return make(Op::kAtMostFloats, a, b); }
template <Rounding rounding>
inline Value rounded(Value a) {
  return make_with(Op::kRound, a, static_cast<uint32_t>(rounding));
}
inline Value least_unsigned(Value a, Value b) { return make(Op::kMinUnsigned, a, b); }
inline Value deposited(Value a, uint32_t mask) { return make_with(Op::kDeposit, a, mask); }
inline Value byte_of(Value a, uint32_t number) { return make_with(Op::kByte, a, number); }
inline Value srgb_value(Value a, uint32_t byte) { return make_with(Op::kSrgbValue, a, byte); }
inline Value byte_products(Value a, Value b) { return make(Op::kByteProducts, a, b); }
inline Value half_products(Value a, Value b) { return make(Op::kHalfProducts, a, b); }
inline Value least_of_lanes(Value a) { return make(Op::kLeastOfLanes, a); }
inline Value picked_lanes(Value a, Value number) { return make(Op::kPickLanes, a, number); }
inline Value nearest_integer(const Value& a) { return make(Op::kNearestInteger, a); }
inline Value nearest_float(Value a) { return make(Op::kNearestFloat, a); }
inline Value half_of(Value a) { return make(Op::kHalfOf, a); }
inline Value float_of_half(Value a) { return make(Op::kFloatOfHalf, a); }
template <int a, int b, int c, int d>
inline Value of_quad_lanes(Value v) {
  return make_with(Op::kShuffleQuads, v, a | b << 2 | c << 4 | d << 6);
}

/// A mask: where a against b passes the comparison. @param are_floats  or signed integers
inline Value compared(Compare comparison, Value a, Value b, bool are_floats) {
  switch (comparison) {
    case Compare::kNever:
      return constant(*a.graph, 0);
    case Compare::kLess:
      return are_floats ? below_floats(a, b) : above(b, a);
    case Compare::kEqual:
      return are_floats ? equal_floats(a, b) : equal_words(a, b);
    case Compare::kLequal:
      return are_floats ? at_most_floats(a, b) : ~above(a, b);
    case Compare::kGreater:
      return are_floats ? below_floats(b, a) : above(a, b);
    case Compare::kNotEqual:
      return ~(are_floats ? equal_floats(a, b) : equal_words(a, b));
    case Compare::kGequal:
      return are_floats ? at_most_floats(b, a) : ~above(b, a);
    case Compare::kAlways:
      break;
  }
  return constant(*a.graph, ~0u);
}

}  // namespace v3d::qpu::graph
