#include "gpu/qpu/jit/neon/block_emitter.h"

#include <bit>
#include <cstddef>
#include <cstdint>

#include "gpu/base/lanes.h"
#include "gpu/qpu/graph/program_front_end.h"
#include "gpu/qpu/jit/neon/frame.h"
#include "gpu/qpu/run/block_code.h"

namespace v3d::qpu::jit::neon {
namespace {

using namespace vixl::aarch64;  // NOLINT(google-build-using-namespace): registers have their names
using graph::Op;

// Calls keep these.
const Register kRun = x19, kBlock = x20, kCoefficients = x23, kUniformWords = x24, kDepth = x26, kColor = x27,
               kCount = x28;
/// Of the tile: its depth, and two words of colours.
constexpr uint32_t kPlanesOfTile = graph::kTileColor + 2;

/// The columns of a block's pixels from the anchor, two and two, and each of its rows twice, as doubles, in
/// the frame: no operation here is called with operands.
constexpr int kColumnPairs = 2, kRowPairs = 4;
constexpr int64_t kColumnsAt = kOperands, kRowsAt = kColumnsAt + kColumnPairs * kPartBytes;
static_assert(kRowsAt + kRowPairs * kPartBytes <= kGathered);

MemOperand of_run(size_t offset) { return MemOperand(kRun, static_cast<int64_t>(offset)); }
MemOperand of_block(size_t offset) { return MemOperand(kBlock, static_cast<int64_t>(offset)); }

}  // namespace

BlockEmitter::BlockEmitter(const graph::Graph& graph) : Emitter(graph) {
  for (const Node& node : graph.nodes()) {
    has_planes_ = has_planes_ || node.op == Op::kPlane;
    has_lookups_ = has_lookups_ || node.op == Op::kGather || node.op == Op::kTextureWord;
  }
}

bool BlockEmitter::has_code(const Node& node) {
  const bool is_of_tile = node.op == Op::kLoadTile || node.op == Op::kStoreTile;
  if (is_of_tile && node.immediate >= kPlanesOfTile) return false;
  return lane_operation(node.op) || other_operation(node.op) || own_operation(node.op);
}

BlockEmitter::EmitOwn BlockEmitter::own_operation(Op op) {
  switch (op) {
    case Op::kPlane:
      return &BlockEmitter::plane;
    case Op::kPixel:
      return &BlockEmitter::pixel;
    case Op::kCovered:
      return &BlockEmitter::covered;
    case Op::kBackFacing:
      return &BlockEmitter::back_facing;
    case Op::kLoadTile:
      return &BlockEmitter::load_tile;
    case Op::kStoreTile:
      return &BlockEmitter::store_tile;
    case Op::kShade:
      return &BlockEmitter::shade;
    case Op::kPassed:
      return &BlockEmitter::passed;
    default:
      return nullptr;
  }
}

// ---- Around the blocks

void BlockEmitter::begin(Label& body) {
  save_registers();
  masm_.Mov(kRun, x0);
  const auto load = [&](const Register& to, size_t offset) { masm_.Ldr(to, of_run(offset)); };
  load(kBlock, offsetof(BlockRun, blocks));
  load(kCoefficients, offsetof(BlockRun, coefficients));
  load(kUniformWords, offsetof(BlockRun, uniforms));
  if (has_lookups_) {
    load(kTextures, offsetof(BlockRun, textures));
    load(kMiddleOfMemory, offsetof(BlockRun, middle_of_memory));
  }
  load(x9, offsetof(BlockRun, end));
  masm_.Cmp(kBlock, x9);
  masm_.B(&done_, eq);
  masm_.B(&body);
}

/// Where the block lies in the planes of the tile, and from the anchor.
void BlockEmitter::before_nodes() {
  masm_.Bind(&next_);
  masm_.Ldr(w9, of_block(offsetof(Block, place)));
  masm_.Ldr(kDepth, of_run(offsetof(BlockRun, depth)));
  masm_.Ldr(kColor, of_run(offsetof(BlockRun, color)));
  masm_.Add(kDepth, kDepth, x9);
  masm_.Add(kColor, kColor, x9);
  if (has_planes_) set_position();
}

void BlockEmitter::end() {
  masm_.Bind(&skip_);
  masm_.Add(kBlock, kBlock, sizeof(Block));
  leave_on_faults();
  masm_.Ldr(x9, of_run(offsetof(BlockRun, end)));
  masm_.Cmp(kBlock, x9);
  masm_.B(&next_, ne);
  masm_.Bind(&done_);
  masm_.Str(kBlock, of_run(offsetof(BlockRun, blocks)));
  restore_registers();
  masm_.Ret();
  unsure_results();
  if (has_shade_) prepare();
  partial_gathers();
}

void BlockEmitter::set_position() {
  set_position(offsetof(Block, x), offsetof(BlockRun, anchor_x), kColumnsAt, 0, kColumnPairs, 1);
  set_position(offsetof(Block, y), offsetof(BlockRun, anchor_y), kRowsAt, 0, kRowPairs, 0);
}

/// @param step  from the first of a pair to the second; the next pair comes behind them
void BlockEmitter::set_position(size_t coordinate, size_t anchor, int64_t to, int first, int count,
                                double step) {
  const Vector from = scratch(0).V2D(), pair = scratch(1).V2D();
  masm_.Ldr(w9, of_block(coordinate));
  masm_.Scvtf(from.D(), w9);
  masm_.Ldr(pair.D(), of_run(anchor));
  masm_.Fsub(from.D(), from.D(), pair.D());
  masm_.Dup(from, from, 0);
  for (int n = 0; n < count; ++n) {
    const double low = first + n * (1 + step);
    masm_.Ldr(pair.Q(),
              operand_of(in_pool(pooled(std::bit_cast<uint64_t>(low), std::bit_cast<uint64_t>(low + step)))));
    masm_.Fadd(pair, pair, from);
    masm_.Str(pair.Q(), MemOperand(sp, to + n * kPartBytes));
  }
}

// ---- Sources

Emitter::Memory BlockEmitter::home_of(const Node& node) {
  const auto offset = static_cast<int64_t>(node.immediate * sizeof(uint32_t));
  if (node.op == Op::kUniformWord) return {kUniformWords, offset};
  if (node.op == Op::kTextureWord) return texture_word(node);
  return {kCoefficients, static_cast<int64_t>(offsetof(BlockCoefficients, c)) + offset};
}

/// @param which  0 the value, 1 and 2 the steps
Emitter::Memory BlockEmitter::coefficient(const Node& node, int which) {
  const uint32_t n = node.immediate;
  if (n < graph::kFirstComponent) {
    const size_t plane = n == graph::kPlaneZ ? offsetof(BlockRun, z) : offsetof(BlockRun, r);
    return {kRun, static_cast<int64_t>(plane + static_cast<size_t>(which) * sizeof(double))};
  }
  const size_t array = which == 0   ? offsetof(BlockCoefficients, value)
                       : which == 1 ? offsetof(BlockCoefficients, step_x)
                                    : offsetof(BlockCoefficients, step_y);
  return {kCoefficients, static_cast<int64_t>(array + (n - graph::kFirstComponent) * sizeof(double))};
}

/// Two rows after the other, of whose pixels two and two have the same row and the columns of others.
void BlockEmitter::plane(const Node& node) {
  const int to = result(node);
  locked_ |= 1u << to;
  const int temporary = new_unit();
  const auto doubles = [](const Vector& v) { return v.V2D(); };
  const Vector factor = doubles(scratch(0)), value = doubles(zero()), a = doubles(part(temporary, 0)),
               b = doubles(part(temporary, 1));
  const Vector sums[] = {doubles(part(temporary, 2)), doubles(part(temporary, 3)), doubles(scratch(1)),
                         doubles(scratch(2))};
  const auto load = [&](const Vector& v, const Memory& from) { masm_.Ldr(v.D(), operand_of(from)); };
  const auto multiply = [&](const Vector& v) { masm_.Fmul(v, v, factor.D(), 0); };
  load(factor, coefficient(node, 1));
  move(Way::kLoad, a, b, {sp, kColumnsAt});
  multiply(a);
  multiply(b);
  load(factor, coefficient(node, 2));
  move(Way::kLoad, to, {sp, kRowsAt});
  for (int p = 0; p < kParts; ++p) multiply(doubles(part(to, p)));
  load(factor, {kRun, offsetof(BlockRun, scale)});
  load(value, coefficient(node, 0));
  masm_.Dup(value, value, 0);
  for (int p = 0; p < kParts; p += 2) {
    const Vector upper = doubles(part(to, p)), lower = doubles(part(to, p + 1));
    masm_.Fadd(sums[0], a, upper);
    masm_.Fadd(sums[1], a, lower);
    masm_.Fadd(sums[2], b, upper);
    masm_.Fadd(sums[3], b, lower);
    for (const Vector& sum : sums) multiply(sum);
    for (const Vector& sum : sums) masm_.Fadd(sum, sum, value);
    for (int half = 0; half < 2; ++half) {
      masm_.Fcvtn(part(to, p + half).V2S(), sums[2 * half]);
      masm_.Fcvtn2(part(to, p + half), sums[2 * half + 1]);
    }
  }
  if (gives_other_nans(node)) check_nans(node, to, {}, {});
}

void BlockEmitter::pixel(const Node& node) {
  const bool is_row = node.immediate != 0;
  masm_.Ldr(w9, of_block(is_row ? offsetof(Block, y) : offsetof(Block, x)));
  masm_.Ldr(w10, of_run(is_row ? offsetof(BlockRun, tile_y) : offsetof(BlockRun, tile_x)));
  masm_.Add(w9, w9, w10);
  masm_.Dup(scratch(0), w9);
  const int64_t at = is_row ? rows_of_block(rows_) : columns_of_block(columns_);
  const int to = result(node);
  move(Way::kLoad, to, in_pool(at));
  for (int p = 0; p < kParts; ++p) masm_.Add(part(to, p), part(to, p), scratch(0));
}

void BlockEmitter::covered(const Node& node) { mask_from(node, of_block(offsetof(Block, pixels))); }
void BlockEmitter::back_facing(const Node& node) { mask_from(node, of_run(offsetof(BlockRun, back_facing))); }

// ---- The tile

/// May be x9.
Register BlockEmitter::plane_of_tile(const Node& node) {
  if (node.immediate <= graph::kTileColor) return node.immediate == graph::kTileDepth ? kDepth : kColor;
  masm_.Ldr(w9, of_run(offsetof(BlockRun, bytes_of_planes)));
  masm_.Add(x9, kColor, x9);
  return x9;
}

/// x9: of that plane, the quads below the first ones.
void BlockEmitter::next_row(const Register& plane) {
  masm_.Ldr(w10, of_run(offsetof(BlockRun, bytes_of_rows)));
  masm_.Add(x9, plane, x10);
}

void BlockEmitter::load_tile(const Node& node) {
  const int to = result(node);
  const Register plane = plane_of_tile(node);
  move(Way::kLoad, part(to, 0), part(to, 1), {plane, 0});
  next_row(plane);
  move(Way::kLoad, part(to, 2), part(to, 3), {x9, 0});
}

void BlockEmitter::store_tile(const Node& node) {
  const Operand from = operand(node.operands[0], 0);
  const Register plane = plane_of_tile(node);
  move(Way::kStore, at(from, 0), at(from, 1), {plane, 0});
  next_row(plane);
  move(Way::kStore, at(from, 2), at(from, 3), {x9, 0});
  consume(node);
}

/// The lanes of a mask that are set.
void BlockEmitter::count(Id mask) {
  const Vector pixels = scratch(0);
  bytes_of(pixels, scratch(1), mask, places_[mask]);
  masm_.Neg(pixels.V16B(), pixels.V16B());
  masm_.Addv(pixels.B(), pixels.V16B());
  masm_.Fmov(kCount.W(), pixels.S());
  counted_ = mask;
}

/// Of a block without such pixels nothing more is done.
void BlockEmitter::shade(const Node& node) {
  count(node.operands[0]);
  consume(node);
  masm_.Cbz(kCount, &skip_);
  masm_.Ldr(x10, of_run(offsetof(BlockRun, shaded)));
  masm_.Add(x10, x10, 1);
  masm_.Str(x10, of_run(offsetof(BlockRun, shaded)));
  masm_.Ldrb(w9, of_run(offsetof(BlockRun, is_prepared)));
  masm_.Cbz(w9, &prepare_);
  masm_.Bind(&prepared_);
  has_shade_ = true;
}

void BlockEmitter::passed(const Node& node) {
  if (node.operands[0] != counted_) count(node.operands[0]);
  consume(node);
  masm_.Ldr(x10, of_run(offsetof(BlockRun, passed)));
  masm_.Add(x10, x10, kCount);
  masm_.Str(x10, of_run(offsetof(BlockRun, passed)));
}

/// Leaves all vector registers as they are.
void BlockEmitter::prepare() {
  masm_.Bind(&prepare_);
  move_all(Way::kStore);
  masm_.Mov(x0, kRun);
  masm_.Ldr(x16, of_run(offsetof(BlockRun, prepare)));
  masm_.Blr(x16);
  move_all(Way::kLoad);
  masm_.B(&prepared_);
}

/// Each costs as much as many blocks: the job may have to stand still, or to end.
void BlockEmitter::leave_on_faults() {
  if (!has_lookups_) return;
  masm_.Ldr(x9, of_run(offsetof(BlockRun, fault_cost)));
  masm_.Ldr(w9, MemOperand(x9));
  masm_.Cbnz(w9, &done_);
}

}  // namespace v3d::qpu::jit::neon
