#include "gpu/qpu/jit/neon/vertex_emitter.h"

#include <cstddef>
#include <cstdint>

#include "gpu/qpu/jit/neon/frame.h"
#include "gpu/qpu/run/vertex_code.h"

namespace v3d::qpu::jit::neon {
namespace {

using namespace vixl::aarch64;  // NOLINT(google-build-using-namespace): registers have their names
using graph::Op;

// Calls keep these.
const Register kIn = x19, kOut = x20, kUniformWords = x21;
constexpr int kRowShift = 6;
static_assert(kLaneBytes == 1 << kRowShift);

int64_t place_of_uniform(uint32_t number) { return static_cast<int64_t>(number * sizeof(SpreadWord)); }

}  // namespace

VertexEmitter::VertexEmitter(const graph::Graph& graph) : Emitter(graph) { uniforms_are_spread_ = true; }

bool VertexEmitter::has_code(const Node& node) {
  return lane_operation(node.op) || other_operation(node.op) || node.op == Op::kLoadAttribute ||
         node.op == Op::kStoreOutput;
}

void VertexEmitter::begin(Label& body) {
  save_registers();
  masm_.Ldr(kIn, MemOperand(x0, offsetof(VertexRun, in)));
  masm_.Ldr(kOut, MemOperand(x0, offsetof(VertexRun, out)));
  masm_.Ldr(kUniformWords, MemOperand(x0, offsetof(VertexRun, uniforms)));
  masm_.B(&body);
}

void VertexEmitter::end() {
  restore_registers();
  masm_.Ret();
  unsure_results();
}

Emitter::Memory VertexEmitter::home_of(const Node& node) {
  return {kUniformWords, place_of_uniform(node.immediate)};
}

/// Where it is; from x9 on where a uniform tells it.
Emitter::Memory VertexEmitter::row(const Node& node, const Register& rows) {
  const uint32_t number = node.immediate;
  if (number < VertexRows::kByUniform) return {rows, int64_t{number} << kRowShift};
  masm_.Ldr(w9, MemOperand(kUniformWords, place_of_uniform(number - VertexRows::kByUniform)));
  masm_.Add(x9, rows, ::vixl::aarch64::Operand(x9, LSL, kRowShift));
  return {x9, 0};
}

void VertexEmitter::emit_own(const Node& node) {
  if (node.op == Op::kLoadAttribute) {
    const int to = result(node);
    move(Way::kLoad, to, row(node, kIn));
  } else {
    const Operand from = operand(node.operands[0], 0);
    store_parts(from, row(node, kOut));
    consume(node);
  }
}

}  // namespace v3d::qpu::jit::neon
