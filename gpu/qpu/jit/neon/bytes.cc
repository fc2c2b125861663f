/// @file Code of operations that move bytes and bits within lanes and quads, and of products of bytes and
/// halves.

#include <bit>
#include <cstdint>

#include "gpu/qpu/jit/neon/emitter.h"
#include "gpu/qpu/jit/neon/frame.h"
#include "gpu/tmu/lookup/lookup_kind.h"

namespace v3d::qpu::jit::neon {

/// @param number_of  gives for each byte of a register that of the operand; from 16 on, the byte is 0
template <typename NumberOf>
void Emitter::select_bytes(const Node& node, NumberOf number_of) {
  uint64_t halves[2] = {};
  for (uint32_t byte = 0; byte < kPartBytes; ++byte)
    halves[byte / 8] |= uint64_t{number_of(byte)} << (8 * (byte % 8));
  const int a = in_register(node.operands[0]), to = result(node);
  masm_.Ldr(scratch(0).Q(), operand_of(in_pool(pooled(halves[0], halves[1]))));
  for (int p = 0; p < kParts; ++p) masm_.Tbl(part(to, p).V16B(), part(a, p).V16B(), scratch(0).V16B());
}

/// A quad is a register.
void Emitter::shuffle_quads(const Node& node) {
  select_bytes(node, [&](uint32_t byte) -> uint8_t {
    return static_cast<uint8_t>(4 * (node.immediate >> (2 * (byte / 4)) & 3) + byte % 4);
  });
}

void Emitter::one_byte(const Node& node) {
  constexpr uint8_t kNone = 0xff;
  select_bytes(node, [&](uint32_t byte) -> uint8_t {
    return byte % 4 == 0 ? static_cast<uint8_t>(byte + node.immediate) : kNone;
  });
}

/// One after the other: there is no instruction that gathers.
void Emitter::srgb_value(const Node& node) {
  using namespace vixl::aarch64;  // NOLINT(google-build-using-namespace): registers have their names
  constexpr int kByte = 8, kLanesOfPart = 4;
  const int from = in_register(node.operands[0]), to = result(node);
  masm_.Mov(x10, reinterpret_cast<uint64_t>(tmu::values_of_srgb_bytes()));
  for (int p = 0; p < kParts; ++p)
    for (int lane = 0; lane < kLanesOfPart; ++lane) {
      masm_.Umov(w11, part(from, p), lane);
      masm_.Ubfx(w11, w11, static_cast<unsigned>(node.immediate) * kByte, kByte);
      masm_.Ldr(w11, MemOperand(x10, w11, UXTW, 2));
      masm_.Ins(part(to, p), lane, w11);
    }
}

void Emitter::deposit(const Node& node) {
  const uint32_t mask = node.immediate;
  const int from = in_register(node.operands[0]), to = result(node, true);
  spread(scratch(1), mask);
  for (int p = 0; p < kParts; ++p) {
    const Vector d = part(to, p);
    deposit_runs(d, part(from, p), mask);
    masm_.And(d.V16B(), d.V16B(), scratch(1).V16B());
  }
}

/// Each run of bits of the mask comes with all that stands above it, over which the next run goes: between
/// them and behind the last one is anything.
void Emitter::deposit_runs(const Vector& to, const Vector& from, uint32_t mask) {
  for (int bit = 0; mask != 0;) {
    const int at = std::countr_zero(mask), count = std::countr_one(mask >> at);
    if (bit != 0) {
      masm_.Ushr(scratch(0), from, bit);
      masm_.Sli(to, scratch(0), at);
    } else if (at != 0) {
      masm_.Shl(to, from, at);
    } else {
      masm_.Mov(to.V16B(), from.V16B());
    }
    bit += count;
    mask = at + count == 32 ? 0 : mask >> (at + count) << (at + count);
  }
}

/// Odd bytes of the pairs, and even ones.
void Emitter::byte_products(const Node& node) {
  constexpr int kByte = 8;
  const Operand a = operand(node.operands[0], 0), b = operand(node.operands[1], 1);
  const int to = result(node, true);
  const Vector without_sign = scratch(2).V8H(), even = zero().V8H();
  has_zero_ = false;
  for (int p = 0; p < kParts; ++p) {
    const Vector d = part(to, p).V8H(), x = at(a, p).V8H(), y = at(b, p).V8H();
    masm_.Ushr(without_sign, x, kByte);
    masm_.Sshr(d, y, kByte);
    masm_.Mul(d, d, without_sign);
    masm_.Shl(without_sign, x, kByte);
    masm_.Ushr(without_sign, without_sign, kByte);
    masm_.Shl(even, y, kByte);
    masm_.Sshr(even, even, kByte);
    masm_.Mul(even, even, without_sign);
    masm_.Sqadd(d, d, even);
  }
}

void Emitter::half_products(const Node& node) {
  const Operand a = operand(node.operands[0], 0), b = operand(node.operands[1], 1);
  const int to = result(node);
  const Vector low = scratch(2), high = zero();
  has_zero_ = false;
  for (int p = 0; p < kParts; ++p) {
    masm_.Smull(low, at(a, p).V4H(), at(b, p).V4H());
    masm_.Smull2(high, at(a, p).V8H(), at(b, p).V8H());
    masm_.Addp(part(to, p), low, high);
  }
}

}  // namespace v3d::qpu::jit::neon
