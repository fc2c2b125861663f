/// Quads of one draw that wait until four of them make a batch.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "gpu/base/lanes.h"
#include "gpu/base/quads.h"
#include "gpu/pse/coverage.h"

namespace v3d::pse {

inline constexpr int kQuads = 4;  ///< of a batch

/// Pixel (x, y) in one word; both are below 2^16 and, of quads, even.
inline uint32_t quad_position(uint32_t x, uint32_t y) { return x | y << 16; }

/// Four bits of samples for each pixel of a quad, the first pixel lowest, from one bit for each pixel.
/// @param samples  of each pixel that is covered
inline uint32_t quad_coverage(uint32_t pixels, uint32_t samples) {
  return ((pixels & 1) | (pixels & 2) << 3 | (pixels & 4) << 6 | (pixels & 8) << 9) * samples;
}
/// The same for the quads of a batch, in every lane of them.
inline Lanes pack_coverage(Lanes samples) {
  Lanes packed = samples << ((kLaneIndex & 3u) * 4u);
  packed |= of_row(packed);
  return packed | of_column(packed);
}

/// The lanes where both are the same.
inline LaneMask equal_lanes(const Lanes& a, const Lanes& b) {
#ifdef __AVX512F__
  typedef int Native __attribute__((vector_size(64)));
  return __builtin_ia32_pcmpeqd512_mask(reinterpret_cast<Native>(a), reinterpret_cast<Native>(b), kAllLanes);
#else
  return negative(equal(a, b));
#endif
}

/// Up to four quads at different positions. What lacks repeats the last one, without coverage. Members are
/// read and written as wholes: a load behind narrower stores would have to wait for them.
class WaitingQuads {
 public:
  bool empty() const { return count_ == 0; }
  bool full() const { return count_ == kQuads; }
  int count() const { return count_; }
  void clear() {
    count_ = 0;
    back_facing_ = 0;
    setups_ = 0;
  }

  bool holds(uint32_t position) const { return !empty() && equal_lanes(positions_, splat(position)) != 0; }
  /// A quad of the 4x4 pixels at a position.
  bool holds_any_of(uint32_t block) const {
    return !empty() && equal_lanes(positions_ & ~0x00030003u, splat(block)) != 0;
  }

  /// @param setup     below 32
  /// @param coverage  of quad_coverage()
  void push(uint32_t setup, bool back_facing, uint32_t position, uint32_t coverage) {
    const auto index = static_cast<uint32_t>(count_);
    const auto put = [&](uint32_t value, const Lanes& there) {
      return by_parts<Lanes>(
          [&](auto lane, auto old) { return lane >= 4 * index ? decltype(old){} + value : old; }, kLaneIndex,
          there);
    };
    positions_ = put(position, positions_);
    coverage_ = put(coverage, coverage_);
    setup_ = (setup_ & ((1u << (8 * index)) - 1)) | (setup * 0x01010101u) << (8 * index);
    setups_ |= 1u << setup;
    if (back_facing) back_facing_ |= static_cast<LaneMask>(15u << (4 * index));
    ++count_;
  }

  Lanes x() const { return (positions_ & 0xffffu) + (kLaneIndex & 1u); }
  Lanes y() const { return (positions_ >> 16) + ((kLaneIndex >> 1) & 1u); }
  Lanes coverage() const {
    const Lanes samples = (coverage_ >> ((kLaneIndex & 3u) * 4u)) & 15u;
    const auto lanes = static_cast<uint32_t>(4 * count_);
    return by_parts<Lanes>([&](auto lane, auto v) { return lane < lanes ? v : decltype(v){}; }, kLaneIndex,
                           samples);
  }
  LaneMask back_facing() const { return back_facing_; }
  std::array<uint8_t, kQuads> setup() const { return std::bit_cast<std::array<uint8_t, kQuads>>(setup_); }
  /// Bit i: some quad has set-up i.
  uint32_t setups() const { return setups_; }

 private:
  int count_ = 0;
  LaneMask back_facing_ = 0;
  uint32_t setups_ = 0;
  uint32_t setup_ = 0;                    // a byte of each quad
  Lanes positions_ = {}, coverage_ = {};  // of their quad in all of its lanes
};

}  // namespace v3d::pse
