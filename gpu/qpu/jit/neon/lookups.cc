/// @file Code of texture lookups: words of levels, gathers, and what is done only where a lane wants it.

#include <cstddef>
#include <cstdint>

#include "gpu/base/lanes.h"
#include "gpu/qpu/jit/neon/emitter.h"
#include "gpu/qpu/jit/neon/frame.h"
#include "gpu/tmu/lookup/lookup_kind.h"

namespace v3d::qpu::jit::neon {
namespace {

using namespace vixl::aarch64;  // NOLINT(google-build-using-namespace): registers have their names

constexpr int kLanesOfPart = 4;
/// From the number of a word of a table to its four bytes.
constexpr uint32_t kToBytes = 0x04040404, kBytes = 0x03020100;

}  // namespace

Emitter::Memory Emitter::texture_word(const Node& node) {
  const uint32_t texture = node.immediate / tmu::kTextureWords, n = node.immediate % tmu::kTextureWords;
  return {kTextures,
          static_cast<int64_t>(texture * sizeof(tmu::TextureData) + n * sizeof(tmu::TextureData::words[0]))};
}

/// Of each lane's level, of which the lowest four bits count: four bytes of a table of all levels.
void Emitter::level_word(const Node& node) {
  const uint32_t texture = node.immediate / tmu::kLevelWords, n = node.immediate % tmu::kLevelWords;
  const int index = in_register(node.operands[0]), levels = new_unit();
  locked_ |= 1u << levels;
  const int to = result(node, true);
  move(Way::kLoad, levels,
       {kTextures, static_cast<int64_t>(texture * sizeof(tmu::TextureData) +
                                        offsetof(tmu::TextureData, levels) + n * sizeof(Lanes))});
  spread(scratch(0), kLanes - 1);
  spread(scratch(1), kToBytes);
  spread(scratch(2), kBytes);
  const auto bytes = [&](int p) { return part(levels, p).V16B(); };
  for (int p = 0; p < kParts; ++p) {
    const Vector d = part(to, p);
    bytes_of_lanes(d, part(index, p));
    masm_.Tbl(d.V16B(), bytes(0), bytes(1), bytes(2), bytes(3), d.V16B());
  }
}

void Emitter::gather(const Node& node) {
  const auto [index, mask, none] = node.operands;
  const int from = in_register(index);
  if (!graph_.is_constant(mask)) lanes_of_gather(mask);
  const int to = result(node, true);
  if (graph_.is_constant(mask)) {
    if (!graph_.is_constant(mask, 0)) return gather_whole(from, to, node.immediate);
    for (int p = 0; p < kParts; ++p) masm_.Movi(part(to, p), 0);
    return;
  }
  PartialGather& partial = partial_gathers_.emplace_back();
  partial.from = from;
  partial.to = to;
  partial.offset = node.immediate;
  masm_.Ldr(x9, MemOperand(sp, kGathered));
  masm_.Cmn(x9, 1);
  masm_.B(&partial.entry, ne);
  gather_whole(from, to, node.immediate);
  masm_.Bind(&partial.back);
}

/// To the frame.
void Emitter::lanes_of_gather(Id mask) {
  if (gathered_ == mask) return;
  gathered_ = mask;
  bits_of_lanes(mask, places_[mask]);
  masm_.Str(x9, MemOperand(sp, kGathered));
}

/// To x9: four bits for each lane of the mask.
void Emitter::bits_of_lanes(Id mask, const Place& place) {
  const Vector lanes = scratch(0);
  bytes_of(lanes, scratch(1), mask, place);
  masm_.Shrn(lanes.V8B(), lanes.V8H(), 4);
  masm_.Fmov(x9, lanes.D());
}

/// What indices count from. Changes x12.
Register Emitter::base_of_gather(uint32_t offset) {
  if (offset == 0) return kMiddleOfMemory;
  masm_.Add(x12, kMiddleOfMemory, offset);
  return x12;
}

/// Two lanes at a time.
void Emitter::gather_whole(int from, int to, uint32_t offset) {
  const Register base = base_of_gather(offset);
  for (int p = 0; p < kParts; ++p)
    for (int half = 0; half < 2; ++half) {
      masm_.Umov(x10, part(from, p).V2D(), half);
      masm_.Ldr(w11, MemOperand(base, w10, SXTW));
      masm_.Asr(x10, x10, 32);
      masm_.Ldr(w10, MemOperand(base, x10));
      masm_.Bfi(x11, x10, 32, 32);
      masm_.Ins(part(to, p).V2D(), half, x11);
    }
}

/// Where there may be no memory for the others.
void Emitter::gather_lanes(PartialGather& partial) {
  constexpr int kBits = 4;
  masm_.Bind(&partial.entry);
  const Register base = base_of_gather(partial.offset);
  for (int p = 0; p < kParts; ++p) {
    masm_.Movi(part(partial.to, p), 0);
    for (int lane = 0; lane < kLanesOfPart; ++lane) {
      Label next;
      masm_.Tbz(x9, kBits * (kLanesOfPart * p + lane), &next);
      masm_.Umov(w10, part(partial.from, p), lane);
      masm_.Ldr(w10, MemOperand(base, w10, SXTW));
      masm_.Ins(part(partial.to, p), lane, w10);
      masm_.Bind(&next);
    }
  }
  masm_.B(&partial.back);
}

void Emitter::partial_gathers() {
  for (PartialGather& partial : partial_gathers_) gather_lanes(partial);
}

// ---- Lane after lane

int Emitter::unit_of_lanes(Id mask) { return graph_.is_constant(mask, ~0u) ? kAll : in_register(mask); }

/// To w10: from the middle of memory.
void Emitter::lane_address(int address, int p, int lane, uint32_t offset) {
  masm_.Umov(w10, part(address, p), lane);
  if (offset != 0) masm_.Add(w10, w10, offset);
}

/// Calls fn(part, lane) for code of each lane that takes part. Changes x9.
template <typename Fn>
void Emitter::for_each_lane(int lanes, Fn fn) {
  constexpr int kBits = 4;
  if (lanes != kAll) bits_of_lanes(graph::kNoNode, {.unit = static_cast<int16_t>(lanes)});
  for (int p = 0; p < kParts; ++p)
    for (int lane = 0; lane < kLanesOfPart; ++lane) {
      Label next;
      if (lanes != kAll) masm_.Tbz(x9, kBits * (kLanesOfPart * p + lane), &next);
      fn(p, lane);
      masm_.Bind(&next);
    }
}

/// @param to  other lanes of it stay; may be `from`, if all take part
void Emitter::gather_lanes_of(int lanes, int from, int to, uint32_t offset) {
  for_each_lane(lanes, [&](int p, int lane) {
    lane_address(from, p, lane, offset);
    masm_.Ldr(w10, MemOperand(kMiddleOfMemory, w10, SXTW));
    masm_.Ins(part(to, p), lane, w10);
  });
}

/// In the order of lanes, where addresses are equal.
void Emitter::scatter_words(const Node& node, int address, int data, int lanes) {
  for_each_lane(lanes, [&](int p, int lane) {
    lane_address(address, p, lane, node.immediate);
    masm_.Umov(w11, part(data, p), lane);
    masm_.Str(w11, MemOperand(kMiddleOfMemory, w10, SXTW));
  });
}

/// Bytes of a table of all lanes, by their numbers.
void Emitter::bytes_of_lanes(const Vector& d, const Vector& lanes) {
  masm_.And(d.V16B(), lanes.V16B(), scratch(0).V16B());
  masm_.Mul(d, d, scratch(1));
  masm_.Add(d, d, scratch(2));
}

void Emitter::pick_lanes(const Node& node) {
  const int from = in_register(node.operands[0]), numbers = in_register(node.operands[1]);
  const int to = result(node, true);
  spread(scratch(0), kLanes - 1);
  spread(scratch(1), kToBytes);
  spread(scratch(2), kBytes);
  const auto bytes = [&](int p) { return part(from, p).V16B(); };
  for (int p = 0; p < kParts; ++p) {
    const Vector d = part(to, p);
    bytes_of_lanes(d, part(numbers, p));
    masm_.Tbl(d.V16B(), bytes(0), bytes(1), bytes(2), bytes(3), d.V16B());
  }
}

void Emitter::least_of_lanes(const Node& node) {
  const int from = in_register(node.operands[0]), to = result(node);
  const Vector least = scratch(0), other = scratch(1);
  masm_.Umin(least, part(from, 0), part(from, 1));
  masm_.Umin(other, part(from, 2), part(from, 3));
  masm_.Umin(least, least, other);
  masm_.Uminv(least.S(), least);
  for (int p = 0; p < kParts; ++p) masm_.Dup(part(to, p), least, 0);
}

// ---- What is done only where a lane wants it

void Emitter::keep(const Node& node) {
  save(in_register(node.operands[0]), slot_of_kept(node));
  consume(node);
}

/// To w9: 0 if the mask holds in no lane.
void Emitter::any_of(Id mask) {
  const Vector lanes = scratch(0);
  bytes_of(lanes, scratch(1), mask, places_[mask]);
  masm_.Umaxv(lanes.B(), lanes.V16B());
  masm_.Fmov(w9, lanes.S());
}

void Emitter::when(const Node& node) {
  any_of(node.operands[0]);
  consume(node);
  masm_.Cbz(w9, &resumed_.emplace_back());
  begin_region();
  if (is_repeated(node)) gathered_ = graph::kNoNode;
  gathered_before_region_ = gathered_;
  masm_.Bind(&repeated_.emplace_back());
}

void Emitter::again(const Node& node) {
  any_of(node.operands[0]);
  consume(node);
  repeat_region();
  masm_.Cbnz(w9, &repeated_.back());
}

void Emitter::resume(const Node&) {
  end_region();
  if (gathered_ != gathered_before_region_) gathered_ = graph::kNoNode;
  masm_.Bind(&resumed_.back());
}

}  // namespace v3d::qpu::jit::neon
