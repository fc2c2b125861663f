/// A colour write takes the colour words of a fragment program into a render target: conversion, clamps,
/// blending, masks (cle-and-tiles.md 5.5, 5.6). It is internal to the TLB.
#pragma once

#include <array>

#include "gpu/tlb/tile.h"

namespace v3d::tlb {

/// Everything one access needs to know of its lanes.
struct LiveLanes {
  Lanes samples;  ///< bits of the samples to write, per lane
  bool all;       ///< every sample of every lane
  QuadOffsets quads;
};

/// How one draw writes one render target; made ready once and kept while target and state stay the same.
class ColorWrite {
 public:
  /// What is not implemented goes to tile.report().
  void prepare(Tile& tile, uint32_t rt, const draw::DrawState& state);
  /// Forgets the state: the targets changed.
  void reset() { function_ = nullptr; }

  /// False if all channels are masked.
  bool writes_anything() const { return writes_anything_; }
  bool writes_all() const { return writes_all_; }
  void write(Tile& tile, const qpu::TlbSpec& spec, const Lanes* words, const LiveLanes& live) const {
    function_(*this, tile, spec, words, live);
  }
  /// The same for four halves of each pixel in two words.
  void write_halves(Tile& tile, const Lanes* words, const LiveLanes& live) const {
    halves_function_(*this, tile, words, live);
  }
  /// Whether write_block() does that where a frame has one sample and no other target.
  bool has_block() const { return block_function_ != nullptr; }
  /// All pixels of a block. @param plane  of the target
  void write_block(uint32_t* plane, const QuadOffsets& quads, const Lanes* words) const {
    block_function_(*this, plane, quads, words);
  }
  /// The same as a function for whole blocks has it, where a frame has one sample and no other target.
  /// @param constants  of blending
  /// @return  null, or what no such function has
  const char* describe(qpu::BlockTarget& target, std::array<float, 4>& constants) const;
  /// Some pixels of four quads, one after the other: where nothing but rgba8 replaces them.
  static void replace_pixels(const std::array<uint32_t*, 4>& quads, LaneMask pixels, const Lanes* words);

 private:
  using Function = void (*)(const ColorWrite&, Tile&, const qpu::TlbSpec&, const Lanes*, const LiveLanes&);
  enum class Blend : uint8_t { kNone, kLinear, kAny };
  template <ColorType kType, Blend kBlend>
  static void write_as(const ColorWrite& plan, Tile& tile, const qpu::TlbSpec& spec, const Lanes* words,
                       const LiveLanes& live);
  using HalvesFunction = void (*)(const ColorWrite&, Tile&, const Lanes*, const LiveLanes&);
  template <ColorType kType, Blend kBlend>
  static void write_halves_as(const ColorWrite& plan, Tile& tile, const Lanes* words, const LiveLanes& live);
  using BlockFunction = void (*)(const ColorWrite&, uint32_t*, const QuadOffsets&, const Lanes*);
  static void replace_block(const ColorWrite& plan, uint32_t* plane, const QuadOffsets& quads,
                            const Lanes* words);
  static void blend_block(const ColorWrite& plan, uint32_t* plane, const QuadOffsets& quads,
                          const Lanes* words);
  struct Functions {
    Function any;
    HalvesFunction halves;
  };
  template <ColorType kType, Blend kBlend>
  static constexpr Functions functions() {
    return {write_as<kType, kBlend>, write_halves_as<kType, kBlend>};
  }
  static Functions find_functions(ColorType type, Blend blend);
  void decode_blend(Tile& tile, const std::array<float, 4>& constant);
  bool decode_linear();
  void clamp(LanesF* color) const;
  template <ColorType kType>
  void convert(const qpu::TlbSpec& spec, const Lanes* in, Lanes* out) const;
  template <ColorType kType, Blend kBlend>
  void blend_words(const LanesF* source, const Lanes* old, Lanes* out) const;
  void blend(LanesF* source, const LanesF* destination) const;

  Function function_ = nullptr;
  HalvesFunction halves_function_ = nullptr;
  BlockFunction block_function_ = nullptr;
  RenderTarget target_;
  uint32_t rt_ = 0;
  uint32_t words_ = 1;                   // color_words(target_)
  uint32_t write_bits_[kMaxWords] = {};  // of each word; from the colour mask
  bool writes_anything_ = true, writes_all_ = true;
  bool clamps_ = false;
  float low_[4] = {}, high_[4] = {};  // limits of source and result, if clamps_
  float constant_[4] = {};

  /// Equation and factors as source * (s0 + s1 * source alpha) + destination * (d0 + d1 * source alpha).
  struct Linear {
    float s0, s1, d0, d1;
  };
  Linear linear_[4] = {};

  // What the above was made from.
  bool blend_key_ = false;
  uint8_t mask_key_ = 0;
  draw::BlendConfig config_key_;
  std::array<float, 4> constant_key_{};
};

/// One sample's words as a fragment program reads them (ldtlb), in the form that the specifier asks for.
void read_color(const RenderTarget& target, const qpu::TlbSpec& spec, const Lanes* stored, Lanes* words);

/// 0..255 of floats: clamped, rounded to nearest, NaN gives 0.
inline Lanes to_unorm8(const LanesF& v) {
  const Lanes bits = by_parts<Lanes>(
      [](auto part) {
        part = part > 0.0f ? part : decltype(part){};
        part = part < 1.0f ? part : decltype(part){} + 1.0f;
        // The sum rounds once (ties to even) and leaves the integer in the low byte.
        return part * 255.0f + 12582912.0f;
      },
      v);
  return bits & 0xffu;
}
/// The float that stands for 0..255.
inline LanesF from_unorm8(Lanes v) { return __builtin_convertvector(as_int(v), LanesF) * (1.0f / 255.0f); }

}  // namespace v3d::tlb
