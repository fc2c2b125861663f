#include "gpu/tlb/texel_block.h"

#include "gpu/base/pairs.h"
#include "gpu/base/rows.h"

namespace v3d::tlb {
namespace {

typedef uint16_t Shorts16 __attribute__((vector_size(32)));
typedef uint16_t Shorts8 __attribute__((vector_size(16)));
typedef uint8_t Bytes8 __attribute__((vector_size(8)));
typedef uint8_t Bytes16 __attribute__((vector_size(16)));

void store_4_bytes(const Lanes* texel, const BlockRows& rows) {
  const Lanes v = quads_to_rows(texel[0]);
  Words4 part[4];
  std::memcpy(part, &v, sizeof(v));
  for (int i = 0; i < 2; ++i) {
    std::memcpy(rows.piece[i], &part[i], sizeof(Words4));
    std::memcpy(rows.piece[i] + rows.lower, &part[2 + i], sizeof(Words4));
  }
}

void load_4_bytes(const BlockRows& rows, Lanes* texel) {
  Words4 part[4];
  for (int i = 0; i < 2; ++i) {
    std::memcpy(&part[i], rows.piece[i], sizeof(Words4));
    std::memcpy(&part[2 + i], rows.piece[i] + rows.lower, sizeof(Words4));
  }
  const HalfLanes upper = __builtin_shufflevector(part[0], part[1], 0, 1, 2, 3, 4, 5, 6, 7);
  const HalfLanes lower = __builtin_shufflevector(part[2], part[3], 0, 1, 2, 3, 4, 5, 6, 7);
  texel[0] = rows_to_quads(join(upper, lower));
}

void store_8_bytes(const Lanes* texel, const BlockRows& rows) {
  const Lanes a = quads_to_rows(texel[0]), b = quads_to_rows(texel[1]);
  const Lanes upper = low_pairs(a, b);
  const Lanes lower = high_pairs(a, b);
  store_halves(upper, rows.piece[0], rows.piece[1]);
  store_halves(lower, rows.piece[0] + rows.lower, rows.piece[1] + rows.lower);
}

void load_8_bytes(const BlockRows& rows, Lanes* texel) {
  const Lanes upper = load_halves(rows.piece[0], rows.piece[1]);
  const Lanes lower = load_halves(rows.piece[0] + rows.lower, rows.piece[1] + rows.lower);
  texel[0] = rows_to_quads(first_of_pairs(upper, lower));
  texel[1] = rows_to_quads(second_of_pairs(upper, lower));
}

/// Texel i of every quad: bytes 16 * (i & 1) of the upper or lower row of its piece.
uint8_t* texel_16_bytes(const BlockRows& rows, int quad, int i) {
  return rows.piece[quad] + (i & 1) * 16 + (i & 2 ? rows.lower : 0);
}

void store_16_bytes(const Lanes* texel, const BlockRows& rows) {
  Lanes of_pixel[4];
  transpose_quads(texel, of_pixel);
  for (int i = 0; i < 4; ++i) {
    Words4 part[4];
    std::memcpy(part, &of_pixel[i], sizeof(part));
    for (int quad = 0; quad < 4; ++quad)
      std::memcpy(texel_16_bytes(rows, quad, i), &part[quad], sizeof(Words4));
  }
}

void load_16_bytes(const BlockRows& rows, Lanes* texel) {
  Lanes of_pixel[4];
  for (int i = 0; i < 4; ++i) {
    Words4 part[4];
    for (int quad = 0; quad < 4; ++quad)
      std::memcpy(&part[quad], texel_16_bytes(rows, quad, i), sizeof(Words4));
    const HalfLanes low = __builtin_shufflevector(part[0], part[1], 0, 1, 2, 3, 4, 5, 6, 7);
    const HalfLanes high = __builtin_shufflevector(part[2], part[3], 0, 1, 2, 3, 4, 5, 6, 7);
    of_pixel[i] = join(low, high);
  }
  transpose_quads(of_pixel, texel);
}

/// Texel by texel; the lane's texel is `step` texels right of its neighbour.
template <uint32_t kCpp>
void store_spread(const Lanes* texel, const BlockRows& rows) {
  uint32_t words[4][kLanes];
  std::memcpy(words, texel, sizeof(Lanes) * ((kCpp + 3) / 4));
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t x = (lane >> 2) * 2 + (lane & 1);
    uint8_t* const to = rows.piece[0] + (lane & 2 ? rows.lower : 0) + x * 2 * kCpp;
    for (uint32_t byte = 0; byte < kCpp; byte += 4)
      std::memcpy(to + byte, &words[byte / 4][lane], kCpp < 4 ? kCpp : 4);
  }
}

template <uint32_t kCpp>
void load_spread(const BlockRows& rows, Lanes* texel) {
  uint32_t words[4][kLanes] = {};
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t x = (lane >> 2) * 2 + (lane & 1);
    const uint8_t* const from = rows.piece[0] + (lane & 2 ? rows.lower : 0) + x * 2 * kCpp;
    for (uint32_t byte = 0; byte < kCpp; byte += 4)
      std::memcpy(&words[byte / 4][lane], from + byte, kCpp < 4 ? kCpp : 4);
  }
  std::memcpy(texel, words, sizeof(Lanes) * ((kCpp + 3) / 4));
}

}  // namespace

void store_block(uint32_t cpp, const Lanes* texel, const BlockRows& rows) {
  uint8_t *const upper = rows.piece[0], *const lower = rows.piece[0] + rows.lower;
  switch (cpp) {
    case 1: {
      const Bytes16 bytes = __builtin_convertvector(quads_to_rows(texel[0]), Bytes16);
      std::memcpy(upper, &bytes, 8);
      std::memcpy(lower, reinterpret_cast<const uint8_t*>(&bytes) + 8, 8);
      return;
    }
    case 2: {
      const Shorts16 shorts = __builtin_convertvector(quads_to_rows(texel[0]), Shorts16);
      std::memcpy(upper, &shorts, 16);
      std::memcpy(lower, reinterpret_cast<const uint8_t*>(&shorts) + 16, 16);
      return;
    }
    case 4:
      return store_4_bytes(texel, rows);
    case 8:
      return store_8_bytes(texel, rows);
    default:
      return store_16_bytes(texel, rows);
  }
}

void load_block(uint32_t cpp, const BlockRows& rows, Lanes* texel) {
  const uint8_t *const upper = rows.piece[0], *const lower = rows.piece[0] + rows.lower;
  switch (cpp) {
    case 1: {
      Bytes8 first, second;
      std::memcpy(&first, upper, sizeof first);
      std::memcpy(&second, lower, sizeof second);
      const Bytes16 bytes =
          __builtin_shufflevector(first, second, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
      texel[0] = rows_to_quads(__builtin_convertvector(bytes, Lanes));
      return;
    }
    case 2: {
      Shorts8 first, second;
      std::memcpy(&first, upper, sizeof first);
      std::memcpy(&second, lower, sizeof second);
      const Shorts16 shorts =
          __builtin_shufflevector(first, second, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
      texel[0] = rows_to_quads(__builtin_convertvector(shorts, Lanes));
      return;
    }
    case 4:
      return load_4_bytes(rows, texel);
    case 8:
      return load_8_bytes(rows, texel);
    default:
      return load_16_bytes(rows, texel);
  }
}

void store_spread_block(uint32_t cpp, const Lanes* texel, const BlockRows& rows) {
  switch (cpp) {
    case 1:
      return store_spread<1>(texel, rows);
    case 2:
      return store_spread<2>(texel, rows);
    case 4:
      return store_spread<4>(texel, rows);
    case 8:
      return store_spread<8>(texel, rows);
    default:
      return store_spread<16>(texel, rows);
  }
}

void load_spread_block(uint32_t cpp, const BlockRows& rows, Lanes* texel) {
  switch (cpp) {
    case 1:
      return load_spread<1>(rows, texel);
    case 2:
      return load_spread<2>(rows, texel);
    case 4:
      return load_spread<4>(rows, texel);
    case 8:
      return load_spread<8>(rows, texel);
    default:
      return load_spread<16>(rows, texel);
  }
}

}  // namespace v3d::tlb
