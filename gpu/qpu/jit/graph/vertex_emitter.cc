#include "gpu/qpu/jit/graph/vertex_emitter.h"

#include <cstddef>
#include <cstdint>

#include "gpu/qpu/jit/graph/frame.h"
#include "gpu/qpu/run/vertex_code.h"

namespace v3d::qpu::jit {
namespace {

using Xbyak::Reg64;

constexpr int kUnitsOfAvx512 = 30, kUnitsOfAvx2 = 7;

const Reg64 kIn(Xbyak::Operand::RSI), kOut(Xbyak::Operand::RDX), kUniformWords(Xbyak::Operand::RCX);

constexpr int place_of_uniform(uint32_t number) {
  return static_cast<int>(number) * static_cast<int>(sizeof(SpreadWord));
}

}  // namespace

VertexEmitter::VertexEmitter(const graph::Graph& graph, Width width, void* buffer, size_t bytes)
    : GraphEmitter(graph, width, width == Width::kAvx512 ? kUnitsOfAvx512 : kUnitsOfAvx2, buffer, bytes) {
  uniforms_are_spread_ = true;
}

void VertexEmitter::begin() {
  push(rbp);
  mov(rbp, rsp);
  sub(rsp, 0x7fffffff);
  frame_at_ = getSize() - 4;
  and_(rsp, -kLaneBytes);
  mov(kIn, ptr[rdi + offset_of(offsetof(VertexRun, in))]);
  mov(kOut, ptr[rdi + offset_of(offsetof(VertexRun, out))]);
  mov(kUniformWords, ptr[rdi + offset_of(offsetof(VertexRun, uniforms))]);
}

void VertexEmitter::end() {
  mov(rsp, rbp);
  pop(rbp);
  vzeroupper();
  ret();
}

Xbyak::Address VertexEmitter::home_of(const Node& node, int /*part*/, bool spreads) {
  const Xbyak::RegExp at = kUniformWords + place_of_uniform(node.immediate);
  return spreads && wide_ ? ptr_b[at] : ptr[at];
}

/// Where it is; in rax what a uniform tells of it.
Xbyak::RegExp VertexEmitter::row(const Node& node, const Reg64& rows) {
  const uint32_t number = node.immediate;
  if (number < VertexRows::kByUniform) return rows + static_cast<int>(number) * kLaneBytes;
  mov(eax, ptr[kUniformWords + place_of_uniform(number - VertexRows::kByUniform)]);
  static_assert(kLaneBytes == 1 << 6);
  shl(rax, 6);
  return rows + rax;
}

void VertexEmitter::emit_own(const Node& node) {
  if (node.op == Op::kLoadAttribute) {
    const int to = result(node);
    const Xbyak::RegExp at = row(node, kIn);
    for (int p = 0; p < parts_; ++p) vmovups(vector(to, p), ptr[at + 32 * p]);
  } else if (node.op == Op::kStoreOutput) {
    const int from = in_register(node.operands[0]);
    const Xbyak::RegExp at = row(node, kOut);
    for (int p = 0; p < parts_; ++p) vmovups(ptr[at + 32 * p], vector(from, p));
    consume(node);
  }
}

}  // namespace v3d::qpu::jit
