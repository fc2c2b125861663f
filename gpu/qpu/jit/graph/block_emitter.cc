#include "gpu/qpu/jit/graph/block_emitter.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "gpu/qpu/graph/program_front_end.h"
#include "gpu/qpu/jit/graph/frame.h"
#include "gpu/qpu/run/block_code.h"

namespace v3d::qpu::jit {
namespace {

using Xbyak::Reg64;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

// AVX-512 has the columns of the pixels, and two halves of their rows, in registers behind those of values.
constexpr int kUnitsOfAvx512 = 27, kUnitsOfPairs = 14, kUnitsOfAvx2 = 7;
constexpr int kColumns = 27, kRows = 28;
// Pairs have those in slots of the frame, and what both blocks need of a plane in these.
constexpr int kStepX = 28, kStepY = 29;
// AVX2 has two quarters of each in the frame, behind what prepare() saves there.
constexpr int kPositions = kSaved + 16 * 32;

const Reg64 kRun(Xbyak::Operand::RBX), kBlock(Xbyak::Operand::R12), kCoefficients(Xbyak::Operand::R13),
    kUniformWords(Xbyak::Operand::R14), kRowBytes(Xbyak::Operand::R15), kDepth(Xbyak::Operand::RSI),
    kColor(Xbyak::Operand::RDI), kSecondDepth(Xbyak::Operand::R10), kSecondColor(Xbyak::Operand::R11);

#define V3D_MEMBER(member) (kRun + offset_of(offsetof(BlockRun, member)))
#define V3D_OF_BLOCK(member, number) \
  (kBlock + offset_of(offsetof(Block, member) + static_cast<size_t>(number) * sizeof(Block)))

/// Columns and rows of lanes 0 to 7, and so on (kBlockX and kBlockY of gpu/pse).
constexpr std::array<uint32_t, kLanes> kColumnOf = {0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3},
                                       kRowOf = {0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3};

}  // namespace

BlockEmitter::BlockEmitter(const graph::Graph& graph, Width width, bool avoids_gathers, void* buffer,
                           size_t bytes)
    : GraphEmitter(graph, width,
                   width == Width::kAvx512        ? kUnitsOfAvx512
                   : width == Width::kAvx512Pairs ? kUnitsOfPairs
                                                  : kUnitsOfAvx2,
                   buffer, bytes) {
  avoids_gathers_ = avoids_gathers;
  for (const Node& node : graph.nodes()) {
    has_planes_ = has_planes_ || node.op == Op::kPlane;
    has_lookups_ = has_lookups_ || node.op == Op::kGather || node.op == Op::kTextureWord;
  }
  find_w();
}

void BlockEmitter::find_w() {
  const auto is_w = [&](const Node& node) {
    return node.op == Op::kFloatQuotient &&
           graph_.is_constant(node.operands[0], std::bit_cast<uint32_t>(1.0f)) &&
           graph_[node.operands[1]].op == Op::kPlane && graph_[node.operands[1]].immediate == graph::kPlaneR;
  };
  Id plane = graph::kNoNode;
  for (const Node& node : graph_.nodes())
    if (is_w(node)) plane = node.operands[1];
  if (plane == graph::kNoNode) return;
  for (const Node& node : graph_.nodes())
    for (int n = 0; n < graph::info(node.op).operands; ++n)
      if (node.operands[n] == plane && !is_w(node)) return;
  plane_of_w_ = plane;
}

void BlockEmitter::emit(const Node& node) {
  if (id_of(node) == plane_of_w_) return;
  if (plane_of_w_ != graph::kNoNode && node.op == Op::kFloatQuotient && node.operands[1] == plane_of_w_)
    return w(node);
  GraphEmitter::emit(node);
}

// ---- Around the blocks

void BlockEmitter::begin() {
  if (are_pairs_) {
    positions_ = num_slots_;
    num_slots_ += 3;
    mov(rax, ptr[rdi + offset_of(offsetof(BlockRun, blocks))]);
    add(rax, 2 * static_cast<int>(sizeof(Block)));
    cmp(rax, ptr[rdi + offset_of(offsetof(BlockRun, end))]);
    ja(one_left_, T_NEAR);
  }
  push(rbp);
  mov(rbp, rsp);
  for (const Reg64& r : {rbx, r12, r13, r14, r15}) push(r);
  sub(rsp, 0x7fffffff);
  frame_at_ = getSize() - 4;
  and_(rsp, -kLaneBytes);
  mov(kRun, rdi);
  mov(kBlock, ptr[V3D_MEMBER(blocks)]);
  mov(kCoefficients, ptr[V3D_MEMBER(coefficients)]);
  mov(kUniformWords, ptr[V3D_MEMBER(uniforms)]);
  mov(kRowBytes.cvt32(), dword[V3D_MEMBER(bytes_of_rows)]);
  set_lookups();
  cmp(kBlock, ptr[V3D_MEMBER(end)]);
  je(done_, T_NEAR);
  L(next_);
  set_places();
  if (has_planes_) set_position();
}

void BlockEmitter::end() {
  L(skip_);
  add(kBlock, (are_pairs_ ? 2 : 1) * static_cast<int>(sizeof(Block)));
  leave_on_faults();
  if (are_pairs_) {
    lea(rax, ptr[kBlock + 2 * static_cast<int>(sizeof(Block))]);
    cmp(rax, ptr[V3D_MEMBER(end)]);
    jbe(next_, T_NEAR);
    cmp(kBlock, ptr[V3D_MEMBER(end)]);
    je(done_);
    mov(rdi, kRun);
    leave();
    jmp(one_left_, T_NEAR);
  } else {
    cmp(kBlock, ptr[V3D_MEMBER(end)]);
    jne(next_, T_NEAR);
  }
  L(done_);
  leave();
  ret();
  prepare();
}

void BlockEmitter::leave() {
  mov(ptr[V3D_MEMBER(blocks)], kBlock);
  lea(rsp, ptr[rbp - 5 * 8]);
  for (const Reg64& r : {r15, r14, r13, r12, rbx}) pop(r);
  pop(rbp);
  vzeroupper();
}

/// Where the block lies in the planes of the tile.
void BlockEmitter::set_places() {
  mov(kDepth, ptr[V3D_MEMBER(depth)]);
  mov(kColor, ptr[V3D_MEMBER(color)]);
  if (are_pairs_) {
    mov(eax, dword[V3D_OF_BLOCK(place, 1)]);
    lea(kSecondDepth, ptr[kDepth + rax]);
    lea(kSecondColor, ptr[kColor + rax]);
  }
  mov(eax, dword[V3D_OF_BLOCK(place, 0)]);
  add(kDepth, rax);
  add(kColor, rax);
}

void BlockEmitter::set_lookups() {
  if (!has_lookups_) return;
  mov(kTextures, ptr[V3D_MEMBER(textures)]);
  mov(kMiddleOfMemory, ptr[V3D_MEMBER(middle_of_memory)]);
}

/// Each costs as much as many blocks: the job may have to stand still, or to end.
void BlockEmitter::leave_on_faults() {
  if (!has_lookups_) return;
  mov(rax, ptr[V3D_MEMBER(fault_cost)]);
  cmp(dword[rax], 0);
  jne(done_, T_NEAR);
}

/// The pixels from the anchor, as doubles: of lanes 0 to 3 and 8 to 11, and of the others, the columns are
/// the same, and of the first and the last eight the rows.
void BlockEmitter::set_position() {
  if (are_pairs_) return set_positions();
  const auto set = [&](size_t coordinate, size_t anchor, Xbyak::Label& offsets, int vectors, int to) {
    const Xmm s(scratch(0).getIdx());
    vxorps(s, s, s);
    vcvtsi2sd(s, s, dword[kBlock + offset_of(coordinate)]);
    vsubsd(s, s, ptr[kRun + offset_of(anchor)]);
    if (wide_) {
      vbroadcastsd(Zmm(s.getIdx()), s);
      for (int n = 0; n < vectors; ++n) vaddpd(Zmm(to + n), Zmm(s.getIdx()), ptr[rip + offsets + 64 * n]);
      return;
    }
    vbroadcastsd(Ymm(s.getIdx()), s);
    for (int n = 0; n < 2; ++n) {
      vaddpd(Ymm(scratch(1).getIdx()), Ymm(s.getIdx()), ptr[rip + offsets + 32 * n]);
      vmovapd(ptr[rsp + kPositions + 64 * (to - kColumns) + 32 * n], Ymm(scratch(1).getIdx()));
    }
  };
  set(offsetof(Block, x), offsetof(BlockRun, anchor_x), columns_, 1, kColumns);
  set(offsetof(Block, y), offsetof(BlockRun, anchor_y), rows_, 2, kRows);
}

/// Of a pair.
void BlockEmitter::set_positions() {
  const Xmm s(scratch(0).getIdx());
  const auto set = [&](int part, size_t coordinate, size_t anchor, Xbyak::Label& offsets, int vectors,
                       int to) {
    vxorps(s, s, s);
    vcvtsi2sd(s, s, dword[kBlock + offset_of(coordinate + static_cast<size_t>(part) * sizeof(Block))]);
    vsubsd(s, s, ptr[kRun + offset_of(anchor)]);
    vbroadcastsd(Zmm(s.getIdx()), s);
    for (int n = 0; n < vectors; ++n) {
      vaddpd(Zmm(scratch(1).getIdx()), Zmm(s.getIdx()), ptr[rip + offsets + 64 * n]);
      vmovapd(slot(to + n, part), Zmm(scratch(1).getIdx()));
    }
  };
  for (int p = 0; p < 2; ++p) {
    set(p, offsetof(Block, x), offsetof(BlockRun, anchor_x), columns_, 1, positions_);
    set(p, offsetof(Block, y), offsetof(BlockRun, anchor_y), rows_, 2, positions_ + 1);
  }
}

void BlockEmitter::own_data() {
  if (has_planes_) {
    const auto doubles_of = [&](Xbyak::Label& label, std::initializer_list<double> values) {
      align(kLaneBytes);
      L(label);
      for (const double v : values) dq(std::bit_cast<uint64_t>(v));
    };
    doubles_of(columns_, {0, 1, 0, 1, 2, 3, 2, 3});
    if (wide_)
      doubles_of(rows_, {0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3});
    else
      doubles_of(rows_, {0, 0, 1, 1, 2, 2, 3, 3});
  }
  if (uses_pixels_) {
    table(pixel_columns_, [](uint32_t lane) { return kColumnOf[lane]; });
    table(pixel_rows_, [](uint32_t lane) { return kRowOf[lane]; });
  }
  if (!are_pairs_) return;
  align(kLaneBytes);
  L(one_left_);
}

// ---- Sources

Xbyak::Address BlockEmitter::home_of(const Node& node, int /*part*/, bool spreads) {
  if (node.op == Op::kTextureWord) return texture_word(node, spreads);
  const Xbyak::RegExp at =
      node.op == Op::kVaryingC
          ? kCoefficients + offset_of(offsetof(BlockCoefficients, c) + node.immediate * sizeof(uint32_t))
          : kUniformWords + offset_of(node.immediate * sizeof(uint32_t));
  return spreads ? ptr_b[at] : ptr[at];
}

/// @param which  0 the value, 1 and 2 the steps
/// @param spreads  as what an instruction spreads
Xbyak::Address BlockEmitter::coefficient(const Node& node, int which, bool spreads) {
  const uint32_t n = node.immediate;
  Xbyak::RegExp at = kCoefficients;
  if (n >= graph::kFirstComponent) {
    const size_t array = which == 0   ? offsetof(BlockCoefficients, value)
                         : which == 1 ? offsetof(BlockCoefficients, step_x)
                                      : offsetof(BlockCoefficients, step_y);
    at = kCoefficients + offset_of(array + (n - graph::kFirstComponent) * sizeof(double));
  } else {
    const size_t plane = n == graph::kPlaneZ ? offsetof(BlockRun, z) : offsetof(BlockRun, r);
    at = kRun + offset_of(plane) + which * static_cast<int>(sizeof(double));
  }
  return spreads ? ptr_b[at] : ptr[at];
}

/// Of primitives without perspective it is known.
void BlockEmitter::w(const Node& node) {
  const Node& plane_of_w = graph_[plane_of_w_];
  const int to = result(node);
  locked_ |= 1u << to;
  const int temporary = new_temporary();
  Xbyak::Label is_flat, end;
  cmp(byte[V3D_MEMBER(has_flat_w)], 0);
  jne(is_flat, T_NEAR);
  plane(plane_of_w, to, temporary);
  vbroadcastss(scratch(0), ptr[rip + constants_[std::bit_cast<uint32_t>(1.0f)]]);
  for (int p = 0; p < parts_; ++p) vdivps(vector(to, p), scratch(0), vector(to, p));
  jmp(end, T_NEAR);
  L(is_flat);
  for (int p = 0; p < parts_; ++p) vbroadcastss(vector(to, p), dword[V3D_MEMBER(flat_w)]);
  L(end);
}

/// AVX2 wants one for planes, besides that of the result.
int BlockEmitter::new_temporary() { return wide_ ? -1 : new_unit(); }

void BlockEmitter::plane(const Node& node) {
  const int to = result(node);
  locked_ |= 1u << to;
  plane(node, to, new_temporary());
}

void BlockEmitter::plane(const Node& node, int to, int temporary) {
  if (are_pairs_) return planes_of_pair(node, to);
  wide_ ? plane_of_halves(node, to) : plane_of_quarters(node, to, temporary);
}

void BlockEmitter::plane_of_halves(const Node& node, int to) {
  const Zmm d(to), s(scratch(0).getIdx()), t(scratch(1).getIdx());
  const Xbyak::Address scale = ptr_b[V3D_MEMBER(scale)];
  vmulpd(s, Zmm(kColumns), coefficient(node, 1, true));
  vmulpd(t, Zmm(kRows), coefficient(node, 2, true));
  vmulpd(d, Zmm(kRows + 1), coefficient(node, 2, true));
  for (const Zmm& half : {t, d}) {
    vaddpd(half, s, half);
    vmulpd(half, half, scale);
    vaddpd(half, half, coefficient(node, 0, true));
  }
  vcvtpd2ps(Ymm(s.getIdx()), d);
  vcvtpd2ps(Ymm(t.getIdx()), t);
  vinsertf64x4(d, t, Ymm(s.getIdx()), 1);
}

void BlockEmitter::planes_of_pair(const Node& node, int to) {
  const Zmm x(kStepX), y(kStepY), s(scratch(0).getIdx()), t(scratch(1).getIdx());
  vbroadcastsd(x, coefficient(node, 1, false));
  vbroadcastsd(y, coefficient(node, 2, false));
  for (int p = 0; p < 2; ++p) {
    const Zmm d(vector(to, p).getIdx());
    vmulpd(s, x, slot(positions_, p));
    vmulpd(t, y, slot(positions_ + 1, p));
    vmulpd(d, y, slot(positions_ + 2, p));
    for (const Zmm& half : {t, d}) {
      vaddpd(half, s, half);
      vmulpd(half, half, ptr_b[V3D_MEMBER(scale)]);
      vaddpd(half, half, coefficient(node, 0, true));
    }
    vcvtpd2ps(Ymm(s.getIdx()), d);
    vcvtpd2ps(Ymm(t.getIdx()), t);
    vinsertf64x4(d, t, Ymm(s.getIdx()), 1);
  }
}

void BlockEmitter::plane_of_quarters(const Node& node, int to, int temporary) {
  const Ymm d(2 * to), e(2 * to + 1), a(2 * temporary), b(2 * temporary + 1), s(scratch(0).getIdx()),
      t(scratch(1).getIdx());
  const auto position = [&](int n) { return ptr[rsp + kPositions + 32 * n]; };
  vbroadcastsd(s, coefficient(node, 1, false));
  vmulpd(a, s, position(0));
  vmulpd(b, s, position(1));
  vbroadcastsd(s, coefficient(node, 2, false));
  vmulpd(t, s, position(2));
  vmulpd(s, s, position(3));
  vaddpd(d, a, t);
  vaddpd(e, b, t);
  vaddpd(a, a, s);
  vaddpd(b, b, s);
  vbroadcastsd(s, ptr[V3D_MEMBER(scale)]);
  vbroadcastsd(t, coefficient(node, 0, false));
  for (const Ymm& quarter : {d, e, a, b}) {
    vmulpd(quarter, quarter, s);
    vaddpd(quarter, quarter, t);
    vcvtpd2ps(Xmm(quarter.getIdx()), quarter);
  }
  vinsertf128(d, d, Xmm(e.getIdx()), 1);
  vinsertf128(e, a, Xmm(b.getIdx()), 1);
}

void BlockEmitter::pixel(const Node& node) {
  const int to = result(node);
  const bool is_row = node.immediate != 0;
  uses_pixels_ = true;
  for (int p = 0; p < parts_; ++p) {
    if (p == 0 || are_pairs_) {
      mov(eax, is_row ? dword[V3D_OF_BLOCK(y, p)] : dword[V3D_OF_BLOCK(x, p)]);
      add(eax, is_row ? dword[V3D_MEMBER(tile_y)] : dword[V3D_MEMBER(tile_x)]);
      vmovd(Xmm(scratch(0).getIdx()), eax);
      vpbroadcastd(scratch(0), Xmm(scratch(0).getIdx()));
    }
    const int offset = are_pairs_ ? 0 : 32 * p;
    vpaddd(vector(to, p), scratch(0), ptr[rip + (is_row ? pixel_rows_ : pixel_columns_) + offset]);
  }
}

// ---- The tile

/// @param number  of the block of a pair
Reg64 BlockEmitter::plane_of_tile(const Node& node, int number) {
  const Reg64 color = number == 0 ? kColor : kSecondColor;
  if (node.immediate == graph::kTileDepth) return number == 0 ? kDepth : kSecondDepth;
  if (node.immediate == graph::kTileColor) return color;
  mov(eax, dword[V3D_MEMBER(bytes_of_planes)]);
  add(rax, color);
  return rax;
}

void BlockEmitter::load_tile(const Node& node) {
  const int to = result(node);
  for (int p = 0; wide_ && p < parts_; ++p) {
    const int d = vector(to, p).getIdx();
    const Reg64 plane = plane_of_tile(node, p);
    vmovups(Ymm(d), ptr[plane]);
    vinserti64x4(Zmm(d), Zmm(d), ptr[plane + kRowBytes], 1);
  }
  if (wide_) return;
  const Reg64 plane = plane_of_tile(node, 0);
  vmovups(vector(to, 0), ptr[plane]);
  vmovups(vector(to, 1), ptr[plane + kRowBytes]);
}

void BlockEmitter::store_tile(const Node& node) {
  const int from = in_register(node.operands[0]);
  for (int p = 0; wide_ && p < parts_; ++p) {
    const int v = vector(from, p).getIdx();
    const Reg64 plane = plane_of_tile(node, p);
    vmovups(ptr[plane], Ymm(v));
    vextracti64x4(ptr[plane + kRowBytes], Zmm(v), 1);
  }
  if (!wide_) {
    const Reg64 plane = plane_of_tile(node, 0);
    vmovups(ptr[plane], vector(from, 0));
    vmovups(ptr[plane + kRowBytes], vector(from, 1));
  }
  consume(node);
}

void BlockEmitter::pixels_to(const Xbyak::Reg32& to, graph::Id mask) {
  if (graph_[mask].op != Op::kCovered) return mask_to(to, mask);
  movzx(to, word[V3D_OF_BLOCK(pixels, 0)]);
  if (!are_pairs_) return;
  movzx(eax, word[V3D_OF_BLOCK(pixels, 1)]);
  shl(eax, kLanes);
  or_(to, eax);
}

/// Of a block without such pixels nothing more is done.
void BlockEmitter::shade(const Node& node) {
  pixels_to(edx, node.operands[0]);
  consume(node);
  test(edx, edx);
  jz(skip_, T_NEAR);
  if (are_pairs_) {
    test(dx, dx);
    setne(al);
    movzx(eax, al);
    cmp(edx, kAllLanes + 1);  // carry: none in the second one
    sbb(rax, -1);
    add(qword[V3D_MEMBER(shaded)], rax);
  } else {
    inc(qword[V3D_MEMBER(shaded)]);
  }
  cmp(byte[V3D_MEMBER(is_prepared)], 0);
  je(prepare_, T_NEAR);
  L(prepared_);
}

void BlockEmitter::passed(const Node& node) {
  pixels_to(edx, node.operands[0]);
  consume(node);
  popcnt(edx, edx);
  add(qword[V3D_MEMBER(passed)], rdx);
}

/// Leaves all vector registers as they are.
void BlockEmitter::prepare() {
  L(prepare_);
  save_vectors(0);
  mov(rdi, kRun);
  vzeroupper();
  call(ptr[V3D_MEMBER(prepare)]);
  restore_vectors(0);
  set_places();
  set_lookups();
  jmp(prepared_, T_NEAR);
}

void BlockEmitter::emit_own(const Node& node) {
  switch (node.op) {
    case Op::kPlane:
      return plane(node);
    case Op::kPixel:
      return pixel(node);
    case Op::kCovered:
      return mask_from(node, word[V3D_OF_BLOCK(pixels, 0)], word[V3D_OF_BLOCK(pixels, 1)]);
    case Op::kBackFacing:
      return mask_from(node, word[V3D_MEMBER(back_facing)]);
    case Op::kLoadTile:
      return load_tile(node);
    case Op::kStoreTile:
      return store_tile(node);
    case Op::kShade:
      return shade(node);
    case Op::kPassed:
      return passed(node);
    default:  // sources, which are loaded where they are needed
      return;
  }
}

}  // namespace v3d::qpu::jit
