#include "gpu/qpu/graph/alu_nodes.h"

#include <bit>
#include <cstddef>
#include <cstdint>

#include "gpu/qpu/run/alu_lanes.h"
#include "gpu/qpu/run/sfu.h"

namespace v3d::qpu::graph {
namespace {

constexpr uint32_t kSign = 0x80000000, kInfinity = 0x7f800000, kQuiet = 0x400000, kQuietNan = 0x7fc00000,
                   kNoNumber = 0xffc00000, kTwoHundred = 0x43480000, kLeastNormal = 0x00800000;

using QpuOp = qpu::Op;
using ResultFn = Value (*)(const Value& a, const Value& b);
using FlagFn = Value (*)(const Value& a, const Value& b, const Value& result);
using UnpackFn = Value (*)(const Value& v);

template <QpuOp op>
constexpr ResultFn result_fn() {
  if constexpr (has_expression(op))
    return result_of<op, Value>;
  else
    return nullptr;
}
constexpr ResultFn kResults[qpu::kNumOps] = {
#define V3D_QPU_OP(op, mnemonic, operands, destination, input, output, flags, carry, latency, traits) \
  result_fn<QpuOp::k##op>(),
#include "gpu/qpu/isa/isa.def"
};
template <Flag flag>
constexpr FlagFn kFlags[qpu::kNumOps] = {
#define V3D_QPU_OP(op, mnemonic, operands, destination, input, output, flags, carry, latency, traits) \
  flag_of<QpuOp::k##op, flag, Value>,
#include "gpu/qpu/isa/isa.def"
};
constexpr UnpackFn kUnpacks[] = {
#define V3D_QPU_UNPACK(unpack, suffix) unpacked_lanes<Unpack::k##unpack, Value>,
#include "gpu/qpu/isa/isa.def"
};

}  // namespace

Value alu_result(QpuOp op, const Value& a, const Value& b) {
  const ResultFn fn = kResults[static_cast<size_t>(op)];
  return fn == nullptr ? Value{} : fn(a, b);
}

Value alu_flag(QpuOp op, Flag flag, const Value& a, const Value& b, const Value& result) {
  const auto n = static_cast<size_t>(op);
  const FlagFn fn = flag == Flag::kZ   ? kFlags<Flag::kZ>[n]
                    : flag == Flag::kN ? kFlags<Flag::kN>[n]
                                       : kFlags<Flag::kC>[n];
  return fn(a, b, result);
}

Value alu_operand(Unpack unpack, const Value& v) { return kUnpacks[static_cast<size_t>(unpack)](v); }

Value special_function(QpuOp op, const Value& x) {
  const auto bits = [&](uint32_t word) { return constant(*x.graph, word); };
  const Value zero = bits(0), infinity = bits(kInfinity), quiet = x | kQuiet;
  switch (op) {
    case QpuOp::kRsqrt:
    case QpuOp::kRsqrt2: {
      const Value root = make(Op::kReciprocalRoot, x);
      const Value number = choose(below_floats(x, infinity), root, zero);
      const Value not_below = choose(equal_floats(x, zero), (x & kSign) | infinity, number);
      return choose(is_nan(x), quiet, choose(below_floats(x, zero), bits(kNoNumber), not_below));
    }
    case QpuOp::kExp: {
      const Value most = bits(kTwoHundred), least = bits(kTwoHundred | kSign);
      const Value limited = max_floats(min_floats(x, most), least);
      Value power = make(Op::kExp2, limited);
      power = choose(below_floats(power, bits(kLeastNormal)), zero, power);
      for (const sfu::Tie& tie : sfu::kTiesOfExp2)
        power = choose(equal_words(x, bits(std::bit_cast<uint32_t>(tie.x))),
                       bits(std::bit_cast<uint32_t>(tie.result)), power);
      return choose(is_nan(x), quiet, power);
    }
    case QpuOp::kLog: {
      const Value not_positive = choose(equal_floats(x, zero), bits(kInfinity | kSign),
                                        choose(below_floats(x, zero), bits(kQuietNan), x));
      const Value counts = below_floats(zero, x) & below_floats(x, infinity);
      return choose(counts, make(Op::kLog2, x), not_positive);
    }
    default:
      return {};
  }
}

}  // namespace v3d::qpu::graph
