/// WaitingQuads are quads of one draw that wait until four of them make a batch. A word of 64 bits holds 16
/// of each quad, so that all of a block take part in one step.
#pragma once

#ifdef __BMI2__
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "gpu/base/lanes.h"
#include "gpu/base/quads.h"
#include "gpu/pse/coverage.h"

namespace v3d::pse {

inline constexpr int kQuads = 4;  ///< of a batch

/// The same 16 bits of each of four quads, the first one lowest.
using FourQuads = uint64_t;
/// 1 of each.
inline constexpr FourQuads kEach = 0x0001'0001'0001'0001;

/// Column and row of the quad at pixel (x, y) of its tile, a byte each.
constexpr uint32_t quad_position(uint32_t x, uint32_t y) { return x >> 1 | y >> 1 << 8; }

/// All four quads of the 4x4 pixels at a position.
inline FourQuads positions_in_block(uint32_t block) { return kEach * block + 0x0101'0100'0001'0000u; }
/// A bit for the 4x4 pixels around a position: their own in 32x32 pixels.
constexpr uint64_t block_bit(uint32_t position) {
  return uint64_t{1} << ((position >> 1 & 7) | (position >> 6 & 0x38));
}

/// Four bits of samples for each pixel of a block, in the order of kBlockX and kBlockY, from one bit for each
/// pixel. @param samples  of each pixel that is covered
inline FourQuads block_coverage(LaneMask pixels, uint32_t samples) {
#ifdef __BMI2__
  return _pdep_u64(pixels, 0x1111'1111'1111'1111u) * samples;
#else
  FourQuads coverage = 0;
  for (int lane = 0; lane < kLanes; ++lane) coverage |= FourQuads{(pixels >> lane) & 1u} << (4 * lane);
  return coverage * samples;
#endif
}
/// The same from the samples of each pixel.
inline FourQuads block_coverage(Lanes samples) {
  Lanes quad = samples << ((kLaneIndex & 3u) * 4u);
  quad |= of_row(quad);
  quad |= of_column(quad);
  return quad[0] | FourQuads{quad[4]} << 16 | FourQuads{quad[8]} << 32 | FourQuads{quad[12]} << 48;
}

/// Bit q: a lane of quad q is in the mask.
inline uint32_t quads_of(LaneMask lanes) {
  const uint32_t any = quads_with_any(lanes);
  return (any | any >> 3 | any >> 6 | any >> 9) & 15u;
}

/// The first bits of a word.
inline uint64_t first_bits(uint64_t of, uint32_t number) {
#ifdef __BMI2__
  return _bzhi_u64(of, number);
#else
  return number >= 64 ? of : of & ((uint64_t{1} << number) - 1);
#endif
}

/// Quads of one block, one after the other; 0 after them.
struct BlockQuads {
  FourQuads positions, coverage;
  uint32_t count;

  /// @param coverage  of block_coverage()
  /// @param quads     of these: a set
  static BlockQuads some(uint32_t block, FourQuads coverage, uint32_t quads) {
    return {compress(positions_in_block(block), quads), compress(coverage, quads),
            static_cast<uint32_t>(std::popcount(quads))};
  }
  /// Those after the first ones. @param first  1..3, of more
  BlockQuads behind(uint32_t first) const {
    return {positions >> (16 * first), coverage >> (16 * first), count - first};
  }

 private:
  static FourQuads compress(FourQuads of, uint32_t quads) {
#ifdef __BMI2__
    return _pext_u64(of, _pdep_u64(quads, kEach) * 0xffff);
#else
    FourQuads result = 0;
    for (int n = 0; quads != 0; ++n, quads &= quads - 1)
      result |= ((of >> (16 * std::countr_zero(quads))) & 0xffff) << (16 * n);
    return result;
#endif
  }
};

/// Up to four quads in their order. Those that lie at one position have no sample in common.
class WaitingQuads {
 public:
  bool empty() const { return count_ == 0; }
  bool full() const { return count_ == kQuads; }
  int count() const { return static_cast<int>(count_); }
  void clear() { *this = {}; }

  /// Whether a quad lies in the 4x4 pixels at a position, or in others with the same block_bit().
  bool may_be_in(uint32_t block) const { return (blocks_ & block_bit(block)) != 0; }
  /// Whether one has a sample of the quad at a position. @param coverage  of block_coverage(), 16 bits
  bool covers(uint32_t position, uint32_t coverage) const {
    return (coverage_ & equal(positions_, kEach * position) & kEach * coverage) != 0;
  }
  /// The same of all four quads of a block. @param coverage  of block_coverage()
  bool covers_block(uint32_t block, FourQuads coverage) const {
    const FourQuads quads = positions_in_block(block);
    FourQuads common = 0;
    for (int turn = 0; turn < 64; turn += 16)
      common |= equal(positions_, std::rotl(quads, turn)) & coverage_ & std::rotl(coverage, turn);
    return common != 0;
  }
  /// Whether some lie at one position.
  bool again() const {
    const FourQuads p = positions_, all = ~FourQuads{0};
    const FourQuads same =
        (equal(p, p << 16) & all << 16) | (equal(p, p << 32) & all << 32) | (equal(p, p << 48) & all << 48);
    return first_bits(same, 16 * count_) != 0;
  }

  /// @param setup     below 32
  /// @param coverage  of block_coverage(), 16 bits
  void push(uint32_t setup, bool back_facing, uint32_t position, uint32_t coverage) {
    push(setup, back_facing, BlockQuads{position, coverage, 1});
  }
  /// As many as there is room for, 1 or more. @return  how many are left
  uint32_t push(uint32_t setup, bool back_facing, const BlockQuads& quads) {
    const auto shift = static_cast<uint32_t>(16 * count_);
    positions_ |= quads.positions << shift;
    coverage_ |= quads.coverage << shift;
    setup_ = static_cast<uint32_t>(first_bits(setup_, shift / 2)) | setup * 0x01010101u << (shift / 2);
    setups_ |= 1u << setup;
    if (back_facing) back_facing_ |= static_cast<LaneMask>(((1u << (4 * quads.count)) - 1) << (shift / 4));
    blocks_ |= block_bit(static_cast<uint32_t>(quads.positions & 0xffff));
    const uint32_t sum = count_ + quads.count;
    count_ = std::min<uint32_t>(sum, kQuads);
    return sum - count_;
  }

  /// Those that lack repeat the last one.
  FourQuads positions() const {
    if (count_ == kQuads) [[likely]]
      return positions_;
    const FourQuads last = (positions_ >> (16 * (count_ - 1))) & 0xffff;
    return positions_ | (kEach * last) << (16 * count_);
  }
  /// Pixels of the tile at positions().
  static Lanes x(FourQuads positions) { return (quad_lanes(positions, 0) & 0xffu) * 2u + (kLaneIndex & 1u); }
  static Lanes y(FourQuads positions) {
    return (quad_lanes(positions, 8) & 0xffu) * 2u + ((kLaneIndex >> 1) & 1u);
  }
  Lanes coverage() const { return quad_lanes(coverage_, (kLaneIndex & 3u) * 4u) & 15u; }
  LaneMask back_facing() const { return back_facing_; }
  std::array<uint8_t, kQuads> setup() const { return std::bit_cast<std::array<uint8_t, kQuads>>(setup_); }
  /// Bit i: some quad has set-up i.
  uint32_t setups() const { return setups_; }

 private:
  /// All bits of each word that is equal in both, whose highest bits are 0.
  static FourQuads equal(FourQuads a, FourQuads b) {
    const FourQuads differ = (a ^ b) + kEach * 0x7fff;
    return (~differ >> 15 & kEach) * 0xffff;
  }
  /// The word of each lane's quad, shifted right.
  template <typename Shift>
  static Lanes quad_lanes(FourQuads words, Shift shift) {
    static constexpr Lanes kHalf = {0, 0, 0, 0, 16, 16, 16, 16, 0, 0, 0, 0, 16, 16, 16, 16};
    const auto low = static_cast<uint32_t>(words), high = static_cast<uint32_t>(words >> 32);
    const Lanes v = {low, low, low, low, low, low, low, low, high, high, high, high, high, high, high, high};
    return v >> (kHalf + shift);
  }

  // GCC would take two words that stand together from scalars to a vector, only to shift and store them.
  FourQuads positions_ = 0;  // 0 of those that lack
  uint64_t blocks_ = 0;
  FourQuads coverage_ = 0;  // 0 of those that lack
  uint32_t count_ = 0;
  uint32_t setup_ = 0;  // a byte of each quad; of those that lack, the last one's
  uint32_t setups_ = 0;
  LaneMask back_facing_ = 0;
};

}  // namespace v3d::pse
