#include "gpu/qpu/jit/graph/lookup_emitter.h"

#include <cstddef>
#include <cstdint>

#include "gpu/qpu/jit/graph/frame.h"

namespace v3d::qpu::jit {
namespace {

using Xbyak::Reg64;

constexpr int kUnitsOfAvx512 = 30, kUnitsOfAvx2 = 7, kUnitsOfHalves = 14;

/// Of halves: bytes from the first lane of a value to the first one of this half.
const Reg64 kHalf(Xbyak::Operand::RDI);
const Reg64 kOut(Xbyak::Operand::R12);
constexpr int kHalfBytes = kLaneBytes / 2;

int units_of(Width width) {
  if (width == Width::kAvx2) return kUnitsOfAvx2;
  return width == Width::kAvx2Halves ? kUnitsOfHalves : kUnitsOfAvx512;
}

/// Bits 0 and 1 of lanes as columns and rows of a block of 4x4: quad by quad.
uint32_t column_of(uint32_t lane) { return (lane & 1) | (lane >> 1 & 2); }
uint32_t row_of(uint32_t lane) { return (lane >> 1 & 1) | (lane >> 2 & 2); }

}  // namespace

LookupEmitter::LookupEmitter(const graph::Graph& graph, Width width, void* buffer, size_t bytes)
    : GraphEmitter(graph, width, units_of(width), buffer, bytes) {
  avoids_gathers_ = gathers_are_slow();
}

void LookupEmitter::begin() {
  push(rbp);
  mov(rbp, rsp);
  push(kThread);
  push(kOut);
  sub(rsp, 0x7fffffff);
  frame_at_ = getSize() - 4;
  and_(rsp, -kLaneBytes);
  mov(kThread, rdi);
  mov(kTextures, rsi);
  mov(kMiddleOfMemory, rdx);
  mov(kOut, rcx);
  if (are_halves()) xor_(kHalf.cvt32(), kHalf.cvt32());
  L(body_);
}

void LookupEmitter::end() {
  if (are_halves()) {
    xor_(kHalf.cvt32(), kHalfBytes);
    jnz(body_, T_NEAR);
  }
  lea(rsp, ptr[rbp - 2 * static_cast<int>(sizeof(uint64_t))]);
  pop(kOut);
  pop(kThread);
  pop(rbp);
  vzeroupper();
  ret();
}

Xbyak::Address LookupEmitter::home_of(const Node& node, int part, bool spreads) {
  if (node.op == Op::kTextureWord) return texture_word(node, spreads);
  const Xbyak::RegExp at = kThread + static_cast<int>(node.immediate) + kHalfBytes * part;
  return are_halves() ? ptr[at + kHalf] : ptr[at];
}

void LookupEmitter::lanes(const Node& node) {
  const auto offset = static_cast<int>(node.immediate);
  if (!are_halves()) return mask_from(node, word[kThread + offset]);
  mov(eax, kHalf.cvt32());
  shr(eax, 5);
  mask_from(node, byte[kThread + rax + offset]);
}

/// Where lanes are that share texels (gpu/qpu/graph/lookup_windows.cc).
void LookupEmitter::pixel(const Node& node) {
  const int to = result(node);
  uses_pixels_ = true;
  for (int p = 0; p < parts_; ++p)
    vmovups(vector(to, p), ptr[rip + (node.immediate != 0 ? pixel_rows_ : pixel_columns_) + kHalfBytes * p]);
}

void LookupEmitter::own_data() {
  if (!uses_pixels_) return;
  table(pixel_columns_, column_of);
  table(pixel_rows_, row_of);
}

void LookupEmitter::store_output(const Node& node) {
  const int from = in_register(node.operands[0]);
  for (int p = 0; p < parts_; ++p) {
    const Xbyak::RegExp at = kOut + static_cast<int>(node.immediate) * kLaneBytes + kHalfBytes * p;
    vmovaps(are_halves() ? ptr[at + kHalf] : ptr[at], vector(from, p));
  }
  consume(node);
}

void LookupEmitter::store_memory(const Node& node) {
  scatter_words(node, in_register(node.operands[0]), in_register(node.operands[1]));
  consume(node);
}

void LookupEmitter::emit_own(const Node& node) {
  switch (node.op) {
    case Op::kLoadMask:
      return lanes(node);
    case Op::kPixel:
      return pixel(node);
    case Op::kStoreOutput:
      return store_output(node);
    case Op::kStoreMemory:
      return store_memory(node);
    default:  // sources, which are loaded where they are needed
      return;
  }
}

}  // namespace v3d::qpu::jit
