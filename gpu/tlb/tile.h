/// A Tile is the memory of one tile, and how sixteen lanes reach it. It is internal to the TLB.
///
/// Every word of a sample is a plane of its own: one plane for depth, one for stencil, 1, 2 or 4 for a render
/// target, and all that four times in multisampled frames. In a plane the four pixels of a quad are adjacent
/// (lane order), quads follow row by row: a batch reads four times 16 bytes, an 8x2 block of pixels 64 bytes.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "gpu/base/halves.h"
#include "gpu/base/quads.h"
#include "gpu/tlb/tile_buffer.h"

namespace v3d::tlb {

inline constexpr uint32_t kMaxTileSize = 64, kMinTileSize = 8;
inline constexpr uint32_t kMaxFrameSize = 65536;
inline constexpr uint32_t kMaxSamples = 4;
inline constexpr uint32_t kMaxWords = 4;  ///< of one colour sample

/// Four adjacent words of a plane: one quad.
typedef uint32_t QuadWords __attribute__((vector_size(16)));

/// Word offsets in every plane of the four quads of a batch.
struct QuadOffsets {
  uint32_t at[4];
  bool pairs;  ///< at[1] is next to at[0], and at[3] to at[2]
  bool again;  ///< some are equal
};

inline Lanes load_quads(const uint32_t* plane, const QuadOffsets& quads) {
  if (quads.pairs) [[likely]]
    return load_halves(plane + quads.at[0], plane + quads.at[2]);
  QuadWords q[4];
  for (int i = 0; i < 4; ++i) std::memcpy(&q[i], plane + quads.at[i], sizeof(QuadWords));
  return join(__builtin_shufflevector(q[0], q[1], 0, 1, 2, 3, 4, 5, 6, 7),
              __builtin_shufflevector(q[2], q[3], 0, 1, 2, 3, 4, 5, 6, 7));
}

inline void store_quads(uint32_t* plane, const QuadOffsets& quads, const Lanes& v) {
  if (quads.pairs) [[likely]]
    return store_halves(v, plane + quads.at[0], plane + quads.at[2]);
  const char* const from = reinterpret_cast<const char*>(&v);
  for (size_t i = 0; i < 4; ++i)
    std::memcpy(plane + quads.at[i], from + i * sizeof(QuadWords), sizeof(QuadWords));
}

/// store_bits() of quads one after the other, since some are equal.
void store_bits_again(uint32_t* plane, const QuadOffsets& quads, const Lanes& bits, const Lanes& v);
/// The other bits stay as they are. No two lanes have bits of one word. @param old  of load_quads()
inline void store_bits(uint32_t* plane, const QuadOffsets& quads, const Lanes& bits, const Lanes& v,
                       const Lanes& old) {
  if (quads.again) [[unlikely]]
    return store_bits_again(plane, quads, bits, v);
  store_quads(plane, quads, (v & bits) | (old & ~bits));
}

/// All ones where bit `sample` of the lane is set.
inline LanesI sample_lanes(Lanes coverage, uint32_t sample) { return -as_int((coverage >> sample) & 1u); }

/// One channel of each ColorType.
struct ColorTypeInfo {
  uint8_t bits;
  bool is_signed, is_integer;
};
inline constexpr ColorTypeInfo kColorTypes[] = {
    {8, true, true},    {8, false, true}, {8, false, false}, {16, true, true},   {16, false, true},
    {16, false, false}, {32, true, true}, {32, false, true}, {32, false, false},
};
constexpr const ColorTypeInfo& info(ColorType type) { return kColorTypes[static_cast<int>(type)]; }
/// Raw value of 1 in a channel: what alpha is where it does not exist.
constexpr uint32_t one_of(ColorType type) {
  if (info(type).is_integer) return 1;
  return type == ColorType::k8 ? 0xff : type == ColorType::k16F ? 0x3c00 : 0x3f800000;
}

/// Words of a sample that hold channels: 1 << bpp, or fewer when the type needs fewer.
inline uint32_t color_words(const RenderTarget& target) {
  const uint32_t needed = info(target.type).bits / 8u, room = 1u << target.bpp;
  return needed < room ? needed : room;
}
/// Channels that fit into these words, 1..4.
inline uint32_t color_channels(const RenderTarget& target) {
  return color_words(target) * 32u / info(target.type).bits;
}

/// Words of a sample to one raw channel per entry, signed types sign-extended. Channels that the words do not
/// hold: 0, and 1 for alpha.
inline void unpack_channels(ColorType type, uint32_t words, const Lanes* in, Lanes* channels) {
  const uint32_t bits = info(type).bits, per_word = 32 / bits;
  for (uint32_t c = 0; c < 4; ++c) {
    const uint32_t word = c / per_word;
    if (word >= words) {
      channels[c] = splat(c == 3 ? one_of(type) : 0u);
      continue;
    }
    const uint32_t up = 32 - bits - c % per_word * bits, down = 32 - bits;
    const Lanes top = in[word] << up;
    channels[c] = info(type).is_signed ? as_uint(as_int(top) >> static_cast<int>(down)) : top >> down;
  }
}

/// The reverse; higher bits of a channel are dropped. `out` has room for kMaxWords.
inline void pack_channels(ColorType type, const Lanes* channels, Lanes* out) {
  switch (info(type).bits) {
    case 8:
      out[0] = (channels[0] & 0xffu) | ((channels[1] & 0xffu) << 8) | ((channels[2] & 0xffu) << 16) |
               (channels[3] << 24);
      return;
    case 16:
      out[0] = (channels[0] & 0xffffu) | (channels[1] << 16);
      out[1] = (channels[2] & 0xffffu) | (channels[3] << 16);
      return;
    default:
      for (uint32_t w = 0; w < kMaxWords; ++w) out[w] = channels[w];
  }
}

struct Tile {
  /// @return  false, with a message in *error naming field and value, when the config is not possible; then
  ///          nothing changes.
  bool configure(const Config& new_config, std::string* error);
  void begin(uint32_t new_column, uint32_t new_row);

  uint32_t samples() const { return config.multisample ? kMaxSamples : 1; }
  bool has_target(uint32_t rt) const { return rt < config.num_render_targets && config.targets[rt].used; }

  uint32_t* depth(uint32_t sample) { return plane(sample); }
  uint32_t* stencil(uint32_t sample) { return plane(samples() + sample); }
  uint32_t* color(uint32_t rt, uint32_t sample, uint32_t word) {
    return plane(color_planes_[rt] + sample * color_words_[rt] + word);
  }
  /// Word offset in a plane of the quad at pixel (x, y) of the tile; both even.
  uint32_t quad_offset(uint32_t x, uint32_t y) const {
    return ((y >> 1) * (config.tile_width >> 1) + (x >> 1)) * 4;
  }

  /// Where those of the 4x4 pixels at absolute (x, y) lie.
  QuadOffsets block_quads(uint32_t x, uint32_t y) const {
    const uint32_t first = quad_offset(x & (config.tile_width - 1), y & (config.tile_height - 1)),
                   below = first + quad_offset(0, 2);
    return {{first, first + 4, below, below + 4}, true, false};
  }
  /// Where the quads of a batch lie. Those without a lane in `live` get words that belong to no pixel, so
  /// that whole batches can be written.
  QuadOffsets quads(const FragmentBatch& batch, LaneMask live) const {
    const uint32_t x_mask = config.tile_width - 1, y_mask = config.tile_height - 1;
    if (batch.is_block) return block_quads(batch.x[0], batch.y[0]);
    QuadOffsets result;
    result.pairs = false;
    result.again = batch.again;
    for (int q = 0; q < 4; ++q) {
      const uint32_t offset = quad_offset(batch.x[4 * q] & x_mask, batch.y[4 * q] & y_mask);
      result.at[q] = (live >> (4 * q)) & 0xf ? offset : spare_offset();
    }
    return result;
  }

  /// Numbers of buffers; render target n is kColors + n.
  static constexpr uint32_t kDepth = 0, kStencil = 1, kColors = 2, kBuffers = kColors + kMaxRenderTargets;

  /// Every pixel := the clear value. Memory is written when somebody looks: fill() comes before the first
  /// access to planes after begin(), clear() and copy_from().
  void clear(uint32_t buffer) {
    if (is_clear(buffer) || !has(buffer)) return;
    clear_ |= 1u << buffer;
    unfilled_ |= 1u << buffer;
  }
  bool is_clear(uint32_t buffer) const { return (clear_ >> buffer) & 1; }
  void fill(uint32_t buffer) {
    if ((unfilled_ >> buffer) & 1) [[unlikely]]
      fill_all(buffer);
  }
  /// The same for the first two rows of pixels alone.
  void fill_strip(uint32_t buffer);
  /// The same where all pixels inside the frame are written next.
  void fill_outside(uint32_t buffer);
  /// After fill(): pixels are no longer what they were cleared to.
  void dirty(uint32_t buffer) { clear_ &= ~(1u << buffer); }
  void copy_from(const Tile& other);
  /// Notes what a draw asked for in vain: the next load or store fails with the first such text.
  void report(std::string unimplemented) {
    if (fault.empty()) fault = std::move(unimplemented);
  }

  Config config;
  uint32_t column = 0, row = 0;  ///< of the tile, as begin() had them
  uint32_t origin_x = 0, origin_y = 0;
  uint32_t live_width = 0, live_height = 0;  ///< pixels of the tile inside the frame
  uint64_t occlusion = 0;
  perf::Counts counts;
  std::string fault;

 private:
  struct alignas(64) Line {
    uint32_t words[16];
  };
  static constexpr uint32_t kSpareWords = 16;  // after each plane

  const uint32_t* words() const { return reinterpret_cast<const uint32_t*>(memory_.data()); }
  uint32_t pixels() const { return config.tile_width * config.tile_height; }
  uint32_t spare_offset() const { return pixels(); }
  const uint32_t* plane(uint32_t index) const { return words() + index * plane_words_; }
  uint32_t* plane(uint32_t index) { return const_cast<uint32_t*>(std::as_const(*this).plane(index)); }

  bool has(uint32_t buffer) const { return buffer < kColors || has_target(buffer - kColors); }
  uint32_t first_plane(uint32_t buffer) const {
    return buffer < kColors ? buffer * samples() : color_planes_[buffer - kColors];
  }
  uint32_t words_of(uint32_t buffer) const { return buffer < kColors ? 1 : color_words_[buffer - kColors]; }
  uint32_t clear_value(uint32_t buffer, uint32_t word) const;
  void fill_all(uint32_t buffer);
  void fill_planes(uint32_t buffer, uint32_t num_pixels);
  void allocate();

  uint32_t clear_ = 0;     // one bit a buffer
  uint32_t unfilled_ = 0;  // of those, what memory does not hold yet
  uint32_t num_planes_ = 0, plane_words_ = 0;
  std::vector<Line> memory_;                                // for fewer planes until a buffer is filled
  std::array<uint32_t, kMaxRenderTargets> color_planes_{};  // index of the first plane of each target
  std::array<uint32_t, kMaxRenderTargets> color_words_{};   // of a sample
};

/// Largest stored value of the unorm depth types.
constexpr double max_depth(DepthType type) { return type == DepthType::k24 ? 0xffffff : 0xffff; }

/// Depth of a fragment in the stored format: float bits, or n bits of unorm, z * 2^n rounded down (NaN gives
/// 0). That, unlike z * (2^n - 1) rounded to nearest, lets a depth offset of one unit, 2^-n, change the
/// stored value everywhere, as boards do at z = 0.5
/// (dEQP-GLES3.functional.polygon_offset.*_render_with_units). Floats are limited to 0..1 as well
/// (dEQP-GLES3.functional.fbo.depth.depth_test_clamp.depth_component32f). Every path uses this one, so that
/// equal depths stay equal.
inline Lanes to_stored_depth(DepthType type, const LanesF& z) {
  const auto limited = [](auto v, float most) {
    const auto least = v > 0.0f ? v : decltype(v){};
    return least < most ? least : decltype(v){} + most;
  };
  if (type == DepthType::k32F) return by_parts<Lanes>([&](auto part) { return limited(part, 1.0f); }, z);
  const auto limit = static_cast<float>(max_depth(type));
  return by_parts<Lanes>(
      [&](auto part) {  // the product is exact: of a power of two
        return __builtin_convertvector(limited(part * (limit + 1.0f), limit), HostPart<LanesI>::type);
      },
      z);
}
/// The stored value as a float.
LanesF from_stored_depth(DepthType type, Lanes stored);

}  // namespace v3d::tlb
