/// These functions move the sixteen texels of an 8x2 block between lanes (four adjacent quads) and memory.
/// They are internal to the TLB.
#pragma once

#include <cstddef>
#include <cstring>

#include "gpu/base/halves.h"
#include "gpu/base/lanes.h"

namespace v3d::tlb {

/// Where the block's two rows lie, in pieces as wide as a utile: that many texels are adjacent in every
/// layout. A block has 1 piece of 1 or 2-byte texels, 2 of 4 or 8-byte ones, 4 of 16-byte ones.
struct BlockRows {
  uint8_t* piece[4];
  ptrdiff_t lower;  ///< bytes from the upper row of a piece to its lower row
};

typedef uint32_t Words4 __attribute__((vector_size(16)));

/// Puts lanes into memory that may have been put together of halves. GCC 12 moves such ones to where they are
/// assigned by pieces of 8 and 16 bytes; a half that is stored by itself stays in its register.
inline void store_lanes(const Lanes& v, void* to) {
#ifdef __AVX512F__
  std::memcpy(to, &v, sizeof(v));
#else
  store_halves(v, to, static_cast<char*>(to) + sizeof(HalfLanes));
#endif
}

/// Lane order to row order (eight texels of the upper row, eight of the lower one), and back.
inline Lanes quads_to_rows(Lanes v) {
  return shuffle<0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15>(v);
}
inline Lanes rows_to_quads(Lanes v) {
  return shuffle<0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15>(v);
}

/// Lane order to that of a tiled image's utiles of four-byte texels, where the two rows of a piece are
/// adjacent, and back: the same exchange.
inline Lanes quads_to_utiles(Lanes v) {
  return shuffle<0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15>(v);
}

/// Texels of four bytes in a tiled image: its two pieces.
inline void store_tiled_block_4(Lanes v, uint8_t* left, uint8_t* right) {
  store_halves(quads_to_utiles(v), left, right);
}
inline Lanes load_tiled_block_4(const uint8_t* left, const uint8_t* right) {
  return quads_to_utiles(load_halves(left, right));
}

// ---- What four bytes of a plane are in memory, for vectors of any width

struct SameTexels {
  template <typename V>
  V operator()(const V& v) const {
    return v;
  }
};
/// With red and blue exchanged.
struct SwappedTexels {
  template <typename V>
  V operator()(const V& v) const {
    return (v & 0xff00ff00u) | (v >> 16 & 0xffu) | (v & 0xffu) << 16;
  }
};
/// 24 bits of depth above a stencil, which is the same everywhere.
struct DepthTexels {
  uint32_t stencil;
  template <typename V>
  V operator()(const V& v) const {
    return v << 8 | stencil;
  }
};

/// The way back.
struct DepthOfTexels {
  template <typename V>
  V operator()(const V& v) const {
    return v >> 8;
  }
};
struct StencilOfTexels {
  template <typename V>
  V operator()(const V& v) const {
    return v & 0xffu;
  }
};

/// A utile of such texels, of which two quads stand at `upper` and the two below at `lower`. Hosts with
/// narrower vectors move its halves each by itself: what they put together they would put together in memory.
/// @param kept  bits that memory keeps; of the texels they are 0
template <typename Of>
inline void store_utile_4(const uint32_t* upper, const uint32_t* lower, uint32_t kept, uint8_t* to,
                          const Of& of) {
#ifdef __AVX512F__
  Lanes texels = of(quads_to_utiles(load_halves(upper, lower)));
  if (kept != 0) {
    Lanes old;
    std::memcpy(&old, to, sizeof(old));
    texels |= old & kept;
  }
  std::memcpy(to, &texels, sizeof(texels));
#else
  const auto store_half = [&](const uint32_t* quads, uint8_t* half) {
    HalfLanes texels, old;
    std::memcpy(&texels, quads, sizeof(texels));
    texels = of(__builtin_shufflevector(texels, texels, 0, 1, 4, 5, 2, 3, 6, 7));
    if (kept != 0) {
      std::memcpy(&old, half, sizeof(old));
      texels |= old & kept;
    }
    std::memcpy(half, &texels, sizeof(texels));
  };
  store_half(upper, to);
  store_half(lower, to + sizeof(HalfLanes));
#endif
}

/// The reverse of store_utile_4().
template <typename Of>
inline void load_utile_4(const uint8_t* from, uint32_t* upper, uint32_t* lower, const Of& of) {
  const auto load_half = [&](const uint8_t* half, uint32_t* quads) {
    HalfLanes texels;
    std::memcpy(&texels, half, sizeof(texels));
    texels = of(__builtin_shufflevector(texels, texels, 0, 1, 4, 5, 2, 3, 6, 7));
    std::memcpy(quads, &texels, sizeof(texels));
  };
  load_half(from, upper);
  load_half(from + sizeof(HalfLanes), lower);
}

/// A block of such texels, whose four quads stand at `quads`, to its two rows.
template <typename Of>
inline void store_rows_4(const uint32_t* quads, uint8_t* upper, uint8_t* lower, const Of& of) {
  HalfLanes left, right;
  std::memcpy(&left, quads, sizeof(left));
  std::memcpy(&right, quads + 8, sizeof(right));
  const HalfLanes above = of(__builtin_shufflevector(left, right, 0, 1, 4, 5, 8, 9, 12, 13)),
                  below = of(__builtin_shufflevector(left, right, 2, 3, 6, 7, 10, 11, 14, 15));
  std::memcpy(upper, &above, sizeof(above));
  std::memcpy(lower, &below, sizeof(below));
}

/// The reverse of store_rows_4().
template <typename Of>
inline void load_rows_4(const uint8_t* upper, const uint8_t* lower, uint32_t* quads, const Of& of) {
  HalfLanes above, below;
  std::memcpy(&above, upper, sizeof(above));
  std::memcpy(&below, lower, sizeof(below));
  const HalfLanes left = of(__builtin_shufflevector(above, below, 0, 1, 8, 9, 2, 3, 10, 11)),
                  right = of(__builtin_shufflevector(above, below, 4, 5, 12, 13, 6, 7, 14, 15));
  std::memcpy(quads, &left, sizeof(left));
  std::memcpy(quads + 8, &right, sizeof(right));
}

/// The same in a raster image, where the pieces of a row are adjacent: its two rows.
inline void store_raster_block_4(Lanes v, uint8_t* upper, uint8_t* lower) {
  store_halves(quads_to_rows(v), upper, lower);
}
inline Lanes load_raster_block_4(const uint8_t* upper, const uint8_t* lower) {
  return rows_to_quads(load_halves(upper, lower));
}

/// @param cpp    1, 2, 4, 8 or 16
/// @param texel  (cpp + 3) / 4 words of each lane's texel
void store_block(uint32_t cpp, const Lanes* texel, const BlockRows& rows);
void load_block(uint32_t cpp, const BlockRows& rows, Lanes* texel);

/// The same with every other texel of two rows, in one piece: a sample of a multisampled image.
void store_spread_block(uint32_t cpp, const Lanes* texel, const BlockRows& rows);
void load_spread_block(uint32_t cpp, const BlockRows& rows, Lanes* texel);

}  // namespace v3d::tlb
