#include "gpu/qpu/jit/graph/lookup_emitter.h"

#include <cstddef>
#include <cstdint>

#include "gpu/qpu/jit/graph/frame.h"

namespace v3d::qpu::jit {
namespace {

using Xbyak::Opmask;
using Xbyak::Reg64;

constexpr int kUnitsOfAvx512 = 30, kUnitsOfAvx2 = 7, kUnitsOfHalves = 14;

/// Of halves: bytes from the first lane of a value to the first one of this half.
const Reg64 kHalf(Xbyak::Operand::RDI);
const Reg64 kOut(Xbyak::Operand::R10);
constexpr int kHalfBytes = kLaneBytes / 2;
constexpr bool is_free_of_avx512(int n) { return n >= 2 && n <= 6; }
constexpr bool is_free_of_avx2(int n) { return n < 8; }
/// Of AVX-512: masks of programs that values of graphs use, and where they stand meanwhile.
constexpr int kFirstMask = 1, kLastMask = 5, kMasks = kOperands;

int units_of(Width width) {
  if (width == Width::kAvx2) return kUnitsOfAvx2;
  return width == Width::kAvx2Halves ? kUnitsOfHalves : kUnitsOfAvx512;
}

/// Bits 0 and 1 of lanes as columns and rows of a block of 4x4: quad by quad.
uint32_t column_of(uint32_t lane) { return (lane & 1) | (lane >> 1 & 2); }
uint32_t row_of(uint32_t lane) { return (lane >> 1 & 1) | (lane >> 2 & 2); }

}  // namespace

LookupEmitter::LookupEmitter(const graph::Graph& graph, Width width, void* buffer, size_t bytes)
    : GraphEmitter(graph, width, units_of(width), buffer, bytes) {}

/// Which vectors have to be kept is known in the end.
void LookupEmitter::begin() {
  push(rbp);
  mov(rbp, rsp);
  sub(rsp, 0x7fffffff);
  frame_at_ = getSize() - 4;
  and_(rsp, -kLaneBytes);
  if (are_halves()) xor_(kHalf.cvt32(), kHalf.cvt32());
  keep_at_ = getSize();
  jmp(keep_, T_NEAR);
  L(body_);
}

void LookupEmitter::end() {
  if (are_halves()) {
    xor_(kHalf.cvt32(), kHalfBytes);
    jnz(body_, T_NEAR);
  }
  for_each_kept([&](const Vector& v, const Xbyak::Address& at) { vmovaps(v, at); });
  if (wide_)
    for (int k = kFirstMask; k <= kLastMask; ++k) kmovw(Opmask(k), word[rsp + kMasks + 2 * k]);
  mov(rsp, rbp);
  pop(rbp);
  ret();

  const size_t keep = getSize();
  L(keep_);
  for_each_kept([&](const Vector& v, const Xbyak::Address& at) { vmovaps(at, v); });
  if (wide_)
    for (int k = kFirstMask; k <= kLastMask; ++k) kmovw(word[rsp + kMasks + 2 * k], Opmask(k));
  if (getSize() != keep)
    jmp(body_, T_NEAR);
  else
    leave_out_jump(keep_at_);
}

/// One of five bytes, whose label is known.
void LookupEmitter::leave_out_jump(size_t at) {
  rewrite(at, 0x0000441f0f, 4);
  rewrite(at + 4, 0, 1);
}

/// Calls fn(register, where it is kept).
template <typename Fn>
void LookupEmitter::for_each_kept(Fn fn) {
  const auto keep = [&](const Vector& v) {
    const int n = v.getIdx();
    if (!(wide_ ? is_free_of_avx512(n) : is_free_of_avx2(n))) fn(v, ptr[rsp + kSaved + bytes_of_part_ * n]);
  };
  for (int unit = 0; unit < num_used_; ++unit)
    for (int p = 0; p < parts_; ++p) keep(vector(unit, p));
  for (int n = 0; n < 2; ++n) keep(scratch(n));
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
