/// @file Code of gathers from memory: one instruction for a vector or, where that is slow and all lanes take
/// part, a load for each lane. Stores of lanes to memory are here, too.

#include <xbyak/xbyak_util.h>

#include "gpu/qpu/jit/graph/emitter.h"
#include "gpu/qpu/jit/graph/frame.h"

namespace v3d::qpu::jit {
namespace {

using Xbyak::Opmask;
using Xbyak::Reg64;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

/// Of part 0 of AVX-512; those of part 1 are in the one two behind it.
const Opmask kLanesOfGather(2);
Opmask lanes_of_part(int part) { return Opmask(kLanesOfGather.getIdx() + 2 * part); }

/// Of AVX2: a bit for each lane of a part that takes part in both.
const Xbyak::Reg32 kLanesOfBoth(Xbyak::Operand::R10);
constexpr uint32_t kWholePart = 0xff;

constexpr int kStoredAddresses = kOperands, kStoredWords = kOperands + kLaneBytes;

constexpr uint8_t kEvenWords = 0x88, kOddWords = 0xdd;

}  // namespace

/// Those of AMD's are some 40 micro-operations for eight lanes, and nothing else is decoded meanwhile.
bool gathers_are_slow() {
  static const bool kAre = Xbyak::util::Cpu().has(Xbyak::util::Cpu::tAMD);
  return kAre;
}

void GraphEmitter::gather(const Node& node) { wide_ ? gather_wide(node) : gather_narrow(node); }

/// To k2, and k4, or to r10d.
void GraphEmitter::lanes_of_gather(Id mask) {
  if (lanes_of_gather_ == mask) return;
  lanes_of_gather_ = mask;
  if (!wide_) {
    const Last lanes = last_operand(mask);
    const int first = lanes.unit;
    first >= 0 ? vmovaps(scratch(0), vector(first, 0)) : vmovaps(scratch(0), memory_of(mask, 0, true));
    if (parts_ == 2)
      first >= 0 ? vandps(scratch(0), scratch(0), vector(first, 1))
                 : vandps(scratch(0), scratch(0), memory_of(mask, 1, true));
    return vmovmskps(kLanesOfBoth, scratch(0));
  }
  for (int p = 0; p < parts_; ++p) {
    const Opmask k = lanes_of_part(p);
    if (!graph_.is_constant(mask))
      vpmovd2m(k, vector(in_register(mask), p));
    else
      graph_.is_constant(mask, 0) ? kxorw(k, k, k) : kxnorw(k, k, k);
  }
}

void GraphEmitter::gather_wide(const Node& node) {
  const auto [index, mask, none] = node.operands;
  const int from = in_register(index);
  lanes_of_gather(mask);
  const int to = result(node, true);
  for (int p = 0; p < parts_; ++p) {
    const Vector d = vector(to, p);
    kmovw(kLanesLeft, lanes_of_part(p));
    vpxord(d, d, d);
    vpgatherdd(d | kLanesLeft,
               ptr[kMiddleOfMemory + Zmm(vector(from, p).getIdx()) + offset_of(node.immediate)]);
  }
}

/// The node that gathers the words behind those of this one, if it is the next.
const graph::Node* GraphEmitter::gather_behind(const Node& node) const {
  const Node* const next = &node + 1;
  const bool is_behind = id_of(node) + size_t{1} < graph_.nodes().size() && next->op == Op::kGather &&
                         next->operands[0] == node.operands[0] && next->operands[1] == node.operands[1] &&
                         next->immediate == node.immediate + sizeof(uint32_t);
  return is_behind ? next : nullptr;
}

/// Of AVX2.
void GraphEmitter::gather_narrow(const Node& node) {
  const auto [index, mask, none] = node.operands;
  if (places_[id_of(node)].unit >= 0) return consume(node);  // with the words before
  const bool is_whole = graph_.is_constant(mask) && !graph_.is_constant(mask, 0);
  const bool loads = avoids_gathers_ && (is_whole || !graph_.is_constant(mask));
  Gather gather = {.from = in_register(index), .offset = offset_of(node.immediate)};
  if (loads && !is_whole) lanes_of_gather(mask);
  if (const Last lanes = last_operand(mask); lanes.unit >= 0)
    gather.lanes = lanes.unit;
  else
    for (int p = 0; p < parts_; ++p) gather.memory.push_back(memory_of(mask, p, true));
  gather.to = result(node, true);
  if (!loads) return gather_by_host(gather);
  if (const Node* const behind = gather_behind(node); behind != nullptr) {
    locked_ |= 1u << gather.to;
    gather.second = result_beside(*behind);
  }
  if (is_whole) return load_lanes(gather);
  PartialGather& partial = partial_gathers_.emplace_back();
  cmp(kLanesOfBoth, kWholePart);
  jne(partial.entry, T_NEAR);
  load_lanes(gather);
  L(partial.back);
  partial.gather = std::move(gather);
}

void GraphEmitter::gather_by_host(const Gather& of) {
  const auto gather = [&](const Vector& d, int p, int offset) {
    of.lanes >= 0 ? vmovaps(scratch(0), vector(of.lanes, p))
                  : vmovaps(scratch(0), of.memory[static_cast<size_t>(p)]);
    vpxor(d, d, d);
    vpgatherdd(d, ptr[kMiddleOfMemory + Ymm(vector(of.from, p).getIdx()) + offset], scratch(0));
  };
  for (int p = 0; p < parts_; ++p) {
    gather(vector(of.to, p), p, of.offset);
    if (of.second >= 0) gather(vector(of.second, p), p, of.offset + int{sizeof(uint32_t)});
  }
}

void GraphEmitter::load_lanes(const Gather& of) {
  for (int p = 0; p < parts_; ++p)
    of.second < 0 ? load_words(vector(of.to, p), vector(of.from, p), of.offset)
                  : load_pairs(vector(of.to, p), vector(of.second, p), vector(of.from, p), of.offset);
}

/// Calls load(lane, index) for four lanes, whose indices are in a vector. Changes rcx and rdx.
template <typename Fn>
void GraphEmitter::for_each_lane(const Xmm& indices, bool are_signed, Fn load) {
  for (int half = 0; half < 2; ++half) {
    half == 0 ? vmovq(rcx, indices) : vpextrq(rcx, indices, 1);
    are_signed ? movsxd(rdx, ecx) : mov(edx, ecx);
    load(2 * half, rdx);
    are_signed ? sar(rcx, 32) : shr(rcx, 32);
    load(2 * half + 1, rcx);
  }
}

/// Words at the indices. @param indices  may be the first scratch register
/// @param address_of  of an index, by registers other than rcx and rdx
template <typename Fn>
void GraphEmitter::load_words(const Vector& to, const Vector& indices, bool are_signed, Fn address_of) {
  const Xmm upper(scratch(1).getIdx()), d(to.getIdx());
  const auto load_to = [&](const Xmm& four) {
    return [this, four, &address_of](int lane, const Reg64& index) {
      const Xbyak::Address at = dword[address_of(index)];
      lane == 0 ? vmovd(four, at) : vpinsrd(four, four, at, static_cast<uint8_t>(lane));
    };
  };
  for_each_lane(Xmm(indices.getIdx()), are_signed, load_to(d));
  vextracti128(upper, Ymm(indices.getIdx()), 1);
  const Xmm upper_words(scratch(0).getIdx());
  for_each_lane(upper, are_signed, load_to(upper_words));
  vinserti128(Ymm(d.getIdx()), Ymm(d.getIdx()), upper_words, 1);
}

void GraphEmitter::load_words(const Vector& to, const Vector& from, int offset) {
  load_words(to, from, true, [&](const Reg64& index) { return kMiddleOfMemory + index + offset; });
}

/// Of a table, by indices without sign.
void GraphEmitter::load_from_table(const Vector& to, const Vector& indices, const Reg64& table) {
  load_words(to, indices, false, [&](const Reg64& index) { return table + index * 4; });
}

/// Words at the indices, and those behind them.
void GraphEmitter::load_pairs(const Vector& first, const Vector& second, const Vector& from, int offset) {
  // Lanes 0, 1, 4 and 5, and the others.
  const Ymm a(scratch(0).getIdx()), b(scratch(1).getIdx()), d(first.getIdx()), e(second.getIdx());
  const Xmm upper_a(second.getIdx()), upper_b(first.getIdx());
  const auto load_to = [&](const Xmm& two, const Xmm& others) {
    return [this, two, others, offset](int lane, const Reg64& index) {
      const Xmm& to = lane < 2 ? two : others;
      const Xbyak::Address words = qword[kMiddleOfMemory + index + offset];
      lane % 2 == 0 ? vmovq(to, words) : vmovhps(to, to, words);
    };
  };
  // The last of these indices are taken before words are loaded there.
  const Xmm upper = upper_b;
  vextracti128(upper, Ymm(from.getIdx()), 1);
  for_each_lane(Xmm(from.getIdx()), true, load_to(Xmm(a.getIdx()), Xmm(b.getIdx())));
  for_each_lane(upper, true, load_to(upper_a, upper_b));
  vinsertf128(a, a, upper_a, 1);
  vinsertf128(b, b, upper_b, 1);
  vshufps(d, a, b, kEvenWords);
  vshufps(e, a, b, kOddWords);
}

/// Where there may be no memory for the lanes that do not take part.
void GraphEmitter::partial_gathers() {
  for (PartialGather& partial : partial_gathers_) {
    L(partial.entry);
    gather_by_host(partial.gather);
    jmp(partial.back, T_NEAR);
  }
}

/// A part of the addresses to the first scratch register.
void GraphEmitter::moved(int part, int address, uint32_t offset) {
  if (offset == 0)
    vmovaps(scratch(0), vector(address, part));
  else
    vpaddd(scratch(0), vector(address, part), constant(offset));
}

/// In the order of lanes, where addresses are equal. Changes eax, ecx and edx.
/// @param address, data  the units of the node's first two operands
void GraphEmitter::scatter_words(const Node& node, int address, int data) {
  mask_to(edx, node.operands[2]);
  if (wide_) {
    moved(0, address, node.immediate);
    kmovw(kLanesLeft, edx);
    vpscatterdd(ptr[kMiddleOfMemory + Zmm(scratch(0).getIdx())] | kLanesLeft, Zmm(data));
    return;
  }
  for (int p = 0; p < parts_; ++p) {
    moved(p, address, node.immediate);
    vmovaps(ptr[rsp + kStoredAddresses + bytes_of_part_ * p], scratch(0));
    vmovaps(ptr[rsp + kStoredWords + bytes_of_part_ * p], vector(data, p));
  }
  Xbyak::Label next, done;
  test(edx, edx);
  jz(done);
  L(next);
  bsf(ecx, edx);
  movsxd(rax, dword[rsp + rcx * 4 + kStoredAddresses]);
  mov(ecx, dword[rsp + rcx * 4 + kStoredWords]);
  mov(dword[kMiddleOfMemory + rax], ecx);
  lea(eax, ptr[rdx - 1]);
  and_(edx, eax);
  jnz(next);
  L(done);
}

}  // namespace v3d::qpu::jit
